"""The values that a statement compares are drawn as an application may ask for them."""

from collections import Counter
from dataclasses import replace

import pytest

from uncork.model.database.catalogue import Catalogue, ColumnFacts
from uncork.model.database.workload import RowSample, Sample
from uncork.profile.workload.building import SeenStatement, build_workload, rows_of, samples_of
from uncork.profile.workload.drawing import ColumnDraw
from uncork.profile.workload.known import Known


def column(table, number, name, kind="text", **facts):
    return ColumnFacts(table, 1, number, name, kind, kind, False, "", "", "", **facts)


def build(sql, *, known, **facts):
    """Return the captured statement, which was executed 60 times."""
    own = {"calls": 60, "execution_ns": 6e9, "rows": 60, **facts}
    (found,) = build_workload([SeenStatement(1, sql, sql, **own)], known, 60.0, 1.5).statements
    return found


STATES = Known(
    Catalogue(
        columns={
            "job": (column("job", 1, "state", "text", common=(("done", 0.9), ("new", 0.001)), distinct=2.0),)
        }
    ),
    {"job": 100_000.0},
)


@pytest.mark.parametrize(
    ("sql", "rows", "new"),
    [
        ("SELECT * FROM job WHERE state = $1", 60 * 100, 24),
        ("SELECT * FROM job WHERE state = $1", 60 * 90_000, 0),
        ("SELECT * FROM job WHERE state = $1", 60 * 5, 0),
        ("SELECT * FROM job WHERE state = $1 LIMIT 20", 60 * 20, 6),
        ("SELECT count(*) FROM job WHERE state = $1", 60, 0),
    ],
    ids=["the rare one has so many", "the common one has so many", "no value has", "LIMIT", "an aggregate"],
)
def test_the_values_that_are_compared_have_as_many_rows_as_a_call_returns(sql, rows, new):
    assert Counter(build(sql, known=STATES, rows=rows).sets)["new",] == new


def test_values_with_an_average_number_of_rows_are_a_mixture():
    chosen = ColumnDraw(STATES.catalogue.columns["job"][0], 100_000.0)
    drawn = Counter(chosen.value(chosen.for_rows((place + 0.5) / 1000, 9_000.0)) for place in range(1000))
    assert drawn["done"] == pytest.approx(100, abs=2)  # 90 000 rows and 100 rows: 9 000 on average


def test_a_rare_state_occurs_with_limit_although_the_rows_that_were_read_lack_it():
    columns = (*STATES.catalogue.columns["job"], column("job", 2, "queue", "text", common=(("a", 1.0),)))
    known = replace(STATES, catalogue=Catalogue(columns={"job": columns}))
    sql = "SELECT * FROM job WHERE state = $1 AND queue = $2 LIMIT 20"
    (wanted,) = rows_of([SeenStatement(1, sql, sql, calls=60, execution_ns=6e9)], known)
    known = replace(known, together={wanted: RowSample((("done", "a"),) * 200)})
    assert Counter(build(sql, known=known).sets) == {("done", "a"): 18, ("new", "a"): 6}
    assert Counter(build(sql.replace(" LIMIT 20", ""), known=known).sets) == {("done", "a"): 24}


NAMES = Known(
    Catalogue(
        columns={
            "person": (
                column("person", 1, "name", "text", distinct=-1.0,
                       bounds=tuple(f"Mr {chr(65 + n % 26)}{n * 7919 % 1000:03}xyz" for n in range(100))),
            )
        }
    ),
    {"person": 100_000.0},
)  # fmt: skip


def test_patterns_of_a_statement_that_scans_begin_with_a_wildcard():
    sql = "SELECT * FROM person WHERE name LIKE $1"
    fast, slow = (build(sql, known=NAMES, rows=60 * 3, execution_ns=60 * ns) for ns in (1e5, 3e7))
    assert all(pattern.startswith("Mr ") for (pattern,) in fast.sets)
    assert all(len(pattern) >= 5 and pattern[0] == pattern[-1] == "%" for (pattern,) in slow.sets)


def test_a_limit_that_calls_do_not_reach_leaves_no_rows_out():
    sql, seen = "SELECT * FROM job WHERE state = $1 LIMIT $2", "SELECT * FROM job WHERE state = $1 LIMIT 500"
    few, many = (build(sql, known=STATES, rows=60 * rows, seen=(seen,) * 3) for rows in (100, 450))
    assert Counter(few.sets) == {("new",): 24}
    assert Counter(many.sets)["done",] > 12


def test_patterns_are_made_of_values_that_the_histogram_lacks():
    """The planner takes a value of its histogram for a hundredth of the rows."""
    sql = "SELECT * FROM person WHERE name LIKE $1"
    one = SeenStatement(1, sql, sql, calls=60, execution_ns=60 * 3e7, rows=180)
    (wanted,) = samples_of([one], NAMES)
    known = replace(NAMES, samples={wanted: Sample(("Mr A000xyz", "Ms Unheard Of"))})
    found = build(sql, known=known, rows=180, execution_ns=60 * 3e7)
    assert all(pattern.strip("%") in "Ms Unheard Of" for (pattern,) in found.sets)
