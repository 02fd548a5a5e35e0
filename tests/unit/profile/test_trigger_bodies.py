"""The bodies of triggers that become bodies for all rows of a statement, and those that do not."""

from __future__ import annotations

import pytest

from fakes.goldens import compare_answers
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


def test_deleted_rows_are_read_from_the_old_ones():
    body = turned(
        "UPDATE total SET events = events - 1 WHERE kind = OLD.kind;", end="RETURN OLD; END;", record="old"
    )
    assert "total.events - sums.sum_1" in body.source and "FROM old_rows AS one_row" in body.source


def test_what_could_come_out_otherwise_stays():
    """The last row decides, a row changes what the next one finds, or sums are rounded."""

    def answer(statements):
        body = turned(statements)
        return f"{body.source}\n{body.check}" if body else "stays"

    compare_answers("profile/trigger_bodies", answer)


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
