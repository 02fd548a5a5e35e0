"""The report on a profiled service, as a document and in a terminal: its bottleneck."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console

from uncork.model.database.finding import Finding
from uncork.model.database.index import within_transaction
from uncork.model.results.service import ServiceResult
from uncork.model.units import format_duration
from uncork.report.blocks import Block, Code, Document, Flame, Fold, Section, Step, filled_section
from uncork.report.database.document import build_database_document
from uncork.report.findings import careful_last, finding_step
from uncork.report.headline import capital, uncapital
from uncork.report.hidden_work import hidden_steps
from uncork.report.load.document import build_load_document
from uncork.report.log.document import build_log_document
from uncork.report.service.tables import (
    functions_table,
    origins_table,
    places_table,
    pool_table,
    request_id,
    requests_table,
    routes_table,
    templates_table,
    workers_table,
)
from uncork.report.service.words import percent_text
from uncork.report.stacks.document import build_stack_document
from uncork.report.stacks.tables import frames_table
from uncork.report.write.terminal_text import TerminalPart, write_report

_LINE: Final = 100
_MOST_STEPS: Final = 3
_LEFT_OUT: Final = frozenset(
    {
        *("code-reproduce", "database-reproduce", "log-reproduce", "load-reproduce"),
        *("database-machine", "database-routes", "load-environment"),
    }
)
"""Sections of the parts' reports that the profile's report has itself, or that its parts would repeat."""


def build_service_document(result: ServiceResult, flames: Sequence[Flame] = ()) -> Document:
    """Return the report on a profiled service, without empty sections."""
    load = None if result.load is None else build_load_document(result.load)
    return Document(
        title=result.run.id,
        question=_question(result),
        answer=result.answer,
        reasons=(*result.reasons, *result.warnings),
        steps=careful_last(_steps(result)),
        facts=tuple(_facts(result)),
        variants=() if load is None else load.variants,
        sections=(*_sections(result), *_parts(result, load, flames), *_end(result)),
        version=result.run.uncork_version,
        heading="What to know",
    )


def _question(result: ServiceResult) -> str:
    behind = f" with the database {result.run.database}" if result.run.database else ""
    return f"What is the bottleneck of {result.run.server}{behind}?"


def _steps(result: ServiceResult) -> Iterator[Step]:
    if result.database is not None:
        yield from hidden_steps(result.database.hidden, result.database.unplanned, result.run.reproduce)
    from_database = _database_step(result)
    if from_database is not None:
        yield finding_step(from_database)
    index = from_database is not None and from_database.rule == "missing-index"
    findings = [finding for finding in result.findings if not (index and finding.name == "missing index")]
    for remedy in list(dict.fromkeys(finding.remedy for finding in findings))[:_MOST_STEPS]:
        yield Step(f"{capital(remedy)}.")
    if result.findings and result.load is not None:
        change = ""
        sql = "" if from_database is None or not index else from_database.candidates[0].sql
        if sql:
            change = f" --change index={shlex.quote(within_transaction(sql))}"
        yield Step(
            "Prove a change before you make it: write the experiment about this service, and run it:",
            f"uncork new question.toml --from {result.run.id}{change}",
        )
    if result.findings:
        yield Step("After a change, profile the service again:", result.run.reproduce)


def _database_step(result: ServiceResult) -> Finding | None:
    """Return the finding on the database whose step the report names, if it adds to the others."""
    found = () if result.database is None else result.database.findings
    names = {finding.name for finding in result.findings}
    indexes = [finding for finding in found if finding.rule == "missing-index" and "missing index" in names]
    others = [finding for finding in found if finding.rule != "one-by-one" or "n+1" not in names]
    return next(iter((*indexes, *others)), None)


def _facts(result: ServiceResult) -> Iterator[tuple[str, str]]:
    yield "run", result.run.id
    yield "started", result.run.started_at[:16].replace("T", " ")
    yield "took", format_duration(result.run.elapsed_ns)
    yield "service", result.run.server
    if result.run.database:
        yield "database", result.run.database
    if result.in_flight:
        yield "requests in flight", f"{result.in_flight:.1f}"
    if result.explained is not None:
        yield "statements explained by the requests", percent_text(result.explained)


def _sections(result: ServiceResult) -> Iterator[Section]:
    yield from filled_section("time", "Where the time goes", places_table(result), pool_table(result))
    folds: list[Block] = []
    for place, request in enumerate(result.requests):
        table = templates_table(request, width=_LINE)
        if table is not None:
            folds.append(
                Fold(f"Statements of {request.name}", (table,), open=place == 0, id=request_id(place))
            )
    yield from filled_section("requests", "Requests", requests_table(result), *folds)
    yield from filled_section("processes", "Processes", workers_table(result))
    found = None if result.database is None else build_database_document(result.database)
    routes = (
        next((section.blocks for section in found.sections if section.id == "routes"), ()) if found else ()
    )
    yield from filled_section("functions", "Functions of each request", functions_table(result))
    yield from filled_section("routes", "Routes", routes_table(result), *(routes or (origins_table(result),)))


def _parts(result: ServiceResult, load: Document | None, flames: Sequence[Flame]) -> Iterator[Section]:
    """Yield the sections of the reports on the functions, the database and the load."""
    if result.code is not None:
        yield from _of("code", "Functions", build_stack_document(result.code, flames))
    if result.database is not None:
        yield from _of("database", "Database", build_database_document(result.database))
    if result.log is not None:
        yield from _of("log", "Log", build_log_document(result.log))
    if load is not None:
        yield from _of("load", "Load", load)


def _of(name: str, title: str, document: Document) -> Iterator[Section]:
    for section in document.sections:
        if f"{name}-{section.id}" in _LEFT_OUT:
            continue
        shown = f"{title}: {uncapital(section.title)}"
        yield replace(section, id=f"{name}-{section.id}", title=shown)


def _end(result: ServiceResult) -> Iterator[Section]:
    if result.run.reproduce:
        yield Section("reproduce", "How to repeat this profile", (Code(result.run.reproduce, "sh"),))


# ---- in the terminal ----

_NUMBERS: Final = 44
"""Characters that the numbers of a statement take."""
_LEAST_TEXT: Final = 30


def render_service_terminal(
    result: ServiceResult, console: Console, *, top: int = 5, full: bool = False
) -> None:
    """Print the report: the statements of the costliest request, or with `full` of all; `top` functions."""
    write_report(
        console, build_service_document(result), _terminal_parts(result, console.width, top, full=full)
    )


def _terminal_parts(result: ServiceResult, width: int, top: int, *, full: bool) -> Iterator[TerminalPart]:
    yield places_table(result)
    yield pool_table(result)
    yield requests_table(result)
    for request in result.requests if full else result.requests[:1]:
        yield templates_table(request, width=max(_LEAST_TEXT, width - _NUMBERS))
    yield workers_table(result)
    yield functions_table(result)
    yield routes_table(result) or origins_table(result)
    if result.code is not None:
        for measure in [measure for measure in result.code.measures if measure.name != "off-cpu"][:1]:
            yield frames_table(measure, top)
