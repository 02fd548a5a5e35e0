"""Write an experiment file about a service, from a stored load of it. Pure.

What the load did not store becomes a marked place (`spec.raw_file`), which `uncork plan` reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from uncork.experiment.draft_text import comment, multiline, toml
from uncork.experiment.service_start import DROPPED, ServiceStart
from uncork.experiment.spec.raw_file import fill_in
from uncork.model.database.names import literal
from uncork.model.http_trial import names_in_braces
from uncork.model.units import count_words

SERVICE: Final = "app"
_WORKLOAD: Final = "requests"
_MOST_VALUES: Final = 2000
"""The most listed values of a variable that are written into the file."""


@dataclass(frozen=True, slots=True)
class DraftDatabase:
    """The database to copy: its connection string without a password, and sentences about how it is copied.

    `settings` are those of its server that plans and caches depend on.
    """

    conninfo: str
    notes: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceDraft:
    """What is known about a service and a load of it.

    `plan` is the stored plan of the load. `start` is how to start the service; None if that is unknown, for
    the reason in `unknown`. `changes` are the variants that execute SQL after the copy, `environments` those
    that change a variable, both by name. `budget` is a time with its unit.
    """

    name: str
    question: str
    origin: Sequence[str]
    plan: Mapping[str, Any]
    start: ServiceStart | None
    unknown: str = ""
    database: DraftDatabase | None = None
    changes: Mapping[str, str] = field(default_factory=dict)
    environments: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    budget: str = "3min"


def service_text(draft: ServiceDraft) -> str:
    """Return the experiment file."""
    change = "change"
    while change in {variable["name"] for variable in draft.plan["http"]["variables"]}:
        change += "_sql"
    parts = [
        comment(*draft.origin),
        f"[experiment]\nname = {toml(draft.name)}\nquestion = {toml(draft.question)}\n",
        _service(draft),
        *_variants(draft, change),
        _setup(draft, change),
        _workload(draft.plan),
        *_settings(draft),
        f'[stop]\nprecision = "5%"\npractical = "5%"\nbudget = "{draft.budget}"\n',
    ]
    return "\n".join(parts)


def _service(draft: ServiceDraft) -> str:
    start, tls = draft.start, "tls = true\n" if draft.plan["http"].get("tls") else ""
    if start is None:
        what = fill_in(f"the program and its arguments, with {{port}} for the port; {draft.unknown}")
        return (
            f"[services.{SERVICE}]\ncommand = [{toml(what)}]\n{tls}"
            "# Its environment has PORT, HOST and DATABASE_URL. Add the other variables that it needs:\n"
            '# environment = { POOL = "8" }\n'
        )
    words = "".join(f"    {toml(word)},\n" for word in start.command)
    text = f"{comment(*start.notes)}[services.{SERVICE}]\ncommand = [\n{words}]\n{tls}"
    if not start.environment:
        return text
    lines = "".join(f"{name} = {toml(value)}\n" for name, value in start.environment.items())
    return f"{text}\n[services.{SERVICE}.environment]\n{lines}"


def _variants(draft: ServiceDraft, change: str) -> list[str]:
    changes = dict(draft.changes)
    if not changes and not draft.environments:
        example = "the change to test, such as CREATE INDEX ON orders (customer_id);"
        changes = {"changed": f"-- {fill_in(example)}"}
    command = [] if draft.start is None else list(draft.start.command)
    return [
        "# The baseline is the present state. A variant changes the copied data, or how the service starts.\n"
        f'[variants.current]\nbaseline = true\nvalues = {{ {change} = "" }}\n',
        *(f"[variants.{name}]\nvalues = {{ {change} = {toml(sql)} }}\n" for name, sql in changes.items()),
        *(
            f'[variants.{name}]\nvalues = {{ {change} = "" }}\n'
            f"services.{SERVICE}.environment = {{ {key} = {toml(value)} }}\n"
            for name, (key, value) in draft.environments.items()
        ),
        "# Another version of the service, or another setting:\n"
        f'# [variants.new-version]\n# values = {{ {change} = "" }}\n'
        f"# services.{SERVICE}.command = [{', '.join(map(toml, command))}]\n"
        f'# services.{SERVICE}.environment = {{ POOL = "16" }}\n'
        "# Two commits: write {checkout} in the command for the root of the checkout, and run\n"
        "# uncork guard FILE --baseline commit=main --candidate commit=HEAD\n",
    ]


def _setup(draft: ServiceDraft, change: str) -> str:
    database = draft.database
    if database is None:
        what = fill_in("the connection string of the database behind the service")
        notes, conninfo = "# The load named no database (--postgres).\n", toml(what)
    else:
        notes, conninfo = comment(*database.notes), toml(database.conninfo)
    return f'[setup]\n{notes}copy_of = {conninfo}\nsql = ":{change}"\n'


def _settings(draft: ServiceDraft) -> list[str]:
    settings = {} if draft.database is None else draft.database.settings
    if not settings:
        return []
    lines = "".join(f"{name} = {toml(value)}\n" for name, value in settings.items())
    return [
        "# Settings of the service's server that plans and caches depend on, for the embedded server.\n"
        f"[server.settings]\n{lines}"
    ]


def _workload(plan: Mapping[str, Any]) -> str:
    http, arrivals = plan["http"], plan["arrivals"]
    listed = {script["request"]["path"][1:-1] for script in plan["scripts"] if _is_listed(script)}
    texts = [text for script in plan["scripts"] for text in _texts(script["request"])]
    used = {name for text in texts for name in names_in_braces(text)}
    lines = [
        f'[workloads.{_WORKLOAD}]\nmetric = "latency_mean"\nclients = {plan["clients"]}\n',
        f"\n[workloads.{_WORKLOAD}.http]\n",
        "requests = [\n",
        *(f"    {_request(script)},\n" for script in plan["scripts"] if script["weight"]),
        "]\n",
    ]
    timeout = http["request_timeout_ns"]
    if timeout is not None:
        lines.append(f'timeout = "{timeout / 1e9:g}s"\n')
    if http["version"] in ("2", "3"):
        lines.append(f'version = "{http["version"]}"\n')
    elif http["version"] == "negotiated":
        lines.append('# The load left the version to TLS. For HTTP/2: version = "2"\n')
    if plan["pipeline_depth"] > 1:
        lines.append(f"streams = {plan['pipeline_depth']}\n")
    if arrivals is not None and arrivals.get("rate"):
        lines.append(f"rate = {arrivals['rate']:g}\n")
    lines += [
        "# If answers contain the time, random ids or lists in any order, leave these places out:\n"
        '# ignore = ["/served_at", "/items/*/age"]\n'
        '# order_free = ["/items"]\n'
    ]
    for variable in http["variables"]:
        if variable["name"] in used:
            lines.append(_parameter(variable, paths=variable["name"] in listed))
    return "".join(lines)


def _request(script: Mapping[str, Any]) -> str:
    request = script["request"]
    path = f"/{request['path']}" if _is_listed(script) else request["path"]
    pairs = [f"path = {toml(path)}"]
    if request["method"] != "GET":
        pairs.append(f"method = {toml(request['method'])}")
    if script["weight"] != 1:
        pairs.append(f"weight = {script['weight']}")
    if request["headers"]:
        headers = ", ".join(
            f"{toml(name)} = {toml(_header(name, text))}" for name, text in request["headers"]
        )
        pairs.append(f"headers = {{ {headers} }}")
    if request.get("body") is not None:
        pairs.append(f"body = {toml(request['body'])}")
    elif request.get("body_base64") is not None:
        pairs.append(f"body = {toml(fill_in('the body as text; the load sent one that is not UTF-8'))}")
    statuses = request["checks"]["statuses"]
    if statuses:
        pairs.append(f"statuses = {statuses}")
    return f"{{ {', '.join(pairs)} }}"


def _is_listed(script: Mapping[str, Any]) -> bool:
    path: str = script["request"]["path"]
    return path.startswith("{") and path.endswith("}")


def _header(name: str, text: str) -> str:
    return fill_in(f"the value of {name}, which the load did not store") if text == DROPPED else text


def _texts(request: Mapping[str, Any]) -> list[str]:
    headers = [text for pair in request["headers"] for text in pair]
    return [request["path"], request.get("body") or "", *headers]


def _parameter(variable: Mapping[str, Any], *, paths: bool) -> str:
    key = f"\n[workloads.{_WORKLOAD}.parameters.{variable['name']}]\n"
    if "range" in variable["values"]:
        least, most = variable["values"]["range"]
        kind = "sequence" if variable["in_turn"] else "uniform"
        return f'{key}generator = {{ kind = "{kind}", min = {least}, max = {most} }}\n'
    values = [value.removeprefix("/") if paths else value for value in variable["values"]["listed"]]
    note = ""
    if len(values) > _MOST_VALUES:
        note = f"# The first {_MOST_VALUES} of {count_words(len(values), 'value')} of the load.\n"
        values = values[:_MOST_VALUES]
    rows = ",\n".join(f"({number}, {literal(value)})" for number, value in enumerate(values, start=1))
    query = f"SELECT value FROM (VALUES\n{rows}) AS listed (number, value) ORDER BY number"  # noqa: S608
    pick = 'pick = "sequence"\n' if variable["in_turn"] else ""
    return f"{key}{note}query = {multiline(query)}\n{pick}"
