"""Read the answer of a stored report, without the rest of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

_BEGINNING: Final = 1 << 16
"""Bytes of the stored result that are read: the answer stands near its beginning."""
_ANSWER: Final = re.compile(r'^ "answer": ("(?:[^"\\\n]|\\.)*")', re.MULTILINE)


def read_answer(folder: Path) -> str:
    """Return the answer of a run's stored result; empty if it has none, or if it cannot be read."""
    try:
        with (folder / "result.json").open("rb") as file:
            text = file.read(_BEGINNING).decode("utf-8", "ignore")
    except OSError:
        return ""
    found = _ANSWER.search(text)
    return str(json.loads(found[1])) if found else ""
