"""The terminal writer of a profiled service: the bottleneck, where the time goes, and the requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console

from uncork.model.results.service import ServiceResult
from uncork.report.service.document import build_service_document
from uncork.report.service.tables import (
    functions_table,
    origins_table,
    places_table,
    pool_table,
    requests_table,
    routes_table,
    templates_table,
    workers_table,
)
from uncork.report.stacks.tables import frames_table
from uncork.report.write.terminal_text import TerminalPart, write_report

_NUMBERS: Final = 44
"""Characters that the numbers of a statement take."""
_LEAST_TEXT: Final = 30


def render_service_terminal(
    result: ServiceResult, console: Console, *, top: int = 5, full: bool = False
) -> None:
    """Print the report: the statements of the costliest request, or with `full` of all; `top` functions."""
    write_report(console, build_service_document(result), _parts(result, console.width, top, full=full))


def _parts(result: ServiceResult, width: int, top: int, *, full: bool) -> Iterator[TerminalPart]:
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
