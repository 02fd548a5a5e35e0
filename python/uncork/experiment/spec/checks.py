"""Checks of an experiment file as a whole: every name is known, and every batch can be sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from uncork.experiment.spec import problems
from uncork.experiment.spec.batches import BATCH, chunk_rows, takes_rows
from uncork.experiment.spec.growth import check_growth
from uncork.experiment.spec.guard import check_guard
from uncork.experiment.spec.pauses import check_pauses, without_pauses
from uncork.experiment.spec.services import text_names
from uncork.experiment.spec.sqltext import names_in, substitute
from uncork.model.engine import ENGINES, POSTGRESQL, engine_kind
from uncork.model.http_trial import names_in_braces

if TYPE_CHECKING:
    from uncork.experiment.spec.schema import Spec


MOST_CLIENTS = 1000


def check_spec(spec: Spec) -> list[problems.Problem]:
    """Return the problems of a file whose sections are valid one by one."""
    checks = (
        *(check_names, check_compared, check_clients, check_batches),
        *(check_engines, check_connections, check_services, check_growth, check_guard, check_cache),
        check_pauses,
    )
    return [problem for check in checks for problem in check(spec)]


def check_names(spec: Spec) -> list[problems.Problem]:
    """Check that every `:name` in SQL is a variant's value, a factor or (in a workload) a parameter."""
    found = []
    values = {name for variant in spec.variants.values() for name in variant.values}
    for name, variant in spec.variants.items():
        missing = sorted(values - set(variant.values))
        if missing:
            found.append(
                problems.Problem(
                    ("variants", name, "values"),
                    f"has no value for {', '.join(missing)}, which another variant has; add it",
                )
            )
        found += [
            problems.Problem(("variants", name, "values", clash), "is also a factor; rename one of them")
            for clash in sorted(set(variant.values) & set(spec.factors))
        ]
    known = values | set(spec.factors)
    made = known | set(spec.time_zones)
    found += [
        problems.Problem(("time_zones", clash), "is also a variant's value or a factor; rename one of them")
        for clash in sorted(known & set(spec.time_zones))
    ]
    found += _unknown_names(("setup", "sql"), spec.setup.sql or "", made)
    for name, variant in spec.variants.items():
        if variant.setup is not None:
            found += _unknown_names(("variants", name, "setup", "sql"), variant.setup.sql or "", made)
    for name, check in spec.checks.items():
        found += _unknown_names(("checks", name, "sql"), check.sql or "", made)
    for name, metric in spec.metrics.items():
        found += _unknown_names(("metrics", name, "sql"), metric.sql or "", made)
        named = {word for text in metric.command or () for word in text_names(text)}
        found += [
            problems.Problem(
                ("metrics", name, "command"),
                f"uses :{word}, which is not a value or factor{problems.hint(word, made)}",
            )
            for word in sorted(named - made)
        ]
    for name in spec.workloads:
        found += _check_workload(spec, name, values)
    bound = set(spec.factors) | {
        parameter for workload in spec.workloads.values() for parameter in workload.parameters
    }
    batches = [workload.batch for workload in spec.workloads.values() if workload.batch is not None]
    bound |= {BATCH, *(column for batch in batches for column in batch.columns)} if batches else set()
    for name, variant in spec.variants.items():
        for value, text in variant.values.items():
            found += _unknown_names(("variants", name, "values", value), text, bound)
    for factor in spec.factors:
        for level, text in spec.levels(factor).items():
            found += _unknown_names(("factors", factor, level), text, values)
    return found


