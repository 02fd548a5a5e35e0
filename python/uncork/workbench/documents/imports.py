"""How imported results of other tools are read and reported."""

from __future__ import annotations

from typing import Final

from uncork.analysis.runs.figures import run_figures
from uncork.report.runs.imported import build_import_document, render_import_terminal
from uncork.workbench.documents.kinds import Kind

KIND: Final = Kind(run_figures, build_import_document, render_import_terminal)
