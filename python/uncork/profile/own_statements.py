"""Recognise uncork's own statements in pg_stat_statements. Pure.

A statement is uncork's if uncork's role executed it in the watched database, and if uncork sent a query with
its template. Its text does not matter: EXPLAIN, which uncork sends for the costliest statements, has the same
query id as the statement itself, so that the text with uncork's mark can stand at the application's entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from uncork.profile.deltas import Key, Row, statement_key
from uncork.profile.server_templates import TemplateBook


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
