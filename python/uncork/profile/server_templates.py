"""Find the template of a statement by the server's query id, or else by the grammar. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from uncork.profile.deltas import Key, Row, statement_key
from uncork.profile.grammar import identify, template_text

_COMMENTS: Final = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
_NORMALISED: Final = frozenset({"select", "insert", "update", "delete", "merge", "with", "values", "table"})


def is_normalised(statement: str) -> bool:
    """Return whether pg_stat_statements replaces the literals of this kind of statement in all versions.

    Before PostgreSQL 16, other commands keep theirs, such as a new password.
    """
    return (
        re.split(r"\W", _COMMENTS.sub("", statement).lstrip("( \t\r\n"), maxsplit=1)[0].lower() in _NORMALISED
    )


class TemplateBook:
    """Number templates from 0 in the order of their first appearance.

    The grammar alone decides whether two statements have the same template. Their query ids may differ, for
    example if lists have different lengths, or if the same statement runs in another database.
    """

    def __init__(self) -> None:
        self._by_query: dict[int, int] = {}
        self._by_text: dict[str, int] = {}
        self._by_identity: dict[str, int] = {}
        self.texts: list[str] = []
        self.identities: list[str | None] = []

    def knows(self, query_id: int) -> bool:
        """Return whether the template of a query id is known."""
        return query_id in self._by_query

    def number(self, query_id: int | None, statement: str | None) -> int | None:
        """Return the number of a statement's template; None if it has no known query id and no text."""
        if query_id and query_id in self._by_query:
            return self._by_query[query_id]
        if not statement:
            return None
        found = self._of_text(statement)
        if query_id:
            self._by_query[query_id] = found
        return found

    def missing(self, query_ids: Iterable[int]) -> list[int]:
        """Return the query ids whose templates are not known yet."""
        return [number for number in query_ids if number not in self._by_query]

    def _of_text(self, statement: str) -> int:
        text = template_text(statement)
        if text in self._by_text:
            return self._by_text[text]
        identity = identify(text.encode(), statement.encode())
        number = None if identity is None else self._by_identity.get(identity)
        if number is None:
            number = len(self.texts)
            self.texts.append(text)
            self.identities.append(identity)
            if identity is not None:
                self._by_identity[identity] = number
        self._by_text[text] = number
        return number


# ---- uncork's own statements in pg_stat_statements ----
#
# A statement is uncork's if uncork's role executed it in the watched database, and if uncork sent a query
# with its template. Its text does not matter: EXPLAIN, which uncork sends for the costliest statements, has
# the same query id as the statement itself, so that uncork's mark can stand at the application's entry.


def own_keys(watch: Mapping[str, Any]) -> frozenset[Key]:
    """Return the keys of the entries of uncork's own statements from the stored facts of a watch."""
    return frozenset(tuple(key) for key in watch["own_statements"])


def own_statements(
    rows: Iterable[Row], place: tuple[int, int], texts: Mapping[int, str], queries: Iterable[str]
) -> frozenset[Key]:
    """Return the keys of the entries of pg_stat_statements that count uncork's own statements.

    `rows` are entries, and `texts` their statements by query id. `place` has the oids of uncork's role and of
    the watched database; `queries` are what uncork sent.
    """
    mine = [row for row in rows if (row["user_oid"], row["database_oid"]) == place]
    own = own_texts({row["query_id"]: texts.get(row["query_id"], "") for row in mine}, queries)
    return frozenset(statement_key(row) for row in mine if row["query_id"] in own)


def own_texts(texts: Mapping[int, str], queries: Iterable[str]) -> Collection[int]:
    """Return the query ids whose `texts` have the template of one of the `queries` that uncork sent."""
    book = TemplateBook()
    for query in queries:
        book.number(None, query)
    sent = len(book.texts)
    return {
        query_id
        for query_id, text in texts.items()
        if (number := book.number(None, text)) is not None and number < sent
    }
