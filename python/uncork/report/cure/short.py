"""A cure in a few lines: the answer, what it saves, and the SQL."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from uncork.model.results.cure import CureResult
from uncork.report.blocks import Code
from uncork.report.cure.answer import handed_path, proven_change
from uncork.report.write.terminal_text import write_answer, write_block, write_paragraph

_INDENT: Final = 2


def render_cure_short(result: CureResult, console: Console) -> None:
    """Print the answer. If a change was proven, also print what it saves, its SQL, and the file to run."""
    write_answer(console, result.answer)
    chosen = proven_change(result)
    if chosen is not None:
        write_paragraph(console, result.reasons[0])
        write_block(console, Code(chosen.sql), _INDENT)
        if up := handed_path(result, "up.sql"):
            console.print()
            console.print(f"As a file, with checks: {up}", markup=False, soft_wrap=True)
