"""Checks of an experiment file as a whole: every name is known, and every batch can be sent."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from uncork.experiment.spec.batches import BATCH, chunk_rows, takes_rows
from uncork.experiment.spec.gates import check_gates
from uncork.experiment.spec.pauses import check_pauses, without_pauses
from uncork.experiment.spec.problems import Problem, hint, unknown
from uncork.experiment.spec.services import text_names
from uncork.experiment.spec.sqltext import names_in, substitute
from uncork.model.engine import ENGINES, POSTGRESQL, engine_kind
from uncork.model.http_trial import names_in_braces
from uncork.model.units import count_words, format_count

if TYPE_CHECKING:
    from uncork.experiment.spec.schema import Spec

Key = tuple[str, ...]

MOST_CLIENTS = 1000
MOST_COMPARISONS: Final = 2000
"""Largest number of comparisons. Five rounds of two blocks of 40 ms take about 13 minutes at this size."""
_CLASH: Final = "is also a variant's value or a factor; rename one of them"


def check_spec(spec: Spec) -> Iterator[Problem]:
    """Yield the problems of a file whose sections are valid one by one."""
    checks = (
        *(check_names, check_compared, check_clients, check_batches),
        *(check_engines, check_connections, check_services, check_growth, check_guard, check_cache),
        check_pauses,
    )
    return chain.from_iterable(check(spec) for check in checks)


def too_many_comparisons(spec: Spec) -> list[Problem]:
    """Return a problem if an experiment makes too many comparisons: cells x workloads x variants."""
    numbers = [len(spec.levels(factor)) for factor in spec.factors]
    each = sum(len(spec.compared(name)) - 1 for name in spec.workloads)
    comparisons = math.prod(numbers) * each
    if comparisons <= MOST_COMPARISONS:
        return []
    made = " × ".join(map(format_count, numbers))
    levels = f"{made} levels of {', '.join(spec.factors)}" if spec.factors else "no factors"
    remedy = f"--set {next(iter(spec.factors))}=LEVEL keeps one level" if spec.factors else "remove variants"
    return [
        Problem(
            ("factors",) if spec.factors else ("variants",),
            f"{levels} and {count_words(each, 'comparison')} in each of their combinations make "
            f"{format_count(comparisons)} comparisons; expected at most {format_count(MOST_COMPARISONS)}; "
            f"remove levels, variants or workloads ({remedy}, --workload NAME keeps one workload)",
        )
    ]


def check_names(spec: Spec) -> Iterator[Problem]:
    """Check that every `:name` in SQL is a variant's value, a factor or (in a workload) a parameter."""
    values = _values(spec)
    for name, variant in spec.variants.items():
        key = ("variants", name, "values")
        if missing := sorted(values - set(variant.values)):
            yield Problem(key, f"has no value for {', '.join(missing)}, which another variant has; add it")
        for clash in sorted(set(variant.values) & set(spec.factors)):
            yield Problem((*key, clash), "is also a factor; rename one of them")
    known = values | set(spec.factors)
    made = known | set(spec.time_zones)
    for clash in sorted(known & set(spec.time_zones)):
        yield Problem(("time_zones", clash), _CLASH)
    for place, sql in _sql_outside_workloads(spec):
        yield from _unknown_names(place, sql, made)
    for name, metric in spec.metrics.items():
        named = {word for text in metric.command or () for word in text_names(text)}
        yield from _not_known(("metrics", name, "command"), named, made)
    for name in spec.workloads:
        yield from _check_workload(spec, name, values)
    bound = set(spec.factors).union(*(workload.parameters for workload in spec.workloads.values()))
    for workload in spec.workloads.values():
        bound |= {BATCH, *workload.batch.columns} if workload.batch is not None else set()
    for name, variant in spec.variants.items():
        for value, text in variant.values.items():
            yield from _unknown_names(("variants", name, "values", value), text, bound)
    for factor in spec.factors:
        for level, text in spec.levels(factor).items():
            yield from _unknown_names(("factors", factor, level), text, values)


