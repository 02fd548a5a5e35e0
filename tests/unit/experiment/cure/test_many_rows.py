"""A statement for one row becomes one for many rows in arrays, or a sentence says why it cannot."""

from __future__ import annotations

import pytest

from uncork.experiment.cure.loops import many_rows
from uncork.experiment.cure.setups import Refused

TYPES = {1: "integer", 2: "text", 3: "text"}


def best(sql):
    return many_rows(sql, TYPES)[0]


@pytest.mark.parametrize(
    ("sql", "many", "keys"),
    [
        ("INSERT INTO event (kind, body) VALUES ($1, lower($2) || '$2, VALUES (');",
         "INSERT INTO event (kind, body)\nSELECT batch.p1, lower(batch.p2) || '$2, VALUES ('\n"
         "FROM unnest($1::integer[], $2::text[]) AS batch (p1, p2)", set()),
        ("INSERT INTO tag (id, name) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name",
         "INSERT INTO tag (id, name)\nSELECT batch.p1, batch.p2\n"
         "FROM unnest($1::integer[], $2::text[]) AS batch (p1, p2)\n"
         "ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name", {1}),
        ("UPDATE item SET note = $2 WHERE id = $1 RETURNING id",
         "UPDATE item SET note = batch.p2\nFROM unnest($1::integer[], $2::text[]) AS batch (p1, p2)\n"
         "WHERE id = batch.p1 RETURNING id", {1}),
        ("UPDATE item SET note = old.note FROM old WHERE old.id = item.id AND item.id = $1",
         "UPDATE item SET note = old.note FROM old, unnest($1::integer[]) AS batch (p1)\n"
         "WHERE old.id = item.id AND item.id = batch.p1", {1}),
        ("DELETE FROM batch WHERE id = $1 AND name <> $2",
         "DELETE FROM batch\nUSING unnest($1::integer[], $2::text[]) AS batch2 (p1, p2)\n"
         "WHERE id = batch2.p1 AND name <> batch2.p2", {1, 2}),
    ],
)  # fmt: skip
def test_a_statement_that_changes_rows_reads_them_from_arrays(sql, many, keys):
    found = best(sql)
    assert found.sql == many
    assert found.keys == keys
    assert bool(found.assumed) == bool(keys)


@pytest.mark.parametrize(
    ("sql", "many", "added"),
    [
        ("SELECT * FROM item WHERE id = $1", "SELECT * FROM item WHERE id = ANY ($1)", 0),
        ("SELECT id, note FROM item WHERE id = $1", "SELECT id, note FROM item WHERE id = ANY ($1)", 0),
        ("SELECT note FROM item i WHERE i.id = $1 AND NOT gone",
         "SELECT i.id, note FROM item i WHERE i.id = ANY ($1) AND NOT gone", 1),
    ],
)  # fmt: skip
def test_a_lookup_compares_its_key_with_an_array_and_returns_the_key(sql, many, added):
    found, lateral = many_rows(sql, TYPES)
    assert (found.sql, found.added, found.keys) == (many, added, {1})
    assert lateral.added == 1 and not lateral.keys
    assert lateral.sql == (
        "SELECT batch.*, one.*\nFROM unnest($1::integer[]) AS batch (p1)\nCROSS JOIN LATERAL (\n"
        f"{sql.replace('$1', 'batch.p1')}\n) AS one"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM item WHERE id = $1 LIMIT 1",
        "SELECT count(*) FROM item WHERE id = $1",
        "SELECT note FROM item WHERE id = $1 OR shared",
        "SELECT note FROM item WHERE id = $1 AND name = $2",
        "SELECT note FROM item WHERE id = $1 + 1",
        "SELECT note FROM item WHERE id IN (SELECT id FROM old WHERE old.id = $1)",
        "SELECT DISTINCT note FROM item WHERE id = $1",
        "SELECT note FROM item WHERE id = $1::integer",
        "WITH old AS (SELECT 1) SELECT note FROM item WHERE id = $1",
        "SELECT id FROM item WHERE id = $1 UNION SELECT 2",
    ],
)
def test_what_means_something_else_for_many_keys_is_evaluated_for_each(sql):
    (found,) = many_rows(sql, TYPES)
    assert "CROSS JOIN LATERAL" in found.sql and "$1::integer[]" in found.sql


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT now()", "has no parameter"),
        ("SELECT * FROM item WHERE id = $4", "does not know the type of parameter $4"),
        ("INSERT INTO item SELECT $1", "takes its rows from a query"),
        ("INSERT INTO item VALUES ($1, $2), ($3, 'x')", "has several rows already"),
        ("INSERT INTO item VALUES ($1, DEFAULT)", "asks for a default"),
        ("INSERT INTO item VALUES ($1) ON CONFLICT (id) DO UPDATE SET name = $2", "parameters, which differ"),
        ("UPDATE item SET note = $2", "no WHERE"),
        ("UPDATE item SET note = $2 WHERE hot", "changes the same rows"),
        ("SELECT * FROM item WHERE id = $1 FOR UPDATE", "locks rows"),
        ("CALL work($1)", "cannot write it for many rows"),
    ],
)
def test_what_cannot_be_written_for_many_rows_is_refused_with_the_reason(sql, reason):
    with pytest.raises(Refused, match=reason.replace("$", r"\$")):
        many_rows(sql, TYPES)


def test_an_array_cannot_become_an_array_of_arrays():
    with pytest.raises(Refused, match="array already"):
        many_rows("SELECT * FROM item WHERE id = ANY ($1)", {1: "integer[]"})


def test_a_counter_says_that_the_same_row_must_be_summed_up():
    found = best("UPDATE counter SET n = n + $1 WHERE name = $2")
    assert any("summed up" in text for text in found.assumed)
