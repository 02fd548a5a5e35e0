"""The pure parts of a copy: the shares of its tables, its pace, and what it refuses."""

import psycopg
import pytest

from uncork.engines.copying.applying import refusal
from uncork.engines.copying.database import Unit, cyclic, shares, units
from uncork.engines.copying.objects import ForeignKey, Schema, Table, identifier
from uncork.engines.copying.rows import Pace
from uncork.engines.copying.schema import SAFE_EXTENSIONS, without


def table(oid, name="t", **facts):
    return Table(oid, "Select", name, facts.pop("kind", "r"), **{"bytes": 100, "rows": 10.0, **facts})


def test_identifiers_are_quoted():
    assert identifier("a", 'Größe "x"; DROP') == '"a"."Größe ""x""; DROP"'


@pytest.mark.parametrize(
    "name", ["dblink", "postgres_fdw", "pg_cron", "pg_net", "http", "plpython3u", "unknown"]
)
def test_extensions_that_reach_out_or_are_not_known_are_refused(name):
    assert name not in SAFE_EXTENSIONS


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
        table(2, "part", partition=True, parents=(1,)),
        table(3, "notes", rows=-1.0, bytes=1000),
        table(4, "other"),
    )
    keys = (ForeignKey(3, 1), ForeignKey(3, 2, derived=True))
    assert units(tables, keys) == (Unit(1, 100, 10.0), Unit(3, 1000, 10.0, (1,)), Unit(4, 100, 10.0))
    schema = Schema(tables=tables, foreign_keys=keys)
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