def _sql_outside_workloads(spec: Spec) -> Iterator[tuple[Key, str | None]]:
    yield ("setup", "sql"), spec.setup.sql
    setups = {name: facts.setup for name, facts in spec.variants.items() if facts.setup is not None}
    yield from ((("variants", name, "setup", "sql"), setup.sql) for name, setup in setups.items())
    yield from ((("checks", name, "sql"), check.sql) for name, check in spec.checks.items())
    yield from ((("metrics", name, "sql"), metric.sql) for name, metric in spec.metrics.items())


def _check_workload(spec: Spec, name: str, values: set[str]) -> Iterator[Problem]:
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
        for text in (*spec.undoing(name, variant), spec.check(name, variant)):
            yield from _unknown_names(place, text, known)
        many, wanted = len(without_pauses(written)), len(without_pauses(workload.statements))
        if many != wanted:
            yield Problem(
                (*place, "sql"),
                f"has {many} statements but the workload has {wanted}; give the same number",
            )
    for statement in workload.undoing:
        yield from _unknown_names((*key, "undo"), statement, known)
    yield from _unknown_names((*key, "check"), workload.check, known)
    if workload.batch is not None:
        yield from _unknown_names((*key, "batch", "query"), workload.batch.query, known)
    for parameter, source in workload.parameters.items():
        place = (*key, "parameters", parameter)
        yield from _unknown_names((*place, "query"), source.query, known)
        if workload.http is not None:
            continue
        if parameter in known:
            yield Problem(place, _CLASH)
        elif parameter not in used and workload.batch is None:
            yield Problem(place, f"is never used; write :{parameter} in the SQL, or remove it")


def http_names(spec: Spec, workload: str) -> Iterator[Problem]:
    """Check that every ``{name}`` in requests is known, and that every parameter is used."""
    facts, key = spec.workloads[workload], ("workloads", workload)
    if facts.http is None:
        return
    used = {name for text in facts.http.texts for name in names_in_braces(text)}
    texts = _values(spec) | set(spec.factors)
    captured = facts.http.captured
    known = texts | set(facts.parameters) | captured
    for name in sorted(captured & (texts | set(facts.parameters))):
        yield Problem(
            (*key, "http"), f"captures {name}, which is also a parameter, value or factor; rename one of them"
        )
    for name in sorted(used - known):
        remedy = hint(name, known) or f"; add [workloads.{workload}.parameters.{name}]"
        yield Problem(
            (*key, "http", "requests"),
            f"uses {{{name}}}, which is not a parameter, value or factor{remedy}",
        )
    for name in facts.parameters:
        place = (*key, "parameters", name)
        if name in texts:
            yield Problem(place, _CLASH)
        elif name not in used:
            yield Problem(place, f"is never used; write {{{name}}} in a request, or remove it")


def _values(spec: Spec) -> set[str]:
    return {name for variant in spec.variants.values() for name in variant.values}


def _unknown_names(key: Key, sql: str | None, known: set[str]) -> Iterator[Problem]:
    return _not_known(key, names_in(sql or ""), known, "value, factor or parameter")


def _not_known(
    key: Key, used: set[str], known: set[str], kinds: str = "value or factor"
) -> Iterator[Problem]:
    for name in sorted(used - known):
        yield Problem(key, f"uses :{name}, which is not a {kinds}{hint(name, known)}")


# ---- variants and workloads ----


def check_compared(spec: Spec) -> Iterator[Problem]:
    """Check that a workload's variants exist, and that each variant is compared in some workload."""
    wrong = [
        Problem(("workloads", name, "variants"), unknown("variant", variant, spec.variants))
        for name, workload in spec.workloads.items()
        for variant in workload.variants
        if variant not in spec.variants
    ]
    yield from wrong
    for name in spec.workloads:
        if not wrong and len(spec.compared(name)) < 2 <= len(spec.variants):
            yield Problem(
                ("workloads", name, "variants"), "has only the baseline; add a variant to compare with it"
            )
    used = {variant for name in spec.workloads for variant in spec.compared(name)}
    for name in spec.variants:
        if name not in used:
            yield Problem(("variants", name), "no workload compares it; add it to a workload's variants")


