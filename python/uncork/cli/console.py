"""Data goes to standard output, talk to standard error; colour and width are rich's to decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from uncork.model.units import count_words, format_duration

if TYPE_CHECKING:
    from uncork.experiment.plan.forecast import WorkloadForecast
    from uncork.experiment.plan.order import PlanDocument

__all__ = ["forecast_words", "note", "output", "show_plan", "talk"]


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
    expected = f", about {plan.forecasts[0].rounds} in this budget" if plan.forecasts else ""
    table.add_row("rounds", f"{least} to {most}{expected}; each is a new life of the server (embedded)")
    table.add_row("time", f"about {format_duration(plan.round_ns)} a round; making the data comes before it")
    table.add_row("", f"at worst {format_duration(plan.worst_ns)}: the budget ends the rounds")
    for one in plan.forecasts:
        table.add_row(f"expected on {one.workload}", forecast_words(one, plan.worst_ns))
    if plan.evidence:
        many = len(plan.variants) * len(plan.workloads)
        table.add_row("evidence", f"{', '.join(plan.evidence)}: afterwards, {many} trials of up to some 10 s")
    table.add_row("seed", str(plan.seed))
    output.print(table)
    if plan.basis:
        output.print(f"The expected intervals rest on {plan.basis}.", markup=False, soft_wrap=True)
    for sentence in plan.reasons:
        output.print(f"- {sentence}", markup=False, soft_wrap=True)
    for sentence in plan.warnings:
        output.print(f"Warning: {sentence}", markup=False, soft_wrap=True)


def forecast_words(one: WorkloadForecast, budget_ns: int) -> str:
    """Say how narrow a workload's intervals will be, and which budget reaches the precision asked for."""
    budget = format_duration(budget_ns)
    now = (
        f"no interval in {budget}: it holds {count_words(one.rounds, 'round')}"
        if one.half_width is None
        else f"±{one.half_width:.1%} in {budget}"
    )
    if one.needed_ns is None:
        return f"{now}; ±{one.precision:.1%} is out of reach even in a day"
    return f"{now}; ±{one.precision:.1%} takes about {format_duration(one.needed_ns)} (--budget)"
