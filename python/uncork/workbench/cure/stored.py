"""Store the result of a cure as cure.json in its run; `store.cures` reads it."""

from __future__ import annotations

from pathlib import Path

from uncork.model.results.cure import CureResult
from uncork.report.write.json_document import json_text
from uncork.store.cures import CURE_FILE
from uncork.store.layout import write_atomically


def write_cure(folder: Path, result: CureResult) -> None:
    """Write the result of a cure, atomically.

    Raises:
        StoreError: if the file cannot be written.
    """
    write_atomically(folder / CURE_FILE, json_text(result))
