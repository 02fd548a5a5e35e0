"""Checks of the services of an experiment file: each is known, can start, and uses known names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from uncork.experiment.spec import problems
from uncork.experiment.spec.services import text_names
from uncork.experiment.spec.sqltext import names_in
from uncork.model.engine import POSTGRESQL
from uncork.model.http_trial import names_in_braces

if TYPE_CHECKING:
    from uncork.experiment.spec.schema import Spec


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