def check_clients(spec: Spec) -> Iterator[Problem]:
    """Check the number of clients; if a factor sets it, all its levels must be valid numbers."""
    for name, workload in spec.workloads.items():
        sizes = sizes_of(spec, workload.clients)
        if sizes is None or max(sizes) > MOST_CLIENTS:
            yield Problem(
                ("workloads", name, "clients"),
                f"expected a whole number from 1 to {MOST_CLIENTS}, or a factor with such levels, "
                f'such as ":sessions"; found "{workload.clients}"',
            )
        elif workload.threads > min(sizes):
            yield Problem(
                ("workloads", name, "threads"),
                f"threads ({workload.threads}) cannot exceed clients ({min(sizes)})",
            )


def check_engines(spec: Spec) -> Iterator[Problem]:
    """Check that every engine is known, and supports what its variant uses."""
    if spec.experiment.engine != POSTGRESQL:
        yield from _check_engine(("experiment", "engine"), spec.experiment.engine)
    for name, variant in spec.variants.items():
        key, engine = ("variants", name), spec.engine(name)
        if variant.engine is not None and engine != POSTGRESQL:
            yield from _check_engine((*key, "engine"), engine)
        if variant.connect and engine != "mysql" and not engine.startswith("dbapi:"):
            yield Problem((*key, "connect"), f"works only with mysql and dbapi, not {engine}")
        for used, value in (("extensions", variant.extensions), ("batching", variant.batching)):
            if value and engine != POSTGRESQL:
                yield Problem((*key, used), f"works only with {POSTGRESQL}, not {engine}")
        for own in variant.workloads:
            if own not in spec.workloads:
                yield Problem(
                    (*key, "workloads", own), f"there is no such workload{hint(own, spec.workloads)}"
                )
    if POSTGRESQL not in spec.engines and spec.server.settings:
        yield Problem(
            ("server", "settings"), f"has no effect, because no variant runs on {POSTGRESQL}; remove it"
        )


def _check_engine(key: Key, engine: str) -> Iterator[Problem]:
    try:
        engine_kind(engine)
    except KeyError:
        yield Problem(key, unknown("engine", engine, {POSTGRESQL, *ENGINES, "dbapi:MODULE"}))


def check_cache(spec: Spec) -> Iterator[Problem]:
    """Check that caches can be emptied before each trial, if the file says so."""
    if spec.setup.cache != "cold":
        return
    key = ("setup", "cache")
    if spec.services:
        yield Problem(key, '"cold" restarts the server, so services would lose their connections')
    if spec.engines != (POSTGRESQL,):
        yield Problem(key, f'"cold" works only if all variants run on {POSTGRESQL}')
    for name, workload in spec.workloads.items():
        if workload.fitted:
            yield Problem(
                ("workloads", name),
                'a trial fills the caches that [setup] cache = "cold" emptied: set where it ends, by '
                'operations = 100 or duration = "1s"',
            )
        if "warmup_operations" in workload.model_fields_set and workload.warmup_operations:
            yield Problem(
                ("workloads", name, "warmup_operations"), 'contradicts [setup] cache = "cold"; remove it'
            )


