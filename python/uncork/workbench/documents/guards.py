"""How guards are read and reported: their own runs, and experiments that a guard measured."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncork.model.results.guard import GuardResult
from uncork.report.blocks import Document
from uncork.report.experiment.document import build_document
from uncork.report.guard.document import build_guard_document, render_guard_terminal
from uncork.report.guard.pipeline import guard_markdown
from uncork.store.layout import read_manifest
from uncork.workbench.documents.experiments import read_experiment
from uncork.workbench.documents.flames import evidence_flames
from uncork.workbench.documents.kinds import Kind
from uncork.workbench.guard.store import stored_guard


def _page(folder: Path, guard: GuardResult) -> Document:
    if read_manifest(folder).kind != "experiment":
        return build_guard_document(guard)
    found = read_experiment(folder)
    return build_guard_document(guard, build_document(found), evidence_flames(folder, found))


KIND: Final = Kind(stored_guard, build_guard_document, render_guard_terminal, _page, markdown=guard_markdown)
