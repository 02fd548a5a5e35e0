"""Points in time, templates and shares of a log in words for people."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

__all__ = ["instant_text", "share_text", "short_template", "span_text", "step_text"]

_WIDTH: Final = 90
_SELECT: Final = "select "
_MARKS: Final = re.compile(r"[()]| from ")
_LEAST_COLUMNS: Final = 4
"""Characters that leaving out columns must save; the ellipsis takes as many."""
_LONGEST_COLUMN: Final = 40


def instant_text(micros: int | None) -> str:
    """Show a point in time to the second, in UTC; nothing for None."""
    if micros is None:
        return ""
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"


def span_text(first_us: int | None, last_us: int | None) -> str:
    """Show from when to when, with the day said once if it is one."""
    first, last = instant_text(first_us), instant_text(last_us)
    if not first:
        return ""
    if first[:10] == last[:10]:
        return f"{first} to {last[11:]} UTC"
    return f"{first} to {last} UTC"


def share_text(share: float) -> str:
    """Show a share of a whole: ``62 %``, ``0.4 %``, ``99.4 %``, ``under 0.1 %``; only the whole is 100 %."""
    percent = share * 100
    if 0 < percent < 0.1:
        return "under 0.1 %"
    if 99.9 < percent < 100:
        return "over 99.9 %"
    coarse = percent == 0 or 9.5 <= percent < 99 or percent >= 100
    return f"{percent:.0f} %" if coarse else f"{percent:.1f} %"


def step_text(seconds: int) -> str:
    """Show how long a bucket of time is: ``30 s``, ``5 min``, ``6 h``."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds % length == 0:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def short_template(text: str, width: int = _WIDTH) -> str:
    """Cut a template to a line. Of a query most columns are left out first, so that its tables are told."""
    if len(text) > width:
        text = _without_columns(text)
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _without_columns(text: str) -> str:
    """Return ``select id, … from orders`` for a query of many columns, other texts as they are."""
    end = _end_of_columns(text)
    first = text.find(",", len(_SELECT))
    if 0 < first < end - _LEAST_COLUMNS:
        return f"{text[: min(first, _LONGEST_COLUMN)]}, …{text[end:]}"
    return text


def _end_of_columns(text: str) -> int:
    """Return where the `` from `` of a query begins, which is in no parentheses; 0 if there is none."""
    if text.startswith(_SELECT):
        depth = 0
        for match in _MARKS.finditer(text, len(_SELECT)):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if match[0] == " from " and not depth:
                return match.start()
    return 0
