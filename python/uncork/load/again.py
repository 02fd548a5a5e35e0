"""Rebuild the specification of a load from its stored plan, so that the load can be repeated. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from uncork.errors import UsageError
from uncork.load.traceparent import untraced
from uncork.model.http import Capture, Checks, HttpServer, HttpSpec, Request, Variable
from uncork.model.load import Arrivals, LoadScript, LoadSpec
from uncork.model.redaction import NOT_STORED

_KEPT: Final = (
    *("clients", "max_clients", "threads", "seed", "latency_limit_ns", "connect_each", "warmup_ns"),
)
"""Fields that the plans of all loads have under the same name."""


def sql_spec_of(plan: Mapping[str, Any]) -> LoadSpec:
    """Return the specification of an SQL load. Raises UsageError if values were not stored."""
    if plan["recorded"] is not None:
        raise UsageError(
            "a load does not store the values of a recording; run `uncork load sql` with the recording again"
        )
    arrivals, stop = _arrivals(plan["arrivals"]), plan["stop"]
    each, shared = stop.get("operations_each"), _count(stop, arrivals)
    return LoadSpec(
        scripts=tuple(
            LoadScript(script["name"], script["weight"], script["text"]) for script in plan["scripts"]
        ),
        **{name: plan[name] for name in (*_KEPT, "protocol", "pipeline_depth", "max_tries", "exit_on_abort")},
        variables=dict(plan["variables"]),
        arrivals=arrivals,
        operations_each=each if shared is None else shared // plan["clients"],
        duration_ns=stop.get("duration_ns"),
    )


def http_spec_of(
    plan: Mapping[str, Any],
    headers: Sequence[tuple[str, str]] = (),
    environment: Mapping[str, str] | None = None,
) -> HttpSpec:
    """Return the specification of an HTTP load from its plan.

    `headers` and `environment` supply values that were not stored. Raises UsageError if a value was not
    stored, and it is not supplied.
    """
    http, stop, arrivals = plan["http"], plan["stop"], _arrivals(plan["arrivals"])
    tls = http["tls"]
    for name in http["environment"]:
        if name not in (environment or {}):
            raise UsageError(
                f"the load used the environment variable {name}, whose value is never stored; set it again"
            )
    spec = HttpSpec(
        server=HttpServer(
            http["host"],
            http["port"],
            tls is not None,
            tls is None or tls["verify"],
            None if tls is None else tls["roots"],
        ),
        requests=tuple(_request(script, headers) for script in plan["scripts"]),
        **{name: plan[name] for name in _KEPT},
        **{name: http[name] for name in ("version", "request_timeout_ns", "connect_timeout_ns", "cookies")},
        variables=tuple(_variable(variable) for variable in http["variables"]),
        streams=plan["pipeline_depth"],
        arrivals=arrivals,
        on_close=plan["on_lost"],
        operations=_count(stop, arrivals),
        duration_ns=stop.get("duration_ns"),
        login=tuple(_request({**request, "weight": 1}, headers) for request in http["login"]),
        in_order=plan["order"] == "sequential",
        environment=tuple((name, (environment or {})[name]) for name in http["environment"]),
    )
    return untraced(spec)


def _arrivals(plan: Mapping[str, Any] | None) -> Arrivals | None:
    if plan is None:
        return None
    return Arrivals(plan["kind"], plan.get("rate"), plan.get("size"), tuple(plan.get("offsets_ns", ())))


def _count(stop: Mapping[str, Any], arrivals: Arrivals | None) -> int | None:
    count: int | None = stop.get("operations")
    traced = arrivals is not None and arrivals.kind == "trace" and count == len(arrivals.offsets_ns)
    return None if traced else count


def _request(script: Mapping[str, Any], headers: Sequence[tuple[str, str]]) -> Request:
    found = script["request"]
    kind = found["body_kind"]
    if kind != "text" and NOT_STORED in found["body"]:
        raise UsageError(
            f'the body of request "{script["name"]}" has a secret, whose value was not stored with the load; '
            "write ${NAME} in the requests file, set that environment variable, and run the load again"
        )
    body = found["body"].encode() if found.get("body") is not None else None
    if found.get("body_base64") is not None:
        body = base64.b64decode(found["body_base64"])
    return Request(
        name=script["name"],
        method=found["method"],
        path=found["path"],
        weight=script["weight"],
        headers=tuple((name, _value(name, value, headers)) for name, value in found["headers"]),
        body=body,
        checks=Checks(**{name: _as_tuples(value) for name, value in found["checks"].items()}),
        body_kind=kind,
        captures=tuple(
            Capture(capture["name"], source, where, capture["default"])
            for capture in found["captures"]
            for source, where in capture["from"].items()
        ),
    )


def _as_tuples(value: object) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(tuple(item) if isinstance(item, list) else item for item in value)


def _value(name: str, stored: str, headers: Sequence[tuple[str, str]]) -> str:
    given = next((value for text, value in headers if text.lower() == name.lower()), None)
    if given is not None:
        return given
    if stored == NOT_STORED:
        raise UsageError(
            f'the header "{name}" holds a secret, so its value was not stored with the load; give it again '
            f'with --header "{name}: ..."'
        )
    return stored


def _variable(found: Mapping[str, Any]) -> Variable:
    values = found["values"]
    if NOT_STORED in values.get("listed", ()):
        raise UsageError(
            f"the values of {{{found['name']}}} are secret, so they were not stored with the load; run "
            "the load again with its requests file"
        )
    kept = {name: value for name, value in found.items() if name != "values"}
    first, last = values.get("range", (0, 0))
    return Variable(first=first, last=last, values=tuple(values.get("listed", ())), **kept)
