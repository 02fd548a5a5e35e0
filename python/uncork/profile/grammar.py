"""The server's own grammar: which templates are the same but for their literals.

libpg_query is PostgreSQL's parser as a library; its fingerprint ignores literals, the length of lists, casts
of literals, aliases and white space. It is asked once for each template that the scanner has found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Grouping", "group", "identify", "template_text"]

_LONGEST: Final = 100_000
"""A longer statement is left as the scanner found it: parsing it would take longer than reading the log."""
_NUMBERED: Final = re.compile(rb"[a-z_\x80-\xff][\w$\x80-\xff]*\d[\w$\x80-\xff]*")
"""Names with digits. The fingerprint takes tables whose names differ in them as one: partitions, mostly, but
here a name is a name."""


_LITERALS: Final = frozenset({"SCONST", "ICONST", "FCONST", "BCONST", "XCONST", "USCONST", "PARAM"})
_COMMENTS: Final = frozenset({"SQL_COMMENT", "C_COMMENT"})
_TAG: Final = re.compile(rb"\$\w*$")
_LISTS: Final = re.compile(r"((?:\bin ?\(|\barray ?\[) ?)[-?, ]*\?[-?, ]*(?=[)\]])")
_ROWS: Final = re.compile(r"(\bvalues ?(\([-?, ]+\)))(?:, ?\2)+")


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
    first: dict[str, int] = {}
    groups: list[int] = []
    identities: list[str | None] = []
    for place, (template, statement) in enumerate(templates):
        identity = identify(template, statement)
        same = place if identity is None else first.setdefault(identity, place)
        groups.append(same)
        if same == place:
            identities.append(identity)
    return Grouping(groups, identities)


def identify(template: bytes, statement: bytes) -> str | None:
    """Return what is the same for all statements of a template; None where the grammar refuses one."""
    import postgast  # noqa: PLC0415 -- loads a parser of 14 MB, which no other command needs

    if len(statement) > _LONGEST or b"\0" in statement:
        return None
    try:
        fingerprint = postgast.fingerprint(statement.decode()).hex
    except (postgast.PgQueryError, UnicodeDecodeError):
        return None
    names = sorted(set(_NUMBERED.findall(template)))
    return " ".join([fingerprint, *(name.decode(errors="replace") for name in names)])


def template_text(statement: str) -> str:
    """Return a statement as its template: lower case but for what is quoted, `?` for literals and parameters.

    Lists of literals become one `?`. Of a statement that is cut short within a literal, what comes before it
    is told; nothing that could be a literal is left in.
    """
    whole = statement[:_LONGEST].encode()
    tokens = _tokens(whole)
    parts: list[str] = []
    end = 0
    for start, stop, kind in tokens:
        if kind in _COMMENTS:
            continue
        text = whole[start:stop].decode(errors="replace")
        gap = " " if parts and start > end else ""
        parts.append(gap + ("?" if kind in _LITERALS else text if text.startswith('"') else text.lower()))
        end = stop
    return _LISTS.sub(r"\1?", _ROWS.sub(r"\1", "".join(parts))).rstrip("; ")


def _tokens(whole: bytes) -> list[tuple[int, int, str]]:
    """Return where tokens begin and end, and their kinds, up to where the statement is cut short."""
    import postgast  # noqa: PLC0415

    cut = len(whole)
    while cut > 0:
        text = whole[:cut].decode(errors="ignore")
        try:
            found = postgast.scan(text).tokens
        except postgast.PgQueryError:
            cut = max(text.encode().rfind(sign) for sign in (b"'", b'"', b"$", b"/*"))
            cut = len(_TAG.sub(b"", whole[: max(0, cut)]))
            continue
        names = postgast.pg_query_pb2.Token.Name
        return [(token.start, token.end, names(token.token)) for token in found]
    return []
