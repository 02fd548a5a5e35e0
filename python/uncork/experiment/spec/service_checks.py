"""What an experiment file says of services as a whole: each is known, can run, and is asked rightly."""

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

__all__ = ["check_services", "http_names"]


def check_services(spec: Spec) -> list[problems.Problem]:
    """Every service must be known and startable, every HTTP workload must have one."""
    http = [name for name, facts in spec.workloads.items() if facts.http is not None]
    found = [
        problems.Problem(
            ("workloads", name, "http"), "needs a service to send requests to: add [services.NAME]"
        )
        for name in http
        if not spec.services
    ]
    found += _check_order(spec)
    for name in spec.variants:
        found += _check_variant(spec, name, http)
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
                f"uses :{word}; a database beside the variants' own is the same for all of them",
            )
            for word in sorted(names_in(database.sql or "") - set(spec.time_zones))
        ]
    if spec.databases and not spec.services:
        found.append(problems.Problem(("databases",), "are for services, and there is none"))
    return found


def http_names(spec: Spec, workload: str) -> Iterator[problems.Problem]:
    """Every ``{name}`` in requests must be a parameter, a value or a factor, and every parameter be used."""
    facts = spec.workloads[workload]
    if facts.http is None:
        return
    key = ("workloads", workload)
    used = {name for text in facts.http.texts for name in names_in_braces(text)}
    texts = {name for variant in spec.variants.values() for name in variant.values} | set(spec.factors)
    known = texts | set(facts.parameters)
    for name in sorted(used - known):
        yield problems.Problem(
            (*key, "http", "requests"),
            f"uses {{{name}}}, which is no parameter, value or factor{problems.hint(name, known)}"
            f"{'' if known else f'; add [workloads.{workload}.parameters.{name}]'}",
        )
    for name in facts.parameters:
        if name in texts:
            yield problems.Problem((*key, "parameters", name), "is also a variant's value or a factor")
        elif name not in used:
            yield problems.Problem(
                (*key, "parameters", name), f"is never used; write {{{name}}} in a request"
            )


def _check_order(spec: Spec) -> Iterator[problems.Problem]:
    """A service comes after those that it needs."""
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
                    key, f'"{other}" must stand before {name}: services start in this order'
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
        yield problems.Problem((*key, "http"), "there is no workload with http")
    if spec.services and spec.engine(name) != POSTGRESQL:
        yield problems.Problem(
            (*key, "engine"),
            f"services stand beside {POSTGRESQL}, and this variant runs on {spec.engine(name)}",
        )
    if http and variant.batching is not None:
        yield problems.Problem(
            (*key, "batching"), f"is for SQL; workload {http[0]} sends requests, each by itself"
        )
    for workload in http:
        if workload in variant.workloads:
            yield problems.Problem(
                (*key, "workloads", workload), "is for SQL; this workload sends requests by http"
            )


def _check_texts(
    key: tuple[str, ...], command: tuple[str, ...], environment: dict[str, str], known: set[str]
) -> Iterator[problems.Problem]:
    for place, text in (*(("command", word) for word in command), *environment.items()):
        for name in sorted(text_names(text) - known):
            at = (*key, place) if place == "command" else (*key, "environment", place)
            yield problems.Problem(
                at, f"uses :{name}, which is no value or factor{problems.hint(name, known)}"
            )
