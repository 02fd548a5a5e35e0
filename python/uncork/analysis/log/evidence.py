"""Gather the evidence for rules from logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from uncork.advise.evidence import Evidence, Piece, Statement
from uncork.model.database.plan import StatementPlan
from uncork.model.results.database import CPU
from uncork.model.results.log import LogResult, TemplateFacts
from uncork.profile.plans.tree import statement_plan
from uncork.profile.statement_shape import statement_shape
from uncork.stats.sampled_time import BATCHES

__all__ = ["evidence_of_log", "executed_plans"]

_SHAPES: Final = 2_000
"""The most statements to take apart: those with the most time."""


def evidence_of_log(result: LogResult, shapes: int = _SHAPES) -> Evidence:
    """Return the evidence of a log: the time of its statements, without the catalogue. Pure.

    The `shapes` statements with the most time are taken apart.

    All time of an execution counts as work: a log does not tell what a statement waited for.
    """
    first, last = result.first_us, result.last_us
    seconds = max(1.0, (last - first) / 1e6) if first is not None and last is not None else 1.0
    found = [one for one in result.templates if one.number >= 0]
    return Evidence(
        seconds=seconds,
        pieces=tuple(piece for one in found for piece in _pieces(one, seconds)),
        statements={
            one.number: _statement(one, taken_apart=place < shapes) for place, one in enumerate(found)
        },
        log=result,
        log_numbers={one.number: one.number for one in found},
    )


def _statement(one: TemplateFacts, *, taken_apart: bool) -> Statement:
    return Statement(
        number=one.number,
        text=one.text,
        identity=one.identity,
        calls=one.executions,
        mean_ns=one.mean_ns,
        rows=None if one.rows is None else round(one.rows * one.executions),
        shape=statement_shape(one.text, {}, template=True) if taken_apart else None,
        plans=executed_plans(one),
    )


def executed_plans(one: TemplateFacts) -> tuple[StatementPlan, ...]:
    """Return the plans of a template that auto_explain logged."""
    found = (
        statement_plan(one.number, "executed", each.text) for each in one.examples if each.kind == "plan"
    )
    return tuple(plan for plan in found if plan is not None)


def _pieces(one: TemplateFacts, seconds: float) -> Iterator[Piece]:
    """Yield the time of a template by application, in equal parts of the log."""
    busy = one.sum_ns / 1e9 / seconds
    steady = _batches(one.timeline)
    shares = [(part.name, part.share) for part in one.applications] or [("", 1.0)]
    for name, share in shares:
        yield Piece(one.number, CPU, "", name, "", tuple(busy * share * part for part in steady))


def _batches(timeline: Sequence[int]) -> list[float]:
    """Return the executions in equal parts of the log, divided by their mean."""
    whole = sum(timeline)
    parts = min(BATCHES, len(timeline))
    if not whole or not parts:
        return [1.0]
    sums, widths = [0.0] * parts, [0] * parts
    for place, count in enumerate(timeline):
        sums[place * parts // len(timeline)] += count
        widths[place * parts // len(timeline)] += 1
    mean = whole / len(timeline)
    found = [value / width / mean for value, width in zip(sums, widths, strict=True)]
    level = sum(found) / parts
    return [value / level for value in found]
