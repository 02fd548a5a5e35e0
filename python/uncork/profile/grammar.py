"""The server's own grammar: which templates are the same but for their literals.

libpg_query is PostgreSQL's parser as a library; its fingerprint ignores literals, the length of lists, casts
of literals, aliases and white space. It is asked once for each template that the scanner has found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Grouping", "group"]

_LONGEST: Final = 100_000
"""A longer statement is left as the scanner found it: parsing it would take longer than reading the log."""
_NUMBERED: Final = re.compile(rb"[a-z_\x80-\xff][\w$\x80-\xff]*\d[\w$\x80-\xff]*")
"""Names with digits. The fingerprint takes tables whose names differ in them as one: partitions, mostly, but
here a name is a name."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which templates are one. `groups` gives for each the place of the first one that is the same.

    `identities` are those of the first ones, in their order: the same in any log, and None where the grammar
    refuses a template (cut short, or no SQL), which then stays by itself.
    """

    groups: list[int]
    identities: list[str | None]


def group(templates: Sequence[Sequence[bytes]]) -> Grouping:
    """Put templates together that are the same to the grammar.

    A template comes as its text and as one statement of it.
    """
    import postgast  # noqa: PLC0415 -- loads a parser of 14 MB, which no other command needs

    first: dict[str, int] = {}
    groups: list[int] = []
    identities: list[str | None] = []
    for place, (template, statement) in enumerate(templates):
        identity = None
        if len(statement) <= _LONGEST and b"\0" not in statement:
            try:
                fingerprint = postgast.fingerprint(statement.decode()).hex
            except (postgast.PgQueryError, UnicodeDecodeError):
                pass
            else:
                names = sorted(set(_NUMBERED.findall(template)))
                identity = " ".join([fingerprint, *(name.decode(errors="replace") for name in names)])
        same = place if identity is None else first.setdefault(identity, place)
        groups.append(same)
        if same == place:
            identities.append(identity)
    return Grouping(groups, identities)
