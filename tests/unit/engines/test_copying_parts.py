"""The pure parts of a copy: the statements that create it, the shares of its tables, and its pace."""

from pathlib import Path

import psycopg
import pytest

from fakes.goldens import compare
from uncork.engines.copying import objects
from uncork.engines.copying.applying import refusal
from uncork.engines.copying.database import Unit, cyclic, shares, units
from uncork.engines.copying.ddl import after_rows, before_rows, identifier, materialise, reloptions
from uncork.engines.copying.lost import without
from uncork.engines.copying.pace import Pace

HOSTILE = 'Größe "x"; DROP'


def table(oid, name="t", **facts):
    facts = {"kind": "r", "unlogged": False, "options": (), "partition_key": None, "bound": None} | facts
    facts = {"parents": (), "method": "heap", "bytes": 100, "rows": 10.0, "readable": True} | facts
    return objects.Table(oid=oid, schema="Select", name=name, **facts)


def constraint(oid, kind, definition="", **facts):
    facts = {"valid": True, "inherited": False, "derived": False, "no_inherit": False} | facts
    return objects.Constraint(table=oid, name=f"{kind} k", kind=kind, definition=definition, **facts)


SCHEMAS = {
    "every identifier is quoted, and every value is a literal": objects.Schema(
        schemas=(HOSTILE,),
        types=(
            objects.UserType("s", HOSTILE, "e", labels=["it's", "ü"]),
            objects.UserType(
                "s", "User", "c", attributes=[["order", "text", 'pg_catalog."C"'], ["b", "int", ""]]
            ),
            objects.UserType("s", "d", "d", base="integer", default="7", not_null=True),
        ),
        checks=(objects.DomainCheck("s", "d", HOSTILE, "CHECK ((VALUE > 0))", True),),
        sequences=(objects.SequenceFacts("s", HOSTILE, "bigint", 1, 1, 1, 9, 1, True, 5, None, None, False),),
    ),
    "a table has its columns first, and their defaults and settings after it": objects.Schema(
        tables=(table(1, HOSTILE, unlogged=True, options=["fillfactor=70"]),),
        columns=(
            objects.Column(1, "order", "bigint", not_null=True, not_null_name="n n", identity="d"),
            objects.Column(1, "ü", "text", collation='"s"."c"', default="'x'::text", storage="e",
                           target=0, options=["pg_attver=1"]),
            objects.Column(1, "twice", "bigint", generated="s", default='("order" * 2)'),
            objects.Column(1, "thrice", "bigint", generated="v", default='("order" * 3)'),
        ),
        sequences=(
            objects.SequenceFacts("Select", "q", "bigint", 3, 2, 1, 99, 1, False, None, 1, "order", True),
        ),
        version=18,
    ),
    "parts come before their whole is used, and foreign keys come last": objects.Schema(
        tables=(
            table(1, "whole", kind="p", partition_key="RANGE (a)"),
            table(2, "part", bound="FOR VALUES FROM (1) TO (2)", parents=(1,)),
            table(3, "child", parents=(4,)),
        ),
        constraints=(
            constraint(1, "f", "FOREIGN KEY (a) REFERENCES x", references=2),
            constraint(1, "f", "FOREIGN KEY (a) REFERENCES y", references=9),
            constraint(1, "c", "CHECK (a > 0)"),
            constraint(2, "c", "CHECK (a > 0)", inherited=True),
            constraint(1, "p", "PRIMARY KEY (a)"),
            constraint(2, "p", "PRIMARY KEY (a)", derived=True),
        ),
        indexes=(
            objects.Index("Select", "p k", 2, None, "Select", "w k", True),
            objects.Index("Select", "dead", 2, "CREATE INDEX dead", None, None, False),
        ),
        triggers=(objects.Trigger("Select", "whole", "T", "CREATE TRIGGER", "D"),),
    ),
}  # fmt: skip


def written(words, steps):
    """Return the statements of steps, or why they have none."""
    return [f"-- {words}", *(step.text or f"-- {step.what}: {step.refused}" for step in steps)]


