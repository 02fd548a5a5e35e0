"""A cure as Markdown for the text of a pull request, or a comment on it. Pure.

The first line is the answer. GitHub rejects texts above 65 536 characters, so parts that exceed `MOST` are
left out with a note, the longest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.cure import CureResult
from uncork.model.units import count_words
from uncork.report.blocks import Bullets, Code, Document, Fold, Section
from uncork.report.cure.answer import proven_change
from uncork.report.cure.document import build_cure_document, changes_table
from uncork.report.cure.words import named_changes
from uncork.report.headline import split_answer
from uncork.report.write.markdown import block_lines, escape, footer, step_lines

MOST: Final = 60_000
"""Maximum length in characters."""
_SHOWN: Final = frozenset({"changes"})
"""Sections that are shown directly; the others are folded."""


def pull_request_markdown(result: CureResult) -> str:
    """Return the cure as GitHub-flavoured Markdown of at most `MOST` characters."""
    document = build_cure_document(result)
    head = "\n".join(_head(result, document))
    foot = f"{footer(document.facts, document.version)}\n"
    parts = ["\n".join(_folded(section)) for section in document.sections if section.id not in _SHOWN]
    total = len(parts)
    while parts and len(head) + len(foot) + sum(map(len, parts)) > MOST:
        parts.remove(max(parts, key=len))
    if len(parts) < total:
        left = total - len(parts)
        many = f"{count_words(left, 'part')} {'is' if left == 1 else 'are'} left out"
        parts.append(f"_{many}, too long for a comment; see the HTML report._\n")

    return "\n".join([head, *parts, foot]).replace("\n\n\n", "\n\n")


def _head(result: CureResult, document: Document) -> Iterator[str]:
    headline, lead = map(escape, split_answer(document.answer))
    yield f"**{headline}**{f' {lead}' if lead else ''}"
    yield ""
    yield from block_lines(Bullets(document.reasons))
    chosen = proven_change(result)
    if chosen is not None and chosen.sql:
        yield from block_lines(Code(chosen.sql, "sql"))
    if any(True for _ in named_changes(result)):
        yield from block_lines(changes_table(result))
    yield from step_lines(document.steps, "**What to do next**")


def _folded(section: Section) -> Iterator[str]:
    blocks = tuple(
        inner
        for block in section.blocks
        for inner in ((Bullets((block.summary,)), *block.blocks) if isinstance(block, Fold) else (block,))
    )
    yield from block_lines(Fold(section.title, blocks))
