"""The answer of a profiled service: its bottleneck in one sentence, and where the sources disagree. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from uncork.model.results.costly_parts import CostlyPart, unexplained_part
from uncork.model.results.service import PlaceKind, RequestFacts, ServiceFinding, ServiceResult
from uncork.model.units import format_duration
from uncork.report.findings import costly_words, hidden_sentences, unexplained_words
from uncork.report.headline import capital, fitting, headline_template, join_sentences, split_answer
from uncork.report.load.words import limit_words

_EXPLAINED: Final = 0.9
"""Fraction of the statements that requests must account for; below, they send other statements together."""
_REASONS: Final = 4
_AGREES: Final[dict[str, tuple[PlaceKind, ...]]] = {
    "locks": ("locks",),
    "commit": ("commit",),
    "storage": ("storage",),
    "internal locks": ("internal locks",),
    "database cpu": (
        "database parsing",
        "database planning",
        "database cpu",
        "database queue",
        "service queue",
    ),
    "service cpu": ("service cpu", "service queue", "service wait", "idle in transaction"),
    "pool": ("pool wait", "service wait"),
}
"""For each bottleneck, the places where requests wait for it."""
PLACES: Final[Mapping[PlaceKind, tuple[str, str]]] = {
    "database parsing": ("database: parsing statements", "parsing statements in the database"),
    "database planning": ("database: planning statements", "planning statements in the database"),
    "database cpu": ("database: computing", "computing in the database"),
    "database queue": ("database: waiting for a processor", "waiting for a processor in the database"),
    "locks": ("database: waiting for locks", "waiting for locks"),
    "commit": ("database: waiting for commits to be safe on disk", "waiting for commits"),
    "storage": ("database: waiting for storage", "waiting for storage"),
    "internal locks": ("database: waiting for each other", "waiting for each other in the database"),
    "database other": ("database: other waits", "waiting in the database"),
    "idle in transaction": (
        "service: between statements of an open transaction",
        "between statements of open transactions",
    ),
    "service cpu": ("service: computing", "in the service's code"),
    "service queue": ("service: waiting for a processor", "waiting for a processor in the service"),
    "process queue": ("service: waiting for a free process", "waiting for a free process of the service"),
    "pool wait": ("service: waiting for a connection of PgBouncer", "waiting for a connection of PgBouncer"),
    "service wait": ("service: other waits", "waiting in the service"),
}
"""Each place where requests pass their time, as a table and as a sentence name it."""


def answer_service(result: ServiceResult) -> ServiceResult:
    """Return the result with its answer, its reasons and its warnings."""
    database = result.database
    hidden = () if database is None else hidden_sentences(database.hidden, database.unplanned)
    logged = "" if result.log is None else f"From the logs: {split_answer(result.log.answer)[0]}"
    return replace(
        result,
        answer=join_sentences((*hidden, _bottleneck(result))),
        reasons=(
            *_details(result),
            *_disagreement(result),
            *filter(None, [logged]),
            *costly_words(_costliest(result)),
        ),
        warnings=tuple(_warnings(result)),
    )


def _bottleneck(result: ServiceResult) -> str:
    if not result.time:
        return "Nothing was measured: no request succeeded, and no session of the database was busy."
    rest = _rest(result)
    if not result.findings:
        place = result.time[0]
        share = percent_text(place.share)
        part = unexplained_part(_costliest(result))
        headline = f"No fault was found: requests pass {share} of their time {PLACES[place.kind][1]}"
        detail = "" if part is None else unexplained_words(part, "the time of the database's busy sessions")
        return join_sentences((headline, detail, rest))
    return fitting((headline, rest) for headline in _headlines(result, result.findings[0]))


def _costliest(result: ServiceResult) -> tuple[CostlyPart, ...]:
    return () if result.database is None else result.database.costliest


def _headlines(result: ServiceResult, found: ServiceFinding) -> Iterator[str]:
    request = next((request for request in result.requests if request.name == found.request), None)
    limit = next(
        (bottleneck for bottleneck in result.bottlenecks if bottleneck.sentence == found.sentence), None
    )
    if found.name == "n+1" and request is not None:
        yield from _repeated(request)
    elif found.name == "statement" and request is not None:
        yield from _statement(result, found, request)
    elif found.name == "missing index" and request is not None:
        yield from _unindexed(found, request)
    elif found.name == "few processes":
        yield capital(found.sentence.partition(", while")[0].replace(" with one request at a time", ""))
        yield "The service has too few processes"
    elif found.name == "connections" and request is not None:
        yield capital(found.sentence.partition("; ")[0])
        yield f"{_short(request)} opens a connection to the database for each request"
    elif found.name == "idle in transaction":
        place = percent_text(
            next((place.share for place in result.time if place.kind == "idle in transaction"), 0.0)
        )
        yield f"Requests pass {place} of their time between statements of open transactions"
    elif found.name == "service code":
        share = percent_text(found.share)
        yield f"The service's own code is the bottleneck, with {share} of the requests' time"
    elif found.name == "idle processes":
        yield f"The service's processes work unevenly: {found.sentence.partition(': ')[2]}"
        yield "The service's processes work unevenly, so requests wait for the busy ones"
    elif limit is not None:
        yield f"The bottleneck is {limit_words(limit.resource)}: {limit.sentence}"
        yield f"The bottleneck is {limit_words(limit.resource)}"
    else:
        yield capital(found.sentence)


def _short(request: RequestFacts) -> str:
    """Return a request without the values of its parameters: ``/raw?rows=…``."""
    return re.sub(r"=[^&\s]*(&\S*)?", "=…", request.name, count=1)


def _repeated(request: RequestFacts) -> Iterator[str]:
    largest = max(request.templates, key=lambda template: template.calls)
    sends = f"sends {many_text(request.statements)} statements for each request (N+1)"
    most = "most of them" if largest.calls > (request.statements or 0.0) / 2 else "such as"
    yield f"{request.name} {sends}, {most} {headline_template(largest.text)}"
    yield f"{request.name} {sends}"
    yield f"{_short(request)} {sends}"


def _statement(result: ServiceResult, found: ServiceFinding, request: RequestFacts) -> Iterator[str]:
    template = next((template for template in request.templates if template.template == found.template), None)
    if template is None:
        return
    text = headline_template(template.text)
    took = f"{percent_text(found.share)} of the requests' time"
    if any(place.kind == "process queue" for place in result.time):
        yield f"{text} of {request.name} causes {took}: the others wait for a free process meanwhile"
        yield f"{text} of {request.name} causes {took}"
        yield f"{text} of {_short(request)} causes {took}"
        yield f"One statement of {_short(request)} causes {took}"
        return
    places = [
        place
        for place in result.time
        if place.kind in PLACES and not place.kind.startswith(("service", "idle"))
    ]
    doing = PLACES[places[0].kind][1] if places else "in the database"
    yield f"{text} of {request.name} takes {took}, mostly {doing}"
    yield f"{text} of {request.name} takes {took}"
    yield f"{text} of {_short(request)} takes {took}"
    yield f"One statement of {_short(request)} takes {took}, mostly {doing}"


def _unindexed(found: ServiceFinding, request: RequestFacts) -> Iterator[str]:
    template = next((template for template in request.templates if template.template == found.template), None)
    table = capital(found.sentence.partition(": ")[0])
    took = f"{percent_text(found.share)} of the requests' time"
    if template is not None:
        yield f"{table}: {headline_template(template.text)} of {request.name} causes {took}"
        yield f"{table}: {headline_template(template.text)} of {_short(request)} causes {took}"
    yield f"{table}, which causes {took} (statements of {request.name})"
    yield f"{table}, which causes {took} (statements of {_short(request)})"


def _rest(result: ServiceResult) -> str:
    parts = ", ".join(f"{percent_text(place.share)} {PLACES[place.kind][1]}" for place in result.time[:3])
    if result.mean_ns:
        return f"A request takes {format_duration(result.mean_ns)} on average: {parts}"
    return f"Busy sessions pass their time so: {parts}"


def _details(result: ServiceResult) -> Iterator[str]:
    for finding in result.findings[:_REASONS]:
        stated = " of their time" in finding.sentence
        share = "" if stated else f" ({percent_text(min(1.0, finding.share))} of the requests' time)"
        yield f"{capital(finding.sentence)}{share}."


def _disagreement(result: ServiceResult) -> Iterator[str]:
    """Say which source is right if requests do not wait mostly for the saturated resource."""
    places = [place for place in result.time if place.kind != "process queue"]
    if not result.bottlenecks or not places:
        return
    first, place = result.bottlenecks[0], places[0]
    agreeing = _AGREES.get(first.resource)
    if agreeing is None or place.kind in agreeing:
        return
    waiting = sum(place.share for place in result.time if place.kind in agreeing)
    if waiting >= place.share:
        return
    yield (
        f"The load names {limit_words(first.resource)} as saturated ({first.sentence}), but requests pass "
        f"only {percent_text(waiting)} of their time there and {percent_text(place.share)} "
        f"{PLACES[place.kind][1]}: change that first."
    )


def _warnings(result: ServiceResult) -> Iterator[str]:
    for text in result.missing:
        yield f"Missing: {text.rstrip('.')}."
    if result.explained is not None and result.explained < _EXPLAINED:
        yield (
            f"Only {percent_text(result.explained)} of the statements seen with all requests together also "
            "appear when each request is sent alone: caches, background work or other clients add or save "
            "statements, so the statements of each request are estimates."
        )
    failed = sum(request.failed for request in result.requests)
    if failed:
        sent = sum(request.sent for request in result.requests)
        yield f"{failed} of {sent} requests failed: see the load below."
    if result.run.status != "complete":
        yield "The profile ended early: it covers only the time until then."


def percent_text(share: float) -> str:
    """Return a fraction as a percentage: ``61 %``, ``0.4 %``."""
    return f"{share * 100:.0f} %" if share >= 0.01 or not share else f"{share * 100:.1g} %"


def many_text(number: float | None) -> str:
    """Return a mean count: ``50``, ``1.02``, ``0.1``; empty if unknown."""
    if number is None:
        return ""
    return f"{number:.0f}" if number >= 10 and abs(number - round(number)) < 0.05 else f"{number:.3g}"
