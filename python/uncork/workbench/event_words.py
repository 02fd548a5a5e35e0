"""Progress messages: one line for each event of a run, a load or a sweep."""

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
from uncork.model.sweep import SweepSpec
from uncork.model.tables.sweep import LoadStep
from uncork.model.units import count_words, format_duration


class RunSteps:
    """Words the steps and rounds of an experiment, one line each. Single trials get no line."""

    def __init__(self, budget_ns: int) -> None:
        self._budget_ns = budget_ns
        self._stage = ""

    def line(self, event: Event) -> str | None:
        """Return the line for an event; None if it has none."""
        if isinstance(event, Preparing):
            stage, before = event.what.split(" ")[0], self._stage
            self._stage = stage
            if stage == before:
                return None
            return event.what if event.total == 1 else f"{event.what} (1 of {event.total})"
        if isinstance(event, RoundStarted):
            comparisons = count_words(event.comparisons, "comparison")
            return (
                f"round {event.number}: measuring {comparisons}, {time_left(event.used_ns, self._budget_ns)}"
            )
        return event_line(event)


def event_line(event: Event) -> str | None:
    """Return the line for an event that is always shown; None for other events."""
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
            settled = f"{event.settled} of {event.comparisons} comparisons settled"
            line = f"round {event.number} done: {settled}"
            if event.widest is not None:
                line += f"; widest interval ±{event.widest:.1%} ({event.widest_name})"
        case Evidenced():
            place = f"{event.variant} on {event.workload}{event.cell.at}"
            line = f"collected evidence for {place}"
            if event.lack is not None:
                line = f"no evidence for {place}: {event.lack}"
        case Finished():
            failed = f" ({event.failed} failed)" if event.failed else ""
            trials = count_words(event.trials, "trial")
            line = f"{trials}{failed} in {format_duration(event.elapsed_ns)}: {event.reason}"
    return line


def time_left(used_ns: int, budget_ns: int) -> str:
    """Return how much of the budget is left."""
    return f"at most {format_duration(max(budget_ns - used_ns, 0))} left"


def progress_line(
    progress: LoadProgress,
    *,
    open_loop: bool,
    http: bool = False,
    at: float | None = None,
    limited: bool = False,
    tries: bool = False,
) -> str:
    """Return the progress of a load in one line, which begins like pgbench's.

    `at` is a Unix time to show instead of the time elapsed. `limited` means that late arrivals are
    skipped, and `tries` that failed transactions are retried; each adds a count to the line.
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


def load_step_line(step: LoadStep, spec: SweepSpec, unit: str) -> str:
    """Return the result of a load step in one line."""
    phase = f"round {step.round}" if step.round else "exploring"
    one = step.level == 1
    noun = "a second" if spec.axis == "rate" else spec.axis.removesuffix("s" if one else "")
    level = f"{step.level:g} {noun}"
    p99 = "" if step.p99_ns is None else f", p99 {format_duration(step.p99_ns)}"
    wrong = f", {step.wrong} failed, unsent or refused" if step.wrong else ""
    return f"{phase}, {level}: {step.throughput:.1f} {unit}{p99}{wrong}"
