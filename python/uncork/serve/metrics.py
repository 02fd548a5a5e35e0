"""The dashboard's metrics for Prometheus: stored runs, and requests."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from uncork.model.stored_run import StoredRun

__all__ = ["Metrics", "exposition"]

_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts and times of requests; `refused` counts refusals by reason, `streams` open event streams."""

    def __init__(self) -> None:
        self.streams = 0
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.refused: Counter[str] = Counter()
        self.seconds: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS_S) + 1))
        self.sums: defaultdict[str, float] = defaultdict(float)

    def count(self, page: str, method: str, status: int, seconds: float) -> None:
        """Count one request. Methods other than GET, HEAD and POST count as ``other``."""
        method = method if method in ("GET", "HEAD", "POST") else "other"
        self.requests[page, method, status] += 1
        if page != "events":  # the stream of a page that follows a run stays open as long as the page
            self.seconds[page][bisect.bisect_left(_BOUNDS_S, seconds)] += 1
            self.sums[page] += seconds


def exposition(metrics: Metrics, runs: Sequence[StoredRun], damaged: int, now: datetime) -> str:
    """Return all metrics in Prometheus's text format, version 0.0.4."""
    return "\n".join((*_runs(runs, damaged, now), *_requests(metrics), ""))


def _runs(runs: Sequence[StoredRun], damaged: int, now: datetime) -> Iterator[str]:
    yield from _head("uncork_runs", "gauge", "Stored runs.")
    for (kind, status), number in sorted(Counter((run.kind, run.status) for run in runs).items()):
        yield f'uncork_runs{{kind="{_label(kind)}",status="{_label(status)}"}} {number}'
    yield from _head("uncork_damaged_runs", "gauge", "Stored runs that cannot be read.")
    yield f"uncork_damaged_runs {damaged}"
    newest: dict[str, datetime] = {}
    for run in runs:
        started = run.started()
        if started is not None:
            newest[run.kind] = max(started, newest.get(run.kind, started))
    yield from _head("uncork_newest_run_age_seconds", "gauge", "Time since the newest run of a kind started.")
    for kind, started in sorted(newest.items()):
        yield f'uncork_newest_run_age_seconds{{kind="{_label(kind)}"}} {(now - started).total_seconds():.0f}'


def _requests(metrics: Metrics) -> Iterator[str]:
    yield from _head("uncork_serve_requests_total", "counter", "Requests answered.")
    for (page, method, status), number in sorted(metrics.requests.items()):
        yield f'uncork_serve_requests_total{{page="{page}",method="{method}",status="{status}"}} {number}'
    yield from _head("uncork_serve_refused_total", "counter", "Requests refused.")
    for reason, number in sorted(metrics.refused.items()):
        yield f'uncork_serve_refused_total{{reason="{reason}"}} {number}'
    name = "uncork_serve_request_seconds"
    yield from _head(name, "histogram", "Time to answer.")
    for page, counts in sorted(metrics.seconds.items()):
        total = 0
        for bound, number in zip((*_BOUNDS_S, "+Inf"), counts, strict=True):
            total += number
            yield f'{name}_bucket{{page="{page}",le="{bound}"}} {total}'
        yield f'{name}_sum{{page="{page}"}} {metrics.sums[page]:.6f}'
        yield f'{name}_count{{page="{page}"}} {total}'


def _head(name: str, kind: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
