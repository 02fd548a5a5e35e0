"""Store the texts of statements that samples saw in sessions, with their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from uncork.engines.watch.connection import ServerSnapshot
from uncork.profile.server_templates import TemplateBook, is_normalised

if TYPE_CHECKING:
    import pyarrow as pa

_SETTING: Final = "track_activity_query_size"
_DEFAULT_BYTES: Final = 1024
_CLIPPED: Final = 3
"""Bytes that the server cuts off in addition, so that the last character stays whole."""


def texts_table(
    book: TemplateBook,
    seen: Mapping[int, Sequence[str]],
    after: ServerSnapshot | None,
) -> pa.Table:
    """Return texts of sessions as a stored table, without the ones that the server cut.

    `seen` has the texts by query id. Statements whose literals pg_stat_statements keeps, such as a new
    password, are left out.
    """
    from uncork.store.evidence import rows_table  # noqa: PLC0415 -- not before the first sample

    longest = _longest(() if after is None else after.tables["database_settings"])
    numbers: Counter[int] = Counter()
    rows = []
    for query_id, texts in seen.items():
        template = book.number(query_id, None)
        if template is None:
            continue
        for text in texts:
            if is_normalised(text) and len(text.encode()) < longest - _CLIPPED:
                rows.append({"template": template, "number": numbers[template], "text": text})
                numbers[template] += 1
    return rows_table("database_texts", rows)


def _longest(settings: Sequence[Mapping[str, Any]]) -> int:
    """Return the length in bytes at which the server cuts texts; settings at their default are not listed."""
    for row in settings:
        if row["name"] == _SETTING:
            value = str(row["value"])
            number = int("".join(one for one in value if one.isdigit()))
            return (number * 1024 if value.endswith("kB") else number) - 1
    return _DEFAULT_BYTES - 1
