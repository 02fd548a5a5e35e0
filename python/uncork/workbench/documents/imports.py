"""How imported results of other tools are read and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncork.analysis.runs.figures import run_figures
from uncork.model.results.figure import RunFigures
from uncork.report.blocks import Document
from uncork.report.runs.imported import build_import_document, render_import_terminal
from uncork.workbench.documents.kinds import Kind


def _document(_: Path, run: RunFigures) -> Document:
    return build_import_document(run)


KIND: Final = Kind(run_figures, _document, build_import_document, render_import_terminal)
