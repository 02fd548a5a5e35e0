"""Compare two stored logs, with all templates that either report shows."""

from __future__ import annotations

from pathlib import Path

from uncork.analysis.log.comparison import absent_from, compare_logs
from uncork.analysis.log.result import stored_log_result
from uncork.model.results.log import LogResult
from uncork.model.results.log_comparison import LogComparison
from uncork.report.log.answer import answer_log
from uncork.report.log.comparison import answer_log_comparison

__all__ = ["compare_stored_logs"]


def compare_stored_logs(
    before: Path, after: Path, results: tuple[LogResult, LogResult] | None = None
) -> LogComparison:
    """Return the changes between two stored logs, with their sentences. `results` are theirs, if known.

    Raises:
        StoreError: if their files are damaged.
    """
    old, new = results or (stored_log_result(before), stored_log_result(after))
    in_new, in_old = absent_from(old, new), absent_from(new, old)
    if in_new:
        old = stored_log_result(before, in_new)
    if in_old:
        new = stored_log_result(after, in_old)
    return answer_log_comparison(compare_logs(answer_log(old), answer_log(new)))