def _check_workload(spec: Spec, name: str, values: set[str]) -> Iterator[problems.Problem]:
    """Check the names in one workload; `values` are the names of the variants' values."""
    workload, key = spec.workloads[name], ("workloads", name)
    known = values | set(spec.factors)
    yield from http_names(spec, name)
    own = {
        variant: spec.statements(name, variant)
        for variant, facts in spec.variants.items()
        if name in facts.workloads
    }
    statements = [*workload.statements, *(text for written in own.values() for text in written)]
    used = {inner for statement in statements for inner in names_in(statement)}
    if used & values:
        texts = (text for variant in spec.variants.values() for text in variant.values.values())
        used |= {inner for text in texts for inner in names_in(text)}
    bound = known | (set(workload.parameters) if workload.batch is None else {BATCH, *workload.batch.columns})
    for statement in without_pauses(workload.statements):
        yield from _unknown_names((*key, "sql"), statement, bound)
    for variant, written in own.items():
        place = ("variants", variant, "workloads", name)
        for statement in without_pauses(written):
            yield from _unknown_names((*place, "sql"), statement, bound)
        for statement in (*spec.undoing(name, variant), spec.check(name, variant) or ""):
            yield from _unknown_names(place, statement, known)
        many, wanted = len(without_pauses(written)), len(without_pauses(workload.statements))
        if many != wanted:
            yield problems.Problem(
                (*place, "sql"),
                f"has {many} statements but the workload has {wanted}; give the same number",
            )
    for statement in workload.undoing:
        yield from _unknown_names((*key, "undo"), statement, known)
    yield from _unknown_names((*key, "check"), workload.check or "", known)
    if workload.batch is not None:
        yield from _unknown_names((*key, "batch", "query"), workload.batch.query or "", known)
    for parameter, source in workload.parameters.items():
        place = (*key, "parameters", parameter)
        yield from _unknown_names((*place, "query"), source.query or "", known)
        if workload.http is not None:
            continue
        if parameter in known:
            yield problems.Problem(place, "is also a variant's value or a factor; rename one of them")
        elif parameter not in used and workload.batch is None:
            yield problems.Problem(place, f"is never used; write :{parameter} in the SQL, or remove it")


def check_compared(spec: Spec) -> list[problems.Problem]:
    """Check that a workload's variants exist, and that each variant is compared in some workload."""
    found = [
        problems.Problem(
            ("workloads", name, "variants"),
            f'there is no variant "{wrong}"{problems.hint(wrong, set(spec.variants))}',
        )
        for name, workload in spec.workloads.items()
        for wrong in workload.variants
        if wrong not in spec.variants
    ]
    used = {variant for name in spec.workloads for variant in spec.compared(name)}
    found += [
        problems.Problem(
            ("workloads", name, "variants"), "has only the baseline; add a variant to compare with it"
        )
        for name in spec.workloads
        if not found and len(spec.compared(name)) < 2 <= len(spec.variants)
    ]
    return found + [
        problems.Problem(("variants", name), "no workload compares it; add it to a workload's variants")
        for name in spec.variants
        if name not in used
    ]


def check_clients(spec: Spec) -> list[problems.Problem]:
    """Check the number of clients; if a factor sets it, all its levels must be valid numbers."""
    found = []
    for name, workload in spec.workloads.items():
        sizes = sizes_of(spec, workload.clients)
        if sizes is None or max(sizes) > MOST_CLIENTS:
            found.append(
                problems.Problem(
                    ("workloads", name, "clients"),
                    f"expected a whole number from 1 to {MOST_CLIENTS}, or a factor with such levels, "
                    f'such as ":sessions"; found "{workload.clients}"',
                )
            )
        elif workload.threads > min(sizes):
            found.append(
                problems.Problem(
                    ("workloads", name, "threads"),
                    f"threads ({workload.threads}) cannot exceed clients ({min(sizes)})",
                )
            )
    return found


