"""Read the result of a cure, which its run holds as cure.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from uncork.errors import StoreError
from uncork.model.database.finding import Bill
from uncork.model.results.cure import CURE_VERSION, CureResult, Net
from uncork.store.documents import decoded, read_document
from uncork.store.layout import check_version

CURE_FILE: Final = "cure.json"


def read_cure(folder: Path) -> CureResult:
    """Return the result of a cure. Its `id` and `folder` are those of `folder` unless it has its own.

    Raises StoreError if the file is missing or damaged, or has another format version.
    """
    path = folder / CURE_FILE

    def result(data: Mapping[str, Any]) -> CureResult:
        check_version(path, data, CURE_VERSION)
        own = {"id": data["id"] or folder.name, "folder": data["folder"] or str(folder)}
        lowest = {Net: _bounded, Bill: lambda bill: {**bill, "low": bill["low"] or 0.0}}
        return decoded(CureResult, {**data, **own}, lowest)

    found = read_document(path, result)
    if found is None:
        raise StoreError(
            f"{folder.name} is a cure that ended before its first result, so it has no report; run it again"
        )
    return found


def _bounded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields, with the infinite ends of an interval, which JSON writes as null."""
    low, high = data["low"], data["high"]
    return {**data, "low": -math.inf if low is None else low, "high": math.inf if high is None else high}
