"""Data goes to standard output, messages to standard error; rich decides colour and width."""

from __future__ import annotations

import getpass
import math
import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console
from rich.table import Table

from uncork.cli.exit_codes import ExitStatus
from uncork.errors import UsageError
from uncork.model.units import count_words, format_duration

if TYPE_CHECKING:
    from uncork.experiment.plan.forecast import WorkloadForecast
    from uncork.experiment.plan.order import PlanDocument
    from uncork.requests.shared_options import ServerNames

_EVERY_S: Final = 10.0
"""Least time between lines of progress where standard error is not a terminal, in seconds."""
_PACE: Final = "UNCORK_PROGRESS_S"
"""Environment variable that sets another time."""


_COMMAND: Final = re.compile(r"`[^`\n]+`|\S+ -m pip [^;\n]*|export \S+=\S+")
"""A command in a message."""


class _StreamConsole(Console):
    """A console with the encoding of its stream; rich assumes that standard streams are UTF-8."""

    @property
    def encoding(self) -> str:
        """The stream's encoding in lower case."""
        return (getattr(self.file, "encoding", None) or "utf-8").lower()


output = _StreamConsole(highlight=False)
talk = _StreamConsole(stderr=True, highlight=False)


def asked_password(options: ServerNames) -> str | None:
    """Ask for a password on the terminal, if the options say so; return None if they do not.

    Raises UsageError if there is no terminal, or nothing was typed.
    """
    if not options.password:
        return None
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        raise UsageError(
            "-W/--password asks on a terminal, and there is none: set PGPASSWORD, or write a password file "
            "(.pgpass)"
        ) from error
    try:
        password = getpass.getpass("Password: ")
    except EOFError:
        password = ""
    if not password:
        raise UsageError("no password was typed: try again, or leave out -W/--password")
    return password


def note(text: str) -> None:
    """Print a message to standard error."""
    talk.print(_in_lines(f"uncork: {text}", talk), markup=False, emoji=False, soft_wrap=True)


def end_early(status: str, trouble: str, kept: str) -> None:
    """Raise typer.Exit if a run was interrupted, or broke off with `trouble`; `kept` says what is kept."""
    if status == "interrupted":
        note(f"interrupted; {kept}")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if trouble:
        note(f"{trouble}; {kept}")
        raise typer.Exit(ExitStatus.RUN_ERROR)


def _in_lines(text: str, console: Console) -> str:
    """Break a text between words if it goes to a terminal, but no command, so that it can be copied."""
    if not console.is_terminal:
        return text
    from uncork.report.write.terminal_text import wrapped  # noqa: PLC0415 -- the first sample comes sooner

    held = _COMMAND.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    return "\n".join(line for part in held.split("\n") for line in wrapped(part, console.width))


class Pace:
    """Decides which lines of progress are shown: all in a terminal, else the first and then one now and then.

    `every_s` is the least time between two lines, and `clock` returns the time in seconds.
    """

    def __init__(self, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._last = -math.inf

    def due(self) -> bool:
        """Return whether a line may be shown now, and count it as shown."""
        now = self._clock()
        if now - self._last < self._every_s:
            return False
        self._last = now
        return True


def _pace() -> Pace:
    try:
        return Pace(max(0.0, float(os.environ.get(_PACE, _EVERY_S))))
    except ValueError:
        return Pace(_EVERY_S)


_shared_pace: Final = _pace()


def progress(text: str) -> None:
    """Print a line of progress to standard error; if that is no terminal, at most one every ten seconds."""
    if talk.is_terminal or _shared_pace.due():
        note(text)


def show_live(text: str, elapsed_ns: float) -> None:
    """Show progress on standard error: in a terminal a line that the next one replaces.

    Elsewhere it is a line of progress, from ten seconds after the beginning.
    """
    if talk.is_terminal:
        talk.file.write(f"\r\033[K{text[: talk.width - 1]}")
        talk.file.flush()
    elif elapsed_ns >= _EVERY_S * 1e9:
        progress(text)


def end_live() -> None:
    """Clear the live line of a terminal."""
    if talk.is_terminal:
        talk.file.write("\r\033[K")


def show_plan(plan: PlanDocument) -> None:
    """Print a plan."""
    output.print(f"[bold]{plan.experiment}[/]: {plan.question}")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("variants", ", ".join(plan.variants) + f" (baseline: {plan.baseline}, runs twice)")
    for factor, levels in plan.factors.items():
        table.add_row(f"factor {factor}", ", ".join(levels))
    table.add_row("workloads", ", ".join(plan.workloads))
    table.add_row("cells", f"{len(plan.cells)} ({plan.comparisons} comparisons with the baseline)")
    table.add_row("a round", f"{plan.blocks_a_round} blocks, {plan.trials_a_round} trials in random order")
    least, most = plan.rounds
    expected = f", about {plan.forecasts[0].rounds} in this budget" if plan.forecasts else ""
    table.add_row("rounds", f"{least} to {most}{expected}; each restarts the server (embedded)")
    if plan.setup_ns is not None:
        table.add_row("set-up", f"about {format_duration(plan.setup_ns)}, as in the run named below")
    table.add_row("time", f"about {format_duration(plan.round_ns)} a round, after creating the data")
    table.add_row("", f"at most {format_duration(plan.worst_ns)} for the whole run, the budget")
    for forecast in plan.forecasts:
        table.add_row(f"expected on {forecast.workload}", forecast_words(forecast, plan.worst_ns))
    if plan.evidence:
        took = f": afterwards, for about {format_duration(plan.evidence_ns)}" if plan.evidence_ns else ""
        table.add_row("evidence", ", ".join(plan.evidence) + took)
    table.add_row("seed", str(plan.seed))
    output.print(table)
    if plan.basis:
        say(f"The expected intervals are based on {plan.basis}.")
    for sentence in plan.reasons:
        say(f"- {sentence}")
    for sentence in plan.warnings:
        say(f"Warning: {sentence}")


def say(text: str) -> None:
    """Print a text to standard output; in a terminal, its lines break between words."""
    output.print(_in_lines(text, output), markup=False, soft_wrap=True)


def forecast_words(forecast: WorkloadForecast, budget_ns: int) -> str:
    """Describe the expected width of a workload's intervals, and the budget for the requested precision."""
    budget = format_duration(budget_ns)
    now = (
        f"no interval in {budget}: enough for only {count_words(forecast.rounds, 'round')}"
        if forecast.half_width is None
        else f"±{forecast.half_width:.1%} in {budget}"
    )
    if forecast.needed_ns is None:
        return f"{now}; ±{forecast.precision:.1%} would take more than a day"
    return f"{now}; ±{forecast.precision:.1%} takes about {format_duration(forecast.needed_ns)} (--budget)"
