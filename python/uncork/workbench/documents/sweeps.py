"""The row of sweeps of loads."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncork.analysis.load.sweep import build_sweep_result
from uncork.model.results.sweep import SweepResult
from uncork.report.blocks import Document
from uncork.report.load.sweep_document import build_sweep_document
from uncork.report.load.sweep_terminal import render_sweep_terminal
from uncork.workbench.documents.kinds import Kind

__all__ = ["KIND"]


def _document(_: Path, result: SweepResult) -> Document:
    return build_sweep_document(result)


KIND: Final = Kind(build_sweep_result, _document, build_sweep_document, render_sweep_terminal)