def test_the_statements_of_a_copy_word_for_word():
    """UNCORK_BLESS=1 rewrites them; read the difference first."""
    lines = []
    for name, schema in SCHEMAS.items():
        lines += [f"---- {name} ----", *written("PostgreSQL 17, before rows", before_rows(schema, 17))]
        lines += written("PostgreSQL 18, before rows", before_rows(schema, 18))
        lines += [*written("after rows", after_rows(schema)), *written("materialised", materialise(schema))]
    compare(Path(__file__).parents[2] / "golden" / "database" / "copy.sql", "\n".join(lines) + "\n")


def test_identifiers_and_settings_are_quoted():
    assert identifier("a", HOSTILE) == '"a"."Größe ""x""; DROP"'
    assert (
        reloptions(["fillfactor=70", "toast.a=it's"]) == "(\"fillfactor\" = '70', \"toast\".\"a\" = 'it''s')"
    )


@pytest.mark.parametrize(
    "name", ["dblink", "postgres_fdw", "pg_cron", "pg_net", "http", "plpython3u", "unknown"]
)
def test_extensions_that_reach_out_or_are_not_known_are_refused(name):
    (step,) = before_rows(objects.Schema(extensions=(objects.Extension(name, "public"),)), 18)
    assert step.refused and not step.text


def test_a_source_that_fits_is_copied_whole_and_small_tables_always_are():
    parts = [Unit(1, 900, 9.0), Unit(2, 50, 5.0), Unit(3, 50, 5.0)]
    assert set(shares(parts, 1000).values()) == {1.0}
    some = shares(parts, 500)
    assert some[2] == some[3] == 1.0 and some[1] == pytest.approx(400 / 900)


def test_the_share_leaves_room_for_referenced_rows_and_cycles_end():
    apart = shares([Unit(1, 10**6, 10**4), Unit(2, 10**6, 10**4)], 10**6)
    linked = shares([Unit(1, 10**6, 10**4, (2,)), Unit(2, 10**6, 10**4)], 10**6)
    cycle = shares([Unit(1, 10**6, 10**4, (2, 1)), Unit(2, 10**6, 10**4, (1,))], 10**6)
    assert apart[1] == pytest.approx(0.5)
    assert linked[1] < apart[1] and cycle[1] == pytest.approx(0.35)
    assert cyclic([Unit(1, 1, 1.0, (2, 1)), Unit(2, 1, 1.0, (3,)), Unit(3, 1, 1.0)]) == {(1, 1)}
    assert cyclic([Unit(1, 1, 1.0, (2,)), Unit(2, 1, 1.0, (3,)), Unit(3, 1, 1.0, (1,))]) == {
        (1, 2),
        (2, 3),
        (3, 1),
    }
    chosen = 10**6 * (linked[1] + 1 - (1 - linked[1]) * 2.718281828 ** -linked[1])
    assert chosen == pytest.approx(10**6, rel=0.01)


def test_a_partitioned_table_is_one_unit_and_requested_tables_bring_what_they_reference():
    tables = (
        table(1, "whole", kind="p", bytes=0, rows=-1),
        table(2, "part", bound="DEFAULT", parents=(1,)),
        table(3, "notes", rows=-1.0, bytes=1000),
        table(4, "other"),
    )
    keys = (constraint(3, "f", references=1), constraint(3, "f", references=2, derived=True))
    assert units(tables, keys) == (Unit(1, 100, 10.0), Unit(3, 1000, 10.0, (1,)), Unit(4, 100, 10.0))
    schema = objects.Schema(tables=tables, constraints=keys)
    assert without(schema, ["notes"]) == {4}
    assert without(schema, ["Select.part"]) == {3, 4}


def test_reading_is_as_fast_as_allowed_on_average_and_hardly_faster_at_once():
    pace, now, waited = Pace(100.0), 0.0, 0.0
    for _ in range(50):
        pause = pace.wait(20, now)
        waited, now = waited + pause, now + pause
    assert 1000 / now == pytest.approx(100, rel=0.02)
    assert pace.wait(10, now + 100) == 0
    assert pace.wait(20, now + 100) == pytest.approx(0.2)


def test_a_full_disk_is_named_with_what_to_do():
    message = refusal(psycopg.errors.DiskFull("could not extend file"), "rows were copied")
    assert message == (
        "the disk of the copy's server became full while rows were copied (could not extend file); free some "
        "space, set UNCORK_SERVERS to a folder on a larger disk, or copy a sample of the rows with "
        "--disk"
    )
