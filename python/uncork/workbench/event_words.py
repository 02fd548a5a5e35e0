"""What is said while something is measured, a line each."""

from __future__ import annotations

from uncork.experiment.run.events import (
    BudgetShort,
    Event,
    Evidenced,
    Finished,
    Preparing,
    Recovered,
    Refused,
    RoundEnded,
    RoundStarted,
    Skipped,
)
from uncork.model.load import LoadProgress
from uncork.model.sweep import SweepSpec, Visit
from uncork.model.units import count_words, format_bytes, format_count, format_duration

__all__ = ["RunSteps", "event_line", "progress_line", "reading_line", "time_left", "visit_line"]


class RunSteps:
    """What is said of an experiment's steps and rounds; single trials are not worth a line."""

    def __init__(self, budget_ns: int) -> None:
        self._budget_ns = budget_ns
        self._said = ""

    def line(self, event: Event) -> str | None:
        """Return what is said of an event; None where nothing is."""
        if isinstance(event, Preparing):
            stage, before = event.what.split(" ")[0], self._said
            self._said = stage
            return None if stage == before else f"{event.what} (1 of {event.total})"
        if isinstance(event, RoundStarted):
            still = count_words(event.comparisons, "comparison")
            return f"round {event.number}: {still} to measure, {time_left(event.used_ns, self._budget_ns)}"
        return event_line(event)


def event_line(event: Event) -> str | None:
    """Return what is said of an event that is worth a line however a run is shown; None of others."""
    line = None
    match event:
        case Refused():
            line = f"{event.variant} is refused on {event.workload}{event.cell.at}: {event.reason}"
        case Skipped():
            place = "" if event.everywhere else f" on {event.workload}{event.cell.at}"
            line = f"{event.variant} is skipped{place}: {event.reason}"
        case BudgetShort():
            line = f"warning: {event.message}"
        case Recovered():
            line = event.message
        case RoundEnded():
            widest = f"; widest ±{event.widest:.1%}: {event.widest_name}" if event.widest is not None else ""
            settled = f"{event.settled} of {event.comparisons} comparisons settled"
            line = f"round {event.number} done: {settled}{widest}"
        case Evidenced():
            told = "gathered" if event.lack is None else f"not gathered: {event.lack}"
            line = f"evidence of {event.variant} on {event.workload}{event.cell.at}: {told}"
        case Finished():
            failed = f", {event.failed} of them failed" if event.failed else ""
            line = f"{event.trials} trials{failed} in {format_duration(event.elapsed_ns)}: {event.reason}"
    return line


def time_left(used_ns: int, budget_ns: int) -> str:
    """Say how much of the budget is left."""
    return f"{format_duration(max(budget_ns - used_ns, 0))} left at most"


def reading_line(done: int, entries: int, size: int | None, seconds: float) -> str:
    """Say how far reading logs has come: `done` bytes of `size`, where that is known, in so many seconds."""
    rate = done / seconds
    left = f", {max(0.0, (size - done) / rate):.0f} s left" if size else ""
    share = f"{100 * min(1.0, done / size):.0f} %, " if size else ""
    return f"{share}{format_count(entries)} entries, {format_bytes(rate)}/s{left}"


def progress_line(
    progress: LoadProgress,
    *,
    open_loop: bool,
    http: bool = False,
    at: float | None = None,
    limited: bool = False,
    tries: bool = False,
) -> str:
    """Return how a load goes, in one line that begins as pgbench's does.

    `at` is Unix time in place of the time elapsed; `limited` says that late arrivals are skipped, `tries`
    that a transaction may be tried again.
    """
    unit, clients = ("requests/s", "connections") if http else ("tps", "clients")
    when = f"{progress.elapsed_ns / 1e9:.1f} s" if at is None else f"{at:.3f} s"
    rate = progress.succeeded / progress.seconds if progress.seconds else 0.0
    parts = [
        f"progress: {when}, {rate:.1f} {unit}",
        f"lat {progress.mean_ns / 1e6:.3f} ms stddev {progress.stddev_ns / 1e6:.3f}",
        f"{progress.failed} failed",
    ]
    if limited:
        parts.append(f"{progress.skipped} skipped")
    if tries:
        parts.append(f"{progress.retries} retries")
    quantiles = ((progress.p50_ns, "p50"), (progress.p99_ns, "p99"), (progress.max_ns, "max"))
    parts.append(" ".join(f"{name} {value / 1e6:.3f}" for value, name in quantiles))
    if open_loop:
        parts += [f"backlog {progress.backlog}", f"{clients} {progress.clients}"]
        parts.append(f"late p99 {progress.lateness_p99_ns / 1e6:.3f} ms")
    return ", ".join(parts)


def visit_line(visit: Visit, spec: SweepSpec, unit: str) -> str:
    """Return what a visit saw in one line."""
    phase = f"round {visit.round}" if visit.round else "exploring"
    one = visit.level == 1
    noun = "a second" if spec.axis == "rate" else spec.axis.removesuffix("s" if one else "")
    level = f"{visit.level:g} {noun}"
    p99 = "" if visit.p99_ns is None else f", p99 {format_duration(visit.p99_ns)}"
    wrong = f", {visit.wrong} went wrong" if visit.wrong else ""
    return f"{phase}, {level}: {visit.throughput:.1f} {unit}{p99}{wrong}"