def check_connections(spec: Spec) -> Iterator[Problem]:
    """Check that variants that open a connection for each operation can, and that the metric counts it."""
    for name, variant in spec.variants.items():
        key, engine = ("variants", name, "connections"), spec.engine(name)
        if variant.connections == "keep":
            continue
        if engine != POSTGRESQL:
            yield Problem(key, f'"new" works only with {POSTGRESQL}, not {engine}')
        for workload, facts in spec.workloads.items():
            if name not in spec.compared(workload):
                continue
            if facts.http is not None:
                yield Problem(key, f"is only for SQL, but workload {workload} sends HTTP requests; remove it")
                continue
            if facts.metric != "throughput":
                yield Problem(
                    ("workloads", workload, "metric"),
                    f'must be "throughput", because variant {name} opens a connection for each operation, '
                    "and latency leaves out the time of opening it",
                )
            if facts.placement == "together":
                yield Problem(
                    ("workloads", workload, "placement"),
                    f"cannot be together, because variant {name} opens a connection for each operation, and "
                    "the kernel places its backend; remove it",
                )


def check_growth(spec: Spec) -> Iterator[Problem]:
    """Check that the factor of the growth section is a size."""
    if spec.growth is None:
        return
    name, key = spec.growth.factor, ("growth", "factor")
    if name not in spec.factors:
        yield Problem(key, unknown("factor", name, spec.factors))
        return
    levels = spec.factors[name]
    if not isinstance(levels, list) or not all(
        isinstance(level, int | float) and not isinstance(level, bool) and level > 0 for level in levels
    ):
        yield Problem(key, f'the levels of "{name}" must be numbers above zero')


def check_guard(spec: Spec) -> Iterator[Problem]:
    """Check the file's gates."""
    return (Problem(("guard", "gates"), message) for message in check_gates(spec, spec.guard.parsed))


# ---- batches ----


def check_batches(spec: Spec) -> Iterator[Problem]:
    """Check that every variant says how it sends batches, if there are any, and can send them so."""
    batched = [name for name, facts in spec.workloads.items() if facts.batch is not None]
    for name, variant in spec.variants.items():
        key = ("variants", name, "batching")
        if batched and variant.batching is None:
            yield Problem(key, f"is missing; workload {batched[0]} needs it for its batch")
        if variant.batching is not None and not batched:
            yield Problem(key, "has no effect, because no workload has a batch; remove it")
        if batched and BATCH in {*variant.values, *spec.factors}:
            yield Problem(key, ":batch stands for the rows; rename the value or factor of this name")
    for name in batched:
        yield from _check_batch(spec, name)


def _check_batch(spec: Spec, name: str) -> Iterator[Problem]:
    batch, key = spec.workloads[name].batch, ("workloads", name)
    assert batch is not None  # noqa: S101 -- called only for workloads with a batch
    sizes = sizes_of(spec, batch.rows)
    if sizes is None:
        yield Problem(
            (*key, "batch", "rows"),
            'expected a whole number of at least 1, or a factor with such levels, such as ":rows"; found '
            f'"{batch.rows}"',
        )
    for variant_name, variant in spec.variants.items():
        if variant.batching is None:
            continue
        texts = [substitute(text, variant.values) for text in spec.statements(name, variant_name)]
        if not any(takes_rows(text, batch.columns, variant.batching) for text in texts):
            named = "" if variant.batching in {"values", "copy"} else ", or name its columns"
            yield Problem((*key, "sql"), f"must read its rows from :batch{named}, because there is a batch")
        for size in sizes or ():
            try:
                chunk_rows(variant.batching, size, len(batch.columns), variant.chunk)
            except ValueError as error:
                yield Problem((*key, "batch", "rows"), str(error))


def sizes_of(spec: Spec, size: int | str) -> list[int] | None:
    """Return every number that a size, or a factor of sizes, takes; None if one is not a valid size."""
    if isinstance(size, int):
        return [size] if size > 0 else None
    factor = size.removeprefix(":")
    if not size.startswith(":") or factor not in spec.factors:
        return None
    texts = list(spec.levels(factor).values())
    return [int(text) for text in texts] if all(re.fullmatch("[1-9][0-9]*", text) for text in texts) else None


# ---- services ----


