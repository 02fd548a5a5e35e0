"""The row of sampled stacks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.console import Console

from uncork.analysis.stacks.result import StackRun, stored_stacks
from uncork.model.results.stacks import StackResult
from uncork.report.blocks import Document
from uncork.report.stacks.document import build_stack_document
from uncork.report.stacks.terminal import render_stack_terminal
from uncork.workbench.documents.kinds import Kind
from uncork.workbench.profile.stack_files import flames

__all__ = ["KIND"]


def _document(_: Path, run: StackRun) -> Document:
    return build_stack_document(run.result, flames(run))


def _brief(run: StackRun) -> Document:
    return build_stack_document(run.result)


def _terminal(run: StackRun, console: Console) -> None:
    render_stack_terminal(run.result, console, top=10)


def _result(run: StackRun) -> StackResult:
    return run.result


KIND: Final = Kind(stored_stacks, _document, _brief, _terminal, _result)
