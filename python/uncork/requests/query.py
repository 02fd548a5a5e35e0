"""Read the arguments of `uncork sql`. Pure."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["query_words"]

_LAST: Final = "last"
_QUERY: Final = re.compile(
    r"\s*(?:select|from|with|show|describe|summarize|values|table|pivot|unpivot|explain)[\s(*]", re.IGNORECASE
)


def query_words(run: str, query: str | None) -> tuple[str, str | None]:
    """Return the run and its query; a query that stands alone is about the newest run."""
    return (_LAST, run) if query is None and _QUERY.match(run) else (run, query)