def check_engines(spec: Spec) -> list[problems.Problem]:
    """Check that every engine is known, and supports what its variant uses."""
    found: list[problems.Problem] = []
    if spec.experiment.engine != POSTGRESQL:
        found += _check_engine(("experiment", "engine"), spec.experiment.engine)
    for name, variant in spec.variants.items():
        key, engine = ("variants", name), spec.engine(name)
        if variant.engine is not None and engine != POSTGRESQL:
            found += _check_engine((*key, "engine"), engine)
        if variant.connect and engine != "mysql" and not engine.startswith("dbapi:"):
            found.append(
                problems.Problem((*key, "connect"), f"works only with mysql and dbapi, not {engine}")
            )
        if variant.extensions and engine != POSTGRESQL:
            found.append(
                problems.Problem((*key, "extensions"), f"works only with {POSTGRESQL}, not {engine}")
            )
        if variant.batching is not None and engine != POSTGRESQL:
            found.append(problems.Problem((*key, "batching"), f"works only with {POSTGRESQL}, not {engine}"))
        found += [
            problems.Problem(
                (*key, "workloads", own),
                f"there is no such workload{problems.hint(own, set(spec.workloads))}",
            )
            for own in variant.workloads
            if own not in spec.workloads
        ]
    if POSTGRESQL not in spec.engines and spec.server.settings:
        found.append(
            problems.Problem(
                ("server", "settings"), f"has no effect, because no variant runs on {POSTGRESQL}; remove it"
            )
        )
    return found


def _check_engine(key: tuple[str, ...], engine: str) -> Iterator[problems.Problem]:
    try:
        engine_kind(engine)
    except KeyError:
        known = {POSTGRESQL, *ENGINES, "dbapi:MODULE"}
        yield problems.Problem(key, f'there is no engine "{engine}"{problems.hint(engine, known)}')


def check_cache(spec: Spec) -> Iterator[problems.Problem]:
    """Check that caches can be emptied before each trial, if the file says so."""
    if spec.setup.cache != "cold":
        return
    key = ("setup", "cache")
    if spec.services:
        yield problems.Problem(key, '"cold" restarts the server, so services would lose their connections')
    if spec.engines != (POSTGRESQL,):
        yield problems.Problem(key, f'"cold" works only if all variants run on {POSTGRESQL}')
    for name, workload in spec.workloads.items():
        if workload.fitted:
            yield problems.Problem(
                ("workloads", name),
                'a trial fills the caches that [setup] cache = "cold" emptied: set where it ends, by '
                'operations = 100 or duration = "1s"',
            )
        if "warmup_operations" in workload.model_fields_set and workload.warmup_operations:
            yield problems.Problem(
                ("workloads", name, "warmup_operations"), 'contradicts [setup] cache = "cold"; remove it'
            )


def check_connections(spec: Spec) -> Iterator[problems.Problem]:
    """Check that variants that open a connection for each operation can, and that the metric counts it."""
    for name, variant in spec.variants.items():
        key, engine = ("variants", name, "connections"), spec.engine(name)
        if variant.connections == "keep":
            continue
        if engine != POSTGRESQL:
            yield problems.Problem(key, f'"new" works only with {POSTGRESQL}, not {engine}')
        for workload, facts in spec.workloads.items():
            place = ("workloads", workload)
            if name not in spec.compared(workload):
                continue
            if facts.http is not None:
                yield problems.Problem(
                    key, f"is only for SQL, but workload {workload} sends HTTP requests; remove it"
                )
                continue
            if facts.metric != "throughput":
                yield problems.Problem(
                    (*place, "metric"),
                    f'must be "throughput", because variant {name} opens a connection for each operation, '
                    "and latency leaves out the time of opening it",
                )
            if facts.placement == "together":
                yield problems.Problem(
                    (*place, "placement"),
                    f"cannot be together, because variant {name} opens a connection for each operation, and "
                    "the kernel places its backend; remove it",
                )


def check_batches(spec: Spec) -> list[problems.Problem]:
    """Check that every variant says how it sends batches, if there are any, and can send them so."""
    batched = [name for name, facts in spec.workloads.items() if facts.batch is not None]
    found = []
    for name, variant in spec.variants.items():
        key = ("variants", name, "batching")
        if batched and variant.batching is None:
            found.append(problems.Problem(key, f"is missing; workload {batched[0]} needs it for its batch"))
        if variant.batching is not None and not batched:
            found.append(problems.Problem(key, "has no effect, because no workload has a batch; remove it"))
        if batched and BATCH in {*variant.values, *spec.factors}:
            found.append(
                problems.Problem(key, ":batch stands for the rows; rename the value or factor of this name")
            )
    return [*found, *(problem for name in batched for problem in _check_batch(spec, name))]


