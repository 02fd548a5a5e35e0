"""How cures are read and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncork.model.results.cure import CureResult
from uncork.report.blocks import Document
from uncork.report.cure.document import build_cure_document, render_cure_terminal
from uncork.report.cure.markdown import pull_request_markdown
from uncork.store.cures import read_cure
from uncork.workbench.documents.kinds import Kind


def _document(_: Path, result: CureResult) -> Document:
    return build_cure_document(result)


KIND: Final = Kind(
    read_cure, _document, build_cure_document, render_cure_terminal, markdown=pull_request_markdown
)
