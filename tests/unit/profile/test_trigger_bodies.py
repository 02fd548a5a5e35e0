"""The bodies of triggers that become bodies for all rows of a statement, and those that do not."""

from __future__ import annotations

import pytest

from uncork.model.database.catalogue import ColumnFacts
from uncork.profile.shapes.all_rows import body_for_all_rows


def column(table, name, kind, *, not_null=True, stored=None):
    return ColumnFacts(table, 1, 1, name, kind, stored or kind, not_null, "", "", "")


COLUMNS = {
    "event": (
        column("event", "kind", "integer"),
        column("event", "place", "integer", not_null=False),
        column("event", "name", "text"),
        column("event", "price", "numeric", stored="numeric(8,2)"),
        column("event", "weight", "double precision"),
    ),
    "total": (column("total", "events", "bigint"), column("total", "paid", "numeric", stored="numeric(8,4)")),
}


def turned(statements, *, end="RETURN NEW; END", record="new", columns=COLUMNS):
    return body_for_all_rows(f"BEGIN {statements} {end}", record, "event", columns)


def test_a_counter_gets_one_update_for_each_group_of_keys():
    body = turned("UPDATE stats.total SET events = events + 1 WHERE kind = NEW.kind AND region = 'x';")
    assert body.tables == ("stats.total",)
    assert body.source == (
        "BEGIN\n  UPDATE stats.total SET events = total.events + sums.sum_1\n  FROM (SELECT one_row.kind "
        "AS key_1, count(*) AS sum_1\n        FROM new_rows AS one_row GROUP BY one_row.kind) AS sums\n  "
        "WHERE total.kind = sums.key_1 AND total.region = 'x';\n  RETURN NULL;\nEND"
    )
    assert "sum(hashtextextended(whole::text, 0)) AS content FROM stats.total AS whole" in body.check


def test_deleted_rows_are_read_from_the_old_ones():
    body = turned(
        "UPDATE total SET events = events - 1 WHERE kind = OLD.kind;", end="RETURN OLD; END;", record="old"
    )
    assert "total.events - sums.sum_1" in body.source and "FROM old_rows AS one_row" in body.source


def test_times_differ_each_time_so_only_rows_are_counted():
    body = turned("UPDATE total SET events = events + 1, at = now() WHERE kind = NEW.kind;")
    assert "at = now()" in body.source and "NULL::numeric AS content" in body.check


@pytest.mark.parametrize(
    "statements",
    [
        "IF NEW.kind > 1 THEN UPDATE total SET events = events + 1; END IF;",
        "PERFORM f(NEW.kind);",
        "UPDATE total SET events = NEW.kind;",  # the last row decides
        "UPDATE total SET events = events * 2;",
        "UPDATE total SET events = other + 1;",
        "UPDATE total SET events = events + 1 WHERE events < 10;",  # each row changes what the next one finds
        "UPDATE total SET events = events + 1, kind = 1 WHERE kind = NEW.kind;",
        "UPDATE total SET events = events + 1 WHERE kind > NEW.kind;",
        "UPDATE total SET events = events + 1 WHERE kind = NEW.kind OR kind = 0;",
        "UPDATE total SET events = events + 1 WHERE kind = (SELECT max(kind) FROM event);",
        "UPDATE total SET weight = weight + NEW.weight;",  # the order of additions rounds
        "UPDATE total SET paid = paid + NEW.price;",  # another scale
        "UPDATE total SET events = coalesce(events, 0) + NEW.place;",  # begins anew after a NULL
        "UPDATE total SET events = events + 1 FROM event WHERE event.kind = total.kind;",
        "UPDATE total SET events = events + 1 RETURNING events;",
        "UPDATE event SET kind = kind + 1;",  # the trigger's own table
        "UPDATE total SET events = events + 1; UPDATE total SET events = events + 1;",
        "INSERT INTO line (name) VALUES (tg_op);",
        "INSERT INTO line (name) VALUES (variable);",
        "INSERT INTO line (name) VALUES ((SELECT max(name) FROM event));",
        "INSERT INTO line (name) VALUES (NEW.name), ('x');",
        "INSERT INTO line VALUES (NEW.name);",
        "INSERT INTO line (name) SELECT NEW.name;",
        "INSERT INTO line (name) VALUES (NEW.*);",
        "INSERT INTO seen (place, n) VALUES (NEW.place, 1) ON CONFLICT (place) DO UPDATE SET n = seen.n + 1;",
        "INSERT INTO seen (kind, n) VALUES (NEW.kind, 1) ON CONFLICT (kind) DO UPDATE SET n = seen.n + 2;",
        "INSERT INTO seen (kind, n) VALUES (NEW.kind, 1) "
        "ON CONFLICT (kind) DO UPDATE SET n = seen.n + 1 WHERE seen.n < 1;",
        "INSERT INTO seen (kind, n, name) VALUES (NEW.kind, 1, NEW.name) "
        "ON CONFLICT (kind) DO UPDATE SET n = seen.n + 1;",
        "DELETE FROM total WHERE kind = NEW.kind;",
        "SELECT 1;",
        "",
    ],
)
def test_what_could_come_out_otherwise_stays(statements):
    assert turned(statements) is None


@pytest.mark.parametrize(
    "end", ["END", "RETURN NEW; EXCEPTION WHEN others THEN RETURN NULL; END", "RETURN x; END"]
)
def test_another_end_of_a_body_stays(end):
    assert turned("UPDATE total SET events = events + 1;", end=end) is None


def test_a_table_of_unknown_columns_gets_whole_numbers_only():
    update = "UPDATE total SET paid = paid + NEW.{};"
    own = {"event": COLUMNS["event"]}
    assert turned(update.format("price"), columns=own) is None
    assert turned(update.format("kind"), columns=own) is not None