def _check_batch(spec: Spec, name: str) -> Iterator[problems.Problem]:
    workload = spec.workloads[name]
    assert workload.batch is not None  # noqa: S101 -- called only for workloads with a batch
    key = ("workloads", name)
    sizes = sizes_of(spec, workload.batch.rows)
    if sizes is None:
        yield problems.Problem(
            (*key, "batch", "rows"),
            'expected a whole number of at least 1, or a factor with such levels, such as ":rows"; found '
            f'"{workload.batch.rows}"',
        )
    for variant_name, variant in spec.variants.items():
        if variant.batching is None:
            continue
        texts = [substitute(text, variant.values) for text in spec.statements(name, variant_name)]
        if not any(takes_rows(text, workload.batch.columns, variant.batching) for text in texts):
            named = "" if variant.batching in {"values", "copy"} else ", or name its columns"
            yield problems.Problem(
                (*key, "sql"), f"must read its rows from :batch{named}, because there is a batch"
            )
        for size in sizes or ():
            try:
                chunk_rows(variant.batching, size, len(workload.batch.columns), variant.chunk)
            except ValueError as error:
                yield problems.Problem((*key, "batch", "rows"), str(error))


def sizes_of(spec: Spec, size: int | str) -> list[int] | None:
    """Return every number that a size, or a factor of sizes, takes; None if one is not a valid size."""
    if isinstance(size, int):
        return [size] if size > 0 else None
    factor = size.removeprefix(":")
    if not size.startswith(":") or factor not in spec.factors:
        return None
    texts = list(spec.levels(factor).values())
    return [int(text) for text in texts] if all(re.fullmatch("[1-9][0-9]*", text) for text in texts) else None


def _unknown_names(key: tuple[str, ...], sql: str, known: set[str]) -> list[problems.Problem]:
    return [
        problems.Problem(
            key, f"uses :{name}, which is not a value, factor or parameter{problems.hint(name, known)}"
        )
        for name in sorted(names_in(sql) - known)
    ]


# ---- checks of the services of an experiment file ----


def check_services(spec: Spec) -> list[problems.Problem]:
    """Check that every service is known and can start, and that every HTTP workload has one."""
    http = [name for name, facts in spec.workloads.items() if facts.http is not None]
    found = [
        problems.Problem(
            ("workloads", name, "http"), "needs a service that receives the requests; add [services.NAME]"
        )
        for name in http
        if not spec.services
    ]
    found += _check_order(spec)
    if spec.setup.copy_of is not None:
        found += [
            problems.Problem(
                ("setup", "copy_of"), f"only {POSTGRESQL} can copy a database, but {name} runs on {engine}"
            )
            for name in spec.variants
            if (engine := spec.engine(name)) != POSTGRESQL
        ]
    for name in spec.variants:
        found += _check_variant(spec, name, http)
    found += dict.fromkeys(_check_versions(spec, http))
    known = {value for variant in spec.variants.values() for value in variant.values} | set(spec.factors)
    for name, service in spec.services.items():
        found += _check_texts(("services", name), service.command, service.environment, known)
    for name, variant in spec.variants.items():
        for own, changes in variant.services.items():
            key = ("variants", name, "services", own)
            found += _check_texts(key, changes.command or (), changes.environment, known)
    for name, database in spec.databases.items():
        found += [
            problems.Problem(
                ("databases", name, "sql"),
                f"uses :{word}, but this database is the same for all variants and cells; "
                "only names from [time_zones] are allowed",
            )
            for word in sorted(names_in(database.sql or "") - set(spec.time_zones))
        ]
    if spec.databases and not spec.services:
        found.append(
            problems.Problem(
                ("databases",), "are for services, but the file has none; add [services.NAME] or remove them"
            )
        )
    return found


