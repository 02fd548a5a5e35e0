"""A guard as Markdown for a comment on a pull request, or the summary of a CI step. Pure.

The first line is the answer. A hidden marker, the same for every guard of the same question, lets a bot find
its comment and replace it. GitHub rejects comments above 65 536 characters, so texts that exceed `MOST` are
left out with a note, the longest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.guard import GateOutcome, GuardResult
from uncork.report.blocks import Block, Bullets, Code, Fold
from uncork.report.guard.answer import guard_steps
from uncork.report.guard.document import (
    difference_tables,
    explanations,
    gates_table,
    guard_facts,
    plan_block,
)
from uncork.report.guard.why import settings_lines
from uncork.report.guard.words import OUTCOME_SIGNS
from uncork.report.headline import split_answer
from uncork.report.words import count_words
from uncork.report.write.markdown import block_lines, escape, footer, step_lines

MOST: Final = 60_000
"""Maximum length in characters."""
_MOST_ROWS: Final = 100
_MOST_KEPT: Final = 10
"""Kept gates that are shown directly; a longer list is folded."""
_LONGEST: Final = 2_000
"""Maximum length of a line; only absurdly long names exceed it."""
_LEFT_OUT: Final = 90
"""Characters reserved for the note on what is left out."""


def guard_marker(result: GuardResult) -> str:
    """Return the hidden comment by which a bot finds its earlier comment."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", result.name or result.question).strip("-")
    return f"<!-- uncork-guard: {name or 'guard'} -->"


def guard_markdown(result: GuardResult) -> str:
    """Return the guard as GitHub-flavoured Markdown of at most `MOST` characters."""
    worst = next(
        (outcome for outcome in OUTCOME_SIGNS if any(c.outcome is outcome for c in result.checks)), None
    )
    sign = f"{OUTCOME_SIGNS[worst]} " if worst else ""
    headline, lead = (escape(_short(text)) for text in split_answer(result.answer))
    head = [f"{sign}**{headline}**{f' {lead}' if lead else ''}", "", guard_marker(result), "", *_head(result)]
    foot = f"{footer(tuple(guard_facts(result)), result.uncork_version)}\n"
    text = "\n".join(map(_short, head))
    if len(text) + len(foot) > MOST:  # hundreds of gates with long names
        whole = text[: MOST - len(foot) - _LEFT_OUT].rpartition("\n")[0]
        text = f"{whole}\n\n_The rest is left out because it is too long for a comment._\n"
    room = MOST - len(text) - len(foot)
    return f"{text}\n{_folded(result, room)}\n{foot}".replace("\n\n\n", "\n\n")


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 30]}… (the rest is left out)"


def _head(result: GuardResult) -> Iterator[str]:
    yield from block_lines(Bullets(result.reasons))
    kept = [check for check in result.checks if check.outcome is GateOutcome.KEPT]
    many = len(kept) > _MOST_KEPT
    shown = [check for check in result.checks if not (many and check in kept)]
    for checks, summary in ((shown, ""), (kept if many else [], f"{count_words(len(kept), 'gate')} kept")):
        if checks:
            more = len(checks) - _MOST_ROWS
            table = gates_table(checks[:_MOST_ROWS], f"{more} more are in the report" if more > 0 else "")
            yield from block_lines(Fold(summary, (table,)) if summary else table)
    yield from step_lines(tuple(guard_steps(result)), "**What to do next**")
    if result.warnings:
        yield from block_lines(Fold(f"Warnings ({len(result.warnings)})", (Bullets(result.warnings),)))


def _folded(result: GuardResult, room: int) -> str:
    """Return what may explain the gates, folded, within `room` characters."""
    parts = ["\n".join(block_lines(block)) for block in _explaining(result)]
    while sum(len(part) + 1 for part in parts) > room - _LEFT_OUT:
        parts.remove(max(parts, key=len))
    total = sum(1 for _ in _explaining(result))
    if len(parts) < total:
        left = count_words(total - len(parts), "part")
        parts.append(f"_{left} left out, too long for a comment; see the HTML report._\n")
    return "\n".join(parts)


def _explaining(result: GuardResult) -> Iterator[Block]:
    for explanation in explanations(result):
        yield Fold(explanation.title, (Bullets(explanation.lines),))
    for plan in result.plans:
        code = plan_block(plan)
        yield Fold(code.title, (Code(code.text, code.language),))
    others = settings_lines(result)
    if others:
        yield Fold(f"What else differs between the sides ({len(others)})", (Bullets(others),))
    yield from (Fold(table.caption, (replace(table, caption=""),)) for table in difference_tables(result))
