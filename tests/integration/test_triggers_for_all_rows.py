"""A trigger's body for all rows leaves on a real server what the body for each row leaves, for any rows."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uncork.model.database.catalogue import ColumnFacts
from uncork.profile.shapes.all_rows import body_for_all_rows

pytestmark = pytest.mark.postgres

BODIES = {
    "a count": "UPDATE total SET events = events + 1 WHERE kind = NEW.kind;",
    "a sum that may be null": "UPDATE total AS t SET sum = t.sum - NEW.amount, seen = now() "
    "WHERE NEW.place = t.kind;",
    "a sum from null on": "UPDATE total SET sum = coalesce(sum, 0) + NEW.kind "
    "WHERE kind = NEW.place AND region = 'a';",
    "one row for all": "UPDATE site SET n = n + 2;",
    "an exact decimal": "UPDATE total SET paid = paid + NEW.price WHERE kind = NEW.kind;",
    "a line of a log": "INSERT INTO line (kind, what) VALUES (NEW.kind, 'got ' || NEW.amount::text);",
    "only new ones": "INSERT INTO known (place) VALUES (NEW.place) ON CONFLICT DO NOTHING;",
    "a row that appears": "INSERT INTO seen (kind, n) VALUES (NEW.kind, 1) "
    "ON CONFLICT (kind) DO UPDATE SET n = seen.n + 1;",
    "a sum that appears": "INSERT INTO seen AS s (kind, n, at) VALUES (NEW.kind, NEW.amount, now()) "
    "ON CONFLICT (kind) DO UPDATE SET n = s.n + EXCLUDED.n, at = now();",
    "two of them": "UPDATE site SET n = n + NEW.kind; INSERT INTO line (kind) VALUES (NEW.kind);",
}
SCHEMA = """
CREATE TABLE event (kind integer NOT NULL, place integer, amount integer, price numeric(8,2));
CREATE TABLE total
  (kind integer, region text, events bigint, sum integer, paid numeric(8,2), seen timestamptz);
CREATE TABLE site (n integer);
CREATE TABLE line (kind integer, what text);
CREATE TABLE known (place integer UNIQUE);
CREATE TABLE seen (kind integer PRIMARY KEY, n bigint, at timestamptz);
"""
WRITTEN = ("total", "site", "line", "known", "seen")
_LEFT = "SELECT to_jsonb(t) - '{{at,seen}}'::text[] AS whole FROM {} AS t ORDER BY 1"  # but for times
NUMBER = st.one_of(st.none(), st.integers(-3, 3))
ROWS = st.lists(
    st.tuples(st.integers(0, 3), NUMBER, NUMBER, st.one_of(st.none(), st.sampled_from(["1.25", "-0.50"])))
)


@pytest.fixture(scope="module")
def control(embedded):
    with psycopg.connect(embedded.conninfo("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE triggers")
    with psycopg.connect(embedded.conninfo("triggers"), autocommit=True) as own:
        own.execute(SCHEMA)
        yield own
    with psycopg.connect(embedded.conninfo("postgres"), autocommit=True) as admin:
        admin.execute("DROP DATABASE triggers")


@pytest.fixture(scope="module")
def columns(control):
    found = {}
    for table, name, kind, stored, not_null in control.execute(
        "SELECT c.relname, a.attname, format_type(a.atttypid, NULL), format_type(a.atttypid, a.atttypmod), "
        "a.attnotnull FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0"
    ):
        one = ColumnFacts(table, 1, 1, name, kind, stored, not_null, "", "", "")
        found.setdefault(table, []).append(one)
    return found


@pytest.mark.parametrize("name", BODIES)
def test_both_triggers_leave_the_same(name, control, columns):
    body = f"BEGIN {BODIES[name]} RETURN NEW; END"
    turned = body_for_all_rows(body, "new", "event", columns)
    assert turned is not None
    assert turned.joins == ("WHERE" in BODIES[name])
    both = (("FOR EACH ROW", body), ("REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT", turned.source))

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(batches=st.lists(ROWS, max_size=3))
    def same(batches):
        left, checked = [], []
        for how, source in both:
            with control.transaction(force_rollback=True):
                control.execute(
                    "INSERT INTO total SELECT n, v.*, '2000-01-01' FROM generate_series(0, 2) AS n, "
                    "(VALUES ('a', 0, NULL, 0), ('b', 5, 7, 1.5)) AS v; INSERT INTO site VALUES (0)"
                )
                control.execute(
                    f"CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $body$ {source} $body$"
                )
                control.execute(f"CREATE TRIGGER acting AFTER INSERT ON event {how} EXECUTE FUNCTION act()")
                for rows in batches:
                    control.execute(
                        "INSERT INTO event "
                        "SELECT * FROM unnest(%s::int[], %s::int[], %s::int[], %s::numeric[])",
                        [[one[place] for one in rows] for place in range(4)],
                    )
                left.append([control.execute(_LEFT.format(table)).fetchall() for table in WRITTEN])
                checked.append(control.execute(turned.check).fetchall())
        assert left[0] == left[1]
        assert checked[0] == checked[1]

    same()