def http_names(spec: Spec, workload: str) -> Iterator[problems.Problem]:
    """Check that every ``{name}`` in requests is known, and that every parameter is used."""
    facts = spec.workloads[workload]
    if facts.http is None:
        return
    key = ("workloads", workload)
    used = {name for text in facts.http.texts for name in names_in_braces(text)}
    texts = {name for variant in spec.variants.values() for name in variant.values} | set(spec.factors)
    captured = facts.http.captured
    known = texts | set(facts.parameters) | captured
    for name in sorted(captured & (texts | set(facts.parameters))):
        yield problems.Problem(
            (*key, "http"), f"captures {name}, which is also a parameter, value or factor; rename one of them"
        )
    for name in sorted(used - known):
        yield problems.Problem(
            (*key, "http", "requests"),
            f"uses {{{name}}}, which is not a parameter, value or factor{problems.hint(name, known)}"
            f"{'' if known else f'; add [workloads.{workload}.parameters.{name}]'}",
        )
    for name in facts.parameters:
        if name in texts:
            yield problems.Problem(
                (*key, "parameters", name), "is also a variant's value or a factor; rename one of them"
            )
        elif name not in used:
            yield problems.Problem(
                (*key, "parameters", name), f"is never used; write {{{name}}} in a request, or remove it"
            )


def _check_order(spec: Spec) -> Iterator[problems.Problem]:
    """Check that every service is listed after the services that it needs."""
    earlier: set[str] = set()
    for name, service in spec.services.items():
        for other in service.after:
            key = ("services", name, "after")
            if other not in spec.services:
                yield problems.Problem(
                    key, f'there is no service "{other}"{problems.hint(other, set(spec.services) - {name})}'
                )
            elif other not in earlier:
                yield problems.Problem(
                    key, f'"{other}" must be listed before {name}: services start in the order of the file'
                )
        earlier.add(name)


def _check_variant(spec: Spec, name: str, http: list[str]) -> Iterator[problems.Problem]:
    variant, key = spec.variants[name], ("variants", name)
    known = set(spec.services)
    if variant.service is not None and variant.service not in known:
        yield problems.Problem(
            (*key, "service"),
            f'there is no service "{variant.service}"{problems.hint(variant.service, known)}',
        )
    for own in variant.services:
        if own not in known:
            yield problems.Problem(
                (*key, "services", own), f"there is no such service{problems.hint(own, known)}"
            )
    if variant.http is not None and not http:
        yield problems.Problem(
            (*key, "http"), "has no effect, because no workload sends HTTP requests; remove it"
        )
    if spec.services and spec.engine(name) != POSTGRESQL:
        yield problems.Problem(
            (*key, "engine"),
            f"a file with services needs {POSTGRESQL}, but this variant runs on {spec.engine(name)}",
        )
    if http and variant.batching is not None:
        yield problems.Problem(
            (*key, "batching"), f"is only for SQL, but workload {http[0]} sends HTTP requests; remove it"
        )
    for workload in http:
        if workload in variant.workloads:
            yield problems.Problem(
                (*key, "workloads", workload), "is only for SQL, but this workload sends HTTP requests"
            )


def _check_versions(spec: Spec, http: list[str]) -> Iterator[problems.Problem]:
    """Check that HTTP/3 is only sent to services with TLS."""
    for workload in http:
        facts = spec.workloads[workload].http
        for name in spec.compared(workload):
            variant = spec.variants[name]
            service = variant.service or next(reversed(spec.services), "")
            own = None if variant.http is None else variant.http.version
            three = own or (facts and facts.version)
            if three == "3" and service in spec.services and not spec.services[service].tls:
                key = ("workloads", workload) if own is None else ("variants", name)
                yield problems.Problem(
                    (*key, "http", "version"),
                    f"HTTP/3 is always encrypted; add tls = true to [services.{service}], and give it a "
                    "certificate",
                )


def _check_texts(
    key: tuple[str, ...], command: tuple[str, ...], environment: dict[str, str], known: set[str]
) -> Iterator[problems.Problem]:
    for place, text in (*(("command", word) for word in command), *environment.items()):
        for name in sorted(text_names(text) - known):
            at = (*key, place) if place == "command" else (*key, "environment", place)
            yield problems.Problem(
                at, f"uses :{name}, which is not a value or factor{problems.hint(name, known)}"
            )
