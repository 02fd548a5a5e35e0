"""Data goes to standard output, talk to standard error; colour and width are rich's to decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from uncork.model.units import format_duration

if TYPE_CHECKING:
    from uncork.experiment.plan import PlanDocument

__all__ = ["note", "output", "show_plan", "talk"]


class _StreamConsole(Console):
    """A console that knows what its stream can show: rich takes standard streams for UTF-8."""

    @property
    def encoding(self) -> str:
        """Name the stream's encoding in lower case."""
        return (getattr(self.file, "encoding", None) or "utf-8").lower()


output = _StreamConsole(highlight=False)
talk = _StreamConsole(stderr=True, highlight=False)


def note(text: str) -> None:
    """Say something beside the data."""
    talk.print(f"uncork: {text}", markup=False, soft_wrap=True)


def show_plan(plan: PlanDocument) -> None:
    """Print a plan for people."""
    output.print(f"[bold]{plan.experiment}[/]: {plan.question}")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("variants", ", ".join(plan.variants) + f" (baseline: {plan.baseline}, runs twice)")
    for factor, levels in plan.factors.items():
        table.add_row(f"factor {factor}", ", ".join(levels))
    table.add_row("workloads", ", ".join(plan.workloads))
    table.add_row("cells", f"{len(plan.cells)}, so {plan.comparisons} comparisons with the baseline")
    table.add_row("a round", f"{plan.blocks_a_round} blocks, {plan.trials_a_round} trials in random order")
    least, most = plan.rounds
    table.add_row("rounds", f"{least} to {most}; each is a new life of the server (embedded)")
    table.add_row("time", f"about {format_duration(plan.round_ns)} a round and set-up once (a rough guess)")
    table.add_row("", f"at worst {format_duration(plan.worst_ns)}: the budget ends the run")
    if plan.evidence:
        many = len(plan.variants) * len(plan.workloads)
        table.add_row("evidence", f"{', '.join(plan.evidence)}: afterwards, {many} trials of up to some 10 s")
    table.add_row("seed", str(plan.seed))
    output.print(table)
    for sentence in plan.warnings:
        output.print(f"Warning: {sentence}", markup=False, soft_wrap=True)
