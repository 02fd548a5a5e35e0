"""The query for values with which an UPDATE or DELETE finds rows."""

import pytest

from uncork.profile.workload.sets import matching_rows


def test_conditions_without_parameters_hold_for_the_rows_too():
    found = matching_rows(
        "UPDATE job AS j SET state = $1 WHERE j.id = $2::int AND state = 'new' AND queue = ANY($3)"
    )
    assert (found.table, found.numbers, found.arrays) == ("job", (2, 3), {3})
    assert found.sql == (
        "SELECT j.id::text, j.queue::text FROM job AS j "
        "WHERE state = 'new' AND j.id IS NOT NULL AND j.queue IS NOT NULL"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM app.t WHERE id = $1 AND at > $2",
        "UPDATE t SET a = 1 FROM b WHERE t.id = b.id AND b.x = $1",
        "DELETE FROM t WHERE lower(name) = $1",
        "DELETE FROM t WHERE at < now()",
        "DELETE FROM t",
        "SELECT 1 FROM t WHERE id = $1",
    ],
)
def test_other_statements_have_no_such_query(sql):
    assert matching_rows(sql) is None
