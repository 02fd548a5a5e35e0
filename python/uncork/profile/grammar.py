"""Group templates that differ only in their literals, with PostgreSQL's own grammar.

libpg_query is PostgreSQL's parser as a library. Its fingerprint ignores literals, the length of lists, casts
of literals, aliases and white space. It is computed once for each template that the scanner found.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

__all__ = ["Grouping", "group", "identify", "template_text"]

_LONGEST: Final = 100_000
"""Longer statements are not parsed, because that would take longer than reading the log."""
_MANY: Final = 1_000
"""From this number of templates on, parsing them takes longer than starting threads."""
_NUMBERED: Final = re.compile(rb"[a-z_\x80-\xff][\w$\x80-\xff]*\d[\w$\x80-\xff]*")
"""Names with digits. The fingerprint ignores digits in table names, to group partitions; uncork does not."""
_TEMPORARY: Final = re.compile(
    rb"(?:close|fetch|move|savepoint|release|rollback|deallocate)\b.*|declare\s+(?:\"[^\"]*\"|\S+)", re.DOTALL
)
"""Where a statement names a cursor, a savepoint or a prepared statement that it begins or ends. Drivers
number them: Django declares `"_django_curs_139715399527296_sync_149"`, and the next cursor is ``..._150``."""


_LITERALS: Final = frozenset({"SCONST", "ICONST", "FCONST", "BCONST", "XCONST", "USCONST", "PARAM"})
_COMMENTS: Final = frozenset({"SQL_COMMENT", "C_COMMENT"})
_TAG: Final = re.compile(rb"\$\w*$")
_LISTS: Final = re.compile(r"((?:\bin ?\(|\barray ?\[) ?)[-?, ]*\?[-?, ]*(?=[)\]])")
_ROWS: Final = re.compile(r"(\bvalues ?(\([-?, ]+\)))(?:, ?\2)+")


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of equal templates. `groups` has, for each template, the index of the first equal one.

    `identities` has the identity of each of these first templates, in order. It is the same in every log. It
    is None for a template that the grammar rejects (truncated, or not SQL), which forms its own group.
    """

    groups: list[int]
    identities: list[str | None]


def group(templates: Sequence[Sequence[bytes]]) -> Grouping:
    """Group templates that are equal to the grammar.

    Each template is a pair: its text, and one of its statements.
    """
    first: dict[str, int] = {}
    groups: list[int] = []
    identities: list[str | None] = []
    for place, identity in enumerate(_identified(templates)):
        same = place if identity is None else first.setdefault(identity, place)
        groups.append(same)
        if same == place:
            identities.append(identity)
    return Grouping(groups, identities)


def _identified(templates: Sequence[Sequence[bytes]]) -> Iterator[str | None]:
    """Return the identity of each template; with many, by all processors: the parser releases the GIL."""
    if len(templates) < _MANY:
        return itertools.starmap(identify, templates)
    workers = len(os.sched_getaffinity(0))
    size = -(-len(templates) // workers)
    parts = [templates[begin : begin + size] for begin in range(0, len(templates), size)]
    with ThreadPoolExecutor(workers) as pool:
        return itertools.chain.from_iterable(
            pool.map(lambda part: list(itertools.starmap(identify, part)), parts)
        )


def identify(template: bytes, statement: bytes) -> str | None:
    """Return an identity that all statements of a template share; None if the grammar rejects it."""
    from uncork.profile.fingerprint import fingerprint  # noqa: PLC0415 -- loads a parser of 14 MB

    if len(statement) > _LONGEST or b"\0" in statement or not _is_text(statement):
        return None
    found = fingerprint(statement)
    if found is None:
        return None
    temporary = _TEMPORARY.match(template)
    names = _NUMBERED.findall(template, 0 if temporary is None else temporary.end())
    if not names:
        return found
    return f"{found} {b' '.join(sorted(set(names))).decode(errors='replace')}"


def _is_text(statement: bytes) -> bool:
    if statement.isascii():
        return True
    try:
        statement.decode()
    except UnicodeDecodeError:
        return False
    return True


def template_text(statement: str) -> str:
    """Return the template of a statement: in lower case except quoted names, with `?` for literals.

    Parameters also become `?`, and a list of literals becomes a single `?`. If the statement is truncated
    within a literal, the template ends before it, so that no part of a literal remains.
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
    """Return the start, end and kind of each token, up to where the statement is truncated."""
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
