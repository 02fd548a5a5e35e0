"""How logs are read and reported."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Final

from uncork.analysis.log.comparison import absent_from, compare_logs
from uncork.analysis.log.result import stored_log_result
from uncork.model.results.log import LogResult
from uncork.model.results.log_comparison import LogComparison
from uncork.report.blocks import Document
from uncork.report.log.answer import answer_log
from uncork.report.log.comparison import answer_log_comparison
from uncork.report.log.document import PARTS_OF_MARKDOWN, build_log_document, render_log_terminal
from uncork.workbench.documents.kinds import Kind


def read_log(folder: Path, also: Collection[str] = ()) -> LogResult:
    """Return the result of a stored log, with its sentences; `also` as in `log_result`.

    Raises StoreError if its files are damaged.
    """
    return answer_log(stored_log_result(folder, also))


def _page(_: Path, result: LogResult) -> Document:
    return build_log_document(result)


KIND: Final = Kind(
    read_log,
    partial(build_log_document, parts=PARTS_OF_MARKDOWN),
    partial(render_log_terminal, top=10),
    _page,
)


def compare_stored_logs(
    before: Path, after: Path, results: tuple[LogResult, LogResult] | None = None
) -> LogComparison:
    """Return the changes between two stored logs, with their sentences; `results` are theirs, if known.

    Raises StoreError if their files are damaged.
    """
    old, new = results or (read_log(before), read_log(after))
    in_new, in_old = absent_from(old, new), absent_from(new, old)
    if in_new:
        old = read_log(before, in_new)
    if in_old:
        new = read_log(after, in_old)
    return answer_log_comparison(compare_logs(old, new))
