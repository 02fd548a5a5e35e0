"""The server's own grammar: which templates are the same but for their literals.

libpg_query is PostgreSQL's parser as a library; its fingerprint ignores literals, the length of lists, casts
of literals, aliases and white space. It is asked once for each template that the scanner has found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["groups"]

_LONGEST: Final = 100_000
"""A longer statement is left as the scanner found it: parsing it would take longer than reading the log."""
_NUMBERED: Final = re.compile(rb"[a-z_\x80-\xff][\w$\x80-\xff]*\d[\w$\x80-\xff]*")
"""Names with digits. The fingerprint takes tables whose names differ in them as one: partitions, mostly, but
here a name is a name."""


def groups(templates: Sequence[Sequence[bytes]]) -> list[int]:
    """Return for each template the place of the first one that is the same to the grammar.

    A template comes as its text and as one statement of it. One that the grammar refuses (cut short, or no
    SQL) stays by itself.
    """
    import postgast  # noqa: PLC0415 -- loads a parser of 14 MB, which no other command needs

    first: dict[tuple[int, frozenset[bytes]], int] = {}
    found = []
    for place, (template, statement) in enumerate(templates):
        group = place
        if len(statement) <= _LONGEST and b"\0" not in statement:
            try:
                fingerprint = postgast.fingerprint(statement.decode()).fingerprint
            except (postgast.PgQueryError, UnicodeDecodeError):
                pass
            else:
                names = frozenset(_NUMBERED.findall(template))
                group = first.setdefault((fingerprint, names), place)
        found.append(group)
    return found
