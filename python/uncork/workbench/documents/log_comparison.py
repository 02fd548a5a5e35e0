"""Compare two stored logs, with all templates that either report shows."""

from __future__ import annotations

from pathlib import Path

from uncork.analysis.log.comparison import absent_from, compare_logs
from uncork.model.results.log import LogResult
from uncork.model.results.log_comparison import LogComparison
from uncork.report.log.comparison import answer_log_comparison
from uncork.workbench.documents.logs import read_log


def compare_stored_logs(
    before: Path, after: Path, results: tuple[LogResult, LogResult] | None = None
) -> LogComparison:
    """Return the changes between two stored logs, with their sentences; `results` are theirs, if known.

    Raises:
        StoreError: if their files are damaged.
    """
    old, new = results or (read_log(before), read_log(after))
    in_new, in_old = absent_from(old, new), absent_from(new, old)
    if in_new:
        old = read_log(before, in_new)
    if in_old:
        new = read_log(after, in_old)
    return answer_log_comparison(compare_logs(old, new))
