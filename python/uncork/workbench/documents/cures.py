"""How cures are read and reported."""

from __future__ import annotations

from typing import Final

from uncork.report.cure.document import build_cure_document, pull_request_markdown, render_cure_terminal
from uncork.store.run_documents import read_cure
from uncork.workbench.documents.kinds import Kind

KIND: Final = Kind(read_cure, build_cure_document, render_cure_terminal, markdown=pull_request_markdown)
