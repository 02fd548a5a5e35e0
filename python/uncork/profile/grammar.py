"""Group templates that differ only in their literals, with PostgreSQL's own grammar.

libpg_query is PostgreSQL's parser as a library. Its fingerprint ignores literals, the length of lists, casts
of literals, aliases and white space. It is computed once for each template that the scanner found.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from uncork import _native
from uncork.errors import SetupError
from uncork.model.records import Record
from uncork.profile.shapes.nodes import Token, tokens_of

_LONGEST: Final = 100_000
"""Of a longer statement, only this many characters become its template."""
_REPAIR: Final = "install uncork again with the packages it requires"

_LITERALS: Final = frozenset({"SCONST", "ICONST", "FCONST", "BCONST", "XCONST", "USCONST", "PARAM"})
_TAG: Final = re.compile(rb"\$\w*$")
_LISTS: Final = re.compile(r"((?:\bin ?\(|\barray ?\[) ?)[-?, ]*\?[-?, ]*(?=[)\]])")
_ROWS: Final = re.compile(r"(\bvalues ?(\([-?, ]+\)))(?:, ?\2)+")


class Grouping(Record):
    """Groups of equal templates. `groups` has, for each template, the index of the first equal one.

    `identities` has the identity of each of these first templates, in order. It is the same in every log. It
    is None for a template that the grammar rejects (truncated, or not SQL), which forms its own group.
    """

    groups: list[int]
    identities: list[str | None]


def group(templates: Sequence[tuple[bytes, bytes]]) -> Grouping:
    """Group templates that are equal to the grammar.

    Each template is a pair: its text, and one of its statements.
    """
    first: dict[str, int] = {}
    groups: list[int] = []
    identities: list[str | None] = []
    for place, identity in enumerate(_grammar().identities(templates)):
        same = place if identity is None else first.setdefault(identity, place)
        groups.append(same)
        if same == place:
            identities.append(identity)
    return Grouping(groups, identities)


def identify(template: bytes, statement: bytes) -> str | None:
    """Return an identity that all statements of a template share; None if the grammar rejects it."""
    [identity] = _grammar().identities([(template, statement)])
    return identity


@functools.cache
def _grammar() -> _native.Grammar:
    """Return PostgreSQL's grammar from the library that postgast brings, or from one of the system.

    Importing postgast would also load the messages of parse trees, which takes 0.25 s and which an identity
    does not need. Raises SetupError if there is no such library.
    """
    package = find_spec("postgast")
    if package is None or package.origin is None:
        raise SetupError(f"the package postgast is not installed; {_REPAIR}")
    beside = Path(package.origin).with_name("libpg_query.so")
    try:
        return _native.Grammar(str(beside) if beside.is_file() else "libpg_query.so")
    except OSError as problem:
        raise SetupError(f"PostgreSQL's grammar cannot be loaded ({problem}); {_REPAIR}") from problem


def template_text(statement: str) -> str:
    """Return the template of a statement: in lower case except quoted names, with `?` for literals.

    Parameters also become `?`, and a list of literals becomes a single `?`. If the statement is truncated
    within a literal, the template ends before it, so that no part of a literal remains.
    """
    parts: list[str] = []
    end = 0
    for start, stop, kind, text in _tokens(statement[:_LONGEST].encode()):
        gap = " " if parts and start > end else ""
        parts.append(gap + ("?" if kind in _LITERALS else text if text.startswith('"') else text.lower()))
        end = stop
    return _LISTS.sub(r"\1?", _ROWS.sub(r"\1", "".join(parts))).rstrip("; ")


def _tokens(whole: bytes) -> list[Token]:
    """Return the tokens up to where the statement is truncated."""
    while whole:
        whole = whole.decode(errors="ignore").encode()
        found = tokens_of(whole.decode())
        if found:
            return found
        cut = max(whole.rfind(sign) for sign in (b"'", b'"', b"$", b"/*"))
        whole = _TAG.sub(b"", whole[: max(0, cut)])
    return []
