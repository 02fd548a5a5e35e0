"""The dashboard's metrics for Prometheus: stored runs, metrics of named runs, and requests."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from uncork.model.results.figure import Figure, RunFigures
from uncork.model.stored_run import StoredRun

_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_MOST_FIGURES: Final = 200
_UNITS: Final = {
    "ns": ("seconds", 1e-9, "times"),
    "B": ("bytes", 1.0, "sizes"),
    "/s": ("per_second", 1.0, "rates"),
    "share": ("share", 1.0, "shares from 0 to 1"),
    "ratio": ("ratio", 1.0, "ratios to the baseline of an experiment"),
    "": ("value", 1.0, "plain numbers"),
}


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


def exposition(
    metrics: Metrics,
    runs: Sequence[StoredRun],
    damaged: int,
    now: datetime,
    named: Sequence[tuple[str, RunFigures]] = (),
) -> str:
    """Return all metrics in Prometheus's text format, version 0.0.4; `named` are the names of runs."""
    return "\n".join((*_runs(runs, damaged, now), *_named(named), *_requests(metrics), ""))


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


def _named(named: Sequence[tuple[str, RunFigures]]) -> Iterator[str]:
    """Yield the metrics of named runs, in Prometheus's base units; those of a run as a whole come first.

    The run's id is only a label of uncork_named_run_info: a name that moves to a newer run keeps its series.
    """
    if not named:
        return
    yield from _head("uncork_named_run_info", "gauge", "The run that has a name; always 1.")
    for name, run in named:
        labels = {"name": name, "run": run.id, "kind": run.kind, "commit": run.commit or ""}
        yield f"uncork_named_run_info{_labels(labels)} 1"
    title = "uncork_named_run_started_timestamp_seconds"
    yield from _head(title, "gauge", "When the run that has a name started.")
    for name, run in named:
        yield f"{title}{_labels({'name': name})} {datetime.fromisoformat(run.started_at).timestamp():.0f}"
    for unit, (ending, factor, meaning) in _UNITS.items():
        lines = [
            f"uncork_named_run_{ending}"
            f"{_labels({'name': name, 'metric': figure.name, 'of': figure.subject})} "
            f"{figure.value * factor!r}"
            for name, run in named
            for figure in _served(run)
            if figure.unit == unit
        ]
        if lines:
            yield from _head(f"uncork_named_run_{ending}", "gauge", f"Metrics of named runs: {meaning}.")
            yield from lines


def _served(run: RunFigures) -> list[Figure]:
    distinct = {figure.key: figure for figure in run.figures}.values()
    return sorted(distinct, key=lambda one: bool(one.subject))[:_MOST_FIGURES]


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


def _labels(values: Mapping[str, str]) -> str:
    """Return labels in braces; empty ones are left out, which Prometheus treats alike."""
    return "{" + ",".join(f'{name}="{_label(text)}"' for name, text in values.items() if text) + "}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
