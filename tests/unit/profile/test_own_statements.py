"""Which entries of pg_stat_statements count uncork's own statements."""

from __future__ import annotations

from uncork.profile.server_templates import own_keys, own_statements, own_texts

OWN = "SELECT /* uncork */ s.queryid FROM pg_stat_statements(true) AS s WHERE s.queryid = ANY ($1)"
APP = "SELECT note FROM purchase WHERE buyer = $1"
TEXTS = {1: OWN, 2: f"/* uncork */ {APP}", 3: APP}


def row(query_id, user=10, database=5, toplevel=True):
    return {"user_oid": user, "database_oid": database, "query_id": query_id, "toplevel": toplevel}


def test_the_mark_in_a_text_does_not_make_a_statement_uncorks():
    assert own_texts(TEXTS, [OWN]) == {1}


def test_a_statement_is_own_only_for_the_role_and_the_database_of_the_watch():
    rows = [row(1), row(1, user=11), row(1, database=6), row(2), row(3, user=11)]
    assert own_statements(rows, (10, 5), TEXTS, [OWN]) == {(10, 5, 1, True)}


def test_keys_are_read_from_stored_facts():
    assert own_keys({"own_statements": [[10, 5, 1, True]]}) == {(10, 5, 1, True)}
