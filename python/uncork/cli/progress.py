"""Progress of a run: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from uncork.cli.console import note, progress, talk
from uncork.experiment.run.events import Event, Preparing, RoundEnded, RoundStarted, TrialEnded
from uncork.workbench.event_words import RunSteps, event_line, time_left


class View(Protocol):
    """Shows events."""

    def show(self, event: Event) -> None:
        """Show one event."""


@contextmanager
def progress_view(name: str, budget_ns: int) -> Iterator[View]:
    """Open the view for standard error: live in a terminal, otherwise plain."""
    note(f"run {name}")
    if not talk.is_terminal:
        yield PlainView(budget_ns)
        return
    columns = (
        TextColumn("[bold]{task.fields[stage]}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[what]}"),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=talk, transient=True, refresh_per_second=4) as bar:
        yield LiveView(bar, budget_ns)


class PlainView:
    """A line per step and round, at most one every ten seconds; what needs attention is always shown."""

    def __init__(self, budget_ns: int) -> None:
        self._steps = RunSteps(budget_ns)

    def show(self, event: Event) -> None:
        """Write a line for each step and round that is due; single trials get none."""
        line = self._steps.line(event)
        if line is not None:
            (progress if isinstance(event, Preparing | RoundStarted | RoundEnded) else note)(line)


class LiveView:
    """A bar with the stage, the current cell and block, the widest interval, and the time left."""

    def __init__(self, progress: Progress, budget_ns: int) -> None:
        self._progress = progress
        self._budget_ns = budget_ns
        self._task: TaskID = progress.add_task("", stage="starting", what="", left="", total=None)
        self._stage = ""
        self._interval = ""
        self._unbudgeted_ns = 0

    def show(self, event: Event) -> None:
        """Redraw."""
        if isinstance(event, Preparing):
            self._progress.update(
                self._task, stage="preparing", what=event.what, completed=event.done, total=event.total
            )
        elif isinstance(event, RoundStarted):
            self._stage = f"round {event.number}"
            self._unbudgeted_ns = event.elapsed_ns - event.used_ns
            self._progress.update(
                self._task, stage=self._stage, what="restarting the server", completed=0, total=event.trials
            )
        elif isinstance(event, TrialEnded):
            trial = event.trial
            parts = [trial.cell.name] if trial.cell.levels else []
            parts += [trial.workload, f"block {trial.block}", trial.arm.name]
            what = " · ".join(parts) + self._interval
            self._progress.update(
                self._task,
                advance=1,
                what=what,
                left=time_left(event.elapsed_ns - self._unbudgeted_ns, self._budget_ns),
            )
        else:
            if isinstance(event, RoundEnded):
                self._interval = f" · widest ±{event.widest:.1%}" if event.widest is not None else ""
            line = event_line(event)
            if line is not None:
                note(line)
