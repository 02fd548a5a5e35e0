"""How profiles of stacks are read and reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from uncork.analysis.stacks.result import StackRun, stored_stacks
from uncork.report.blocks import Document
from uncork.report.stacks.answer import answer_stacks
from uncork.report.stacks.document import build_stack_document, render_stack_terminal
from uncork.workbench.documents.flames import stack_flames
from uncork.workbench.documents.kinds import Kind


def read_stacks(folder: Path, *, against: str = "") -> StackRun:
    """Return a stored profile of stacks with its sentences, compared as stored or with the run `against`.

    Raises StoreError if its files are damaged.
    """
    run = stored_stacks(folder, against=against)
    return replace(run, result=answer_stacks(run.result))


def _page(_: Path, run: StackRun) -> Document:
    return build_stack_document(run.result, stack_flames(run))


KIND: Final = Kind(
    read_stacks,
    lambda run: build_stack_document(run.result),
    lambda run, console: render_stack_terminal(run.result, console, top=10),
    _page,
    lambda run: run.result,
)
