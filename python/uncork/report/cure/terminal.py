"""A cure in the terminal: the answer, the changes that were tried, each finding, and what to do next."""

from __future__ import annotations

import shlex
from typing import Final

from rich.console import Console

from uncork.model.results.cure import CureResult
from uncork.report.blocks import Block, Fold, Paragraph, Section, Table
from uncork.report.cure.document import build_cure_document
from uncork.report.write.terminal_text import write_block, write_paragraph, write_report, write_title

_INDENT: Final = 2


def render_cure_terminal(result: CureResult, console: Console) -> None:
    """Print the report on a cure, the answer first and the next steps last.

    Of each change only the outcome and its reason are printed, besides what was chosen; the other forms of
    the report have its SQL and its effect on each statement. Every outcome is also stated in words.
    """
    document = build_cure_document(result)

    def sections(console: Console) -> None:
        for section in document.sections:
            _write(console, section)
        if result.id and any(tried.changes for tried in result.tried):
            command = f"uncork report {shlex.quote(result.id)} --html cure.html"
            write_paragraph(console, f"The SQL and the effects of each change: {command}")

    write_report(console, document, [sections])


def _write(console: Console, section: Section) -> None:
    write_title(console, section.title)
    for place, block in enumerate(section.blocks):
        if isinstance(block, Table):
            if place:
                console.print()
            write_block(console, block, 0)
        elif isinstance(block, Fold):
            write_block(console, Fold(block.summary, _brief(block)), _INDENT)
        else:
            write_block(console, block, _INDENT)
    console.print()


def _brief(fold: Fold) -> tuple[Block, ...]:
    """Return the sentences of a change."""
    return tuple(block for block in fold.blocks if isinstance(block, Paragraph))
