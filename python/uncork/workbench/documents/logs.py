"""How logs are read and reported."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Final

from uncork.analysis.log.result import stored_log_result
from uncork.model.results.log import LogResult
from uncork.report.blocks import Document
from uncork.report.log.answer import answer_log
from uncork.report.log.document import PARTS_OF_MARKDOWN, build_log_document, render_log_terminal
from uncork.workbench.documents.kinds import Kind


def read_log(folder: Path, also: Collection[str] = ()) -> LogResult:
    """Return the result of a stored log, with its sentences; `also` as in `log_result`.

    Raises:
        StoreError: if its files are damaged.
    """
    return answer_log(stored_log_result(folder, also))


def _document(_: Path, result: LogResult) -> Document:
    return build_log_document(result)


KIND: Final = Kind(
    read_log,
    _document,
    partial(build_log_document, parts=PARTS_OF_MARKDOWN),
    partial(render_log_terminal, top=10),
)
