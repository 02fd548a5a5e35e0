"""Show a run while it goes: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from uncork.cli.console import note, talk
from uncork.experiment.events import (
    Event,
    Evidenced,
    Finished,
    Preparing,
    Recovered,
    Refused,
    RoundEnded,
    RoundStarted,
    Skipped,
    TrialEnded,
)
from uncork.model.units import format_duration

__all__ = ["View", "progress_view"]


class View(Protocol):
    """Shows events."""

    def show(self, event: Event) -> None:
        """Show one event."""


@contextmanager
def progress_view(name: str, budget_ns: int) -> Iterator[View]:
    """Open the view that suits standard error."""
    note(f"run {name}")
    if not talk.is_terminal:
        yield PlainView(budget_ns)
        return
    columns = (
        TextColumn("[bold]{task.fields[stage]}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[what]}"),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=talk, transient=True, refresh_per_second=4) as progress:
        yield LiveView(progress, budget_ns)


class PlainView:
    """One line for each step, so that a log of it stays short."""

    def __init__(self, budget_ns: int) -> None:
        self._budget_ns = budget_ns
        self._said = ""

    def show(self, event: Event) -> None:
        """Write a line for steps and rounds; single trials are not worth one."""
        if isinstance(event, Preparing):
            stage = event.what.split(" ")[0]
            if stage != self._said:
                note(f"{event.what} (1 of {event.total})")
            self._said = stage
        elif isinstance(event, RoundStarted):
            note(
                f"round {event.number}: {event.trials} trials, {time_left(event.elapsed_ns, self._budget_ns)}"
            )
        else:
            note_others(event)


class LiveView:
    """A bar with the stage, the current cell and block, the widest interval, and the time left."""

    def __init__(self, progress: Progress, budget_ns: int) -> None:
        self._progress = progress
        self._budget_ns = budget_ns
        self._task: TaskID = progress.add_task("", stage="starting", what="", left="", total=None)
        self._stage = ""
        self._interval = ""

    def show(self, event: Event) -> None:
        """Redraw."""
        if isinstance(event, Preparing):
            self._progress.update(
                self._task, stage="preparing", what=event.what, completed=event.done, total=event.total
            )
        elif isinstance(event, RoundStarted):
            self._stage = f"round {event.number}"
            self._progress.update(
                self._task, stage=self._stage, what="restarting the server", completed=0, total=event.trials
            )
        elif isinstance(event, TrialEnded):
            trial = event.trial
            parts = [trial.cell.name] if trial.cell.levels else []
            parts += [trial.workload, f"block {trial.block}", trial.arm.name]
            what = " · ".join(parts) + self._interval
            self._progress.update(
                self._task, advance=1, what=what, left=time_left(event.elapsed_ns, self._budget_ns)
            )
        else:
            if isinstance(event, RoundEnded):
                self._interval = f" · widest ±{event.widest:.1%}" if event.widest is not None else ""
            note_others(event)


def note_others(event: Event) -> None:
    """Write what is worth a line in either view."""
    if isinstance(event, Refused):
        note(f"{event.variant} is refused on {event.workload}{event.cell.at}: {event.reason}")
    elif isinstance(event, Skipped):
        place = "" if event.everywhere else f" on {event.workload}{event.cell.at}"
        note(f"{event.variant} is skipped{place}: {event.reason}")
    elif isinstance(event, Recovered):
        note(event.message)
    elif isinstance(event, RoundEnded):
        widest = f"; widest ±{event.widest:.1%}: {event.widest_name}" if event.widest is not None else ""
        note(f"round {event.number} done: {event.settled} of {event.comparisons} comparisons settled{widest}")
    elif isinstance(event, Evidenced):
        told = "gathered" if event.lack is None else f"not gathered: {event.lack}"
        note(f"evidence of {event.variant} on {event.workload}{event.cell.at}: {told}")
    elif isinstance(event, Finished):
        failed = f", {event.failed} of them failed" if event.failed else ""
        note(f"{event.trials} trials{failed} in {format_duration(event.elapsed_ns)}: {event.reason}")


def time_left(elapsed_ns: int, budget_ns: int) -> str:
    """Say how much of the budget is left."""
    return f"{format_duration(max(budget_ns - elapsed_ns, 0))} left at most"