def check_services(spec: Spec) -> Iterator[Problem]:
    """Check that every service is known and can start, and that every HTTP workload has one."""
    http = [name for name, facts in spec.workloads.items() if facts.http is not None]
    for name in http:
        if not spec.services:
            yield Problem(
                ("workloads", name, "http"),
                "needs a service that receives the requests; add [services.NAME]",
            )
    yield from _check_order(spec)
    for name in spec.variants:
        if spec.setup.copy_of is not None and (engine := spec.engine(name)) != POSTGRESQL:
            yield Problem(
                ("setup", "copy_of"), f"only {POSTGRESQL} can copy a database, but {name} runs on {engine}"
            )
    for name in spec.variants:
        yield from _check_variant(spec, name, http)
    yield from dict.fromkeys(_check_versions(spec, http))
    known = _values(spec) | set(spec.factors)
    for name, service in spec.services.items():
        yield from _check_texts(("services", name), service.command, service.environment, known)
    for name, variant in spec.variants.items():
        for own, changes in variant.services.items():
            key = ("variants", name, "services", own)
            yield from _check_texts(key, changes.command or (), changes.environment, known)
    for name, database in spec.databases.items():
        for word in sorted(names_in(database.sql or "") - set(spec.time_zones)):
            yield Problem(
                ("databases", name, "sql"),
                f"uses :{word}, but this database is the same for all variants and cells; "
                "only names from [time_zones] are allowed",
            )
    if spec.databases and not spec.services:
        yield Problem(
            ("databases",), "are for services, but the file has none; add [services.NAME] or remove them"
        )


def _check_order(spec: Spec) -> Iterator[Problem]:
    earlier: set[str] = set()
    for name, service in spec.services.items():
        key = ("services", name, "after")
        for other in service.after:
            if other not in spec.services:
                yield Problem(key, unknown("service", other, set(spec.services) - {name}))
            elif other not in earlier:
                yield Problem(
                    key, f'"{other}" must be listed before {name}: services start in the order of the file'
                )
        earlier.add(name)


def _check_variant(spec: Spec, name: str, http: Sequence[str]) -> Iterator[Problem]:
    variant, key, known = spec.variants[name], ("variants", name), set(spec.services)
    if variant.service is not None and variant.service not in known:
        yield Problem((*key, "service"), unknown("service", variant.service, known))
    for own in variant.services:
        if own not in known:
            yield Problem((*key, "services", own), f"there is no such service{hint(own, known)}")
    if variant.http is not None and not http:
        yield Problem((*key, "http"), "has no effect, because no workload sends HTTP requests; remove it")
    if spec.services and spec.engine(name) != POSTGRESQL:
        yield Problem(
            (*key, "engine"),
            f"a file with services needs {POSTGRESQL}, but this variant runs on {spec.engine(name)}",
        )
    if http and variant.batching is not None:
        yield Problem(
            (*key, "batching"), f"is only for SQL, but workload {http[0]} sends HTTP requests; remove it"
        )
    for workload in http:
        if workload in variant.workloads:
            yield Problem(
                (*key, "workloads", workload), "is only for SQL, but this workload sends HTTP requests"
            )


def _check_versions(spec: Spec, http: Sequence[str]) -> Iterator[Problem]:
    for workload in http:
        facts = spec.workloads[workload].http
        for name in spec.compared(workload):
            variant = spec.variants[name]
            service = variant.service or next(reversed(spec.services), "")
            own = None if variant.http is None else variant.http.version
            three = own or (facts and facts.version)
            if three == "3" and service in spec.services and not spec.services[service].tls:
                key = ("workloads", workload) if own is None else ("variants", name)
                yield Problem(
                    (*key, "http", "version"),
                    f"HTTP/3 is always encrypted; add tls = true to [services.{service}], and give it a "
                    "certificate",
                )


def _check_texts(
    key: Key, command: tuple[str, ...], environment: dict[str, str], known: set[str]
) -> Iterator[Problem]:
    for word in command:
        yield from _not_known((*key, "command"), text_names(word), known)
    for name, text in environment.items():
        yield from _not_known((*key, "environment", name), text_names(text), known)
