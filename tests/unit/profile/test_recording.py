"""Sessions of a log become transactions, and these become scripts with values."""

from __future__ import annotations

from itertools import count

import pytest

from uncork.model.database.recording import LoggedStatement
from uncork.profile.recording.transactions import (
    COLUMNS,
    LoggedSessions,
    logged_transactions,
    parameter_values,
    recording_of,
    script_statement,
    whole_statement,
)

SECOND = 1_000_000


class Log:
    """Entries of a log, in order; times are in milliseconds."""

    def __init__(self):
        self.rows = []
        self.offsets = count()

    def add(self, pid, at_ms, **changes):
        row = dict.fromkeys(COLUMNS) | {"pid": pid, "time": at_ms * 1000, "offset": next(self.offsets)}
        self.rows.append(row | {"severity": "LOG"} | changes)
        return self

    def ran(self, pid, at_ms, took_ms, text, step="statement", parameters=None):
        """Add a statement that ended at a time."""
        return self.add(
            pid,
            at_ms,
            kind="duration",
            step=step,
            duration_us=took_ms * 1000,
            statement=text,
            statement_id=7,
            parameters=parameters,
        )

    def failed(self, pid, at_ms, text):
        return self.add(pid, at_ms, kind="error", severity="ERROR", statement=text, statement_id=8)

    def read(self):
        return logged_transactions(self.rows)


def texts(found):
    return [[one.text for one in each.statements] for each in found.transactions]


def test_transactions_have_the_pauses_of_their_client():
    log = Log()
    log.ran(1, 10, 1, "BEGIN").ran(2, 11, 1, "select 1")
    log.ran(1, 25, 5, "update a set b = 1")  # it began at 20, after a pause of 10
    log.ran(1, 28, 1, "insert into c values ($1)", "parse")
    log.ran(1, 29, 1, "insert into c values ($1)", "bind", "$1 = '5'")
    log.ran(1, 31, 1, "insert into c values ($1)", "execute", "$1 = '5'")
    log.ran(1, 40, 4, "COMMIT").ran(1, 90, 2, "select 2")
    found = log.read()
    assert texts(found) == [
        ["BEGIN", "update a set b = 1", "insert into c values ($1)", "COMMIT"],
        ["select 1"],
        ["select 2"],
    ]
    first, _, last = found.transactions
    assert [one.pause_us for one in first.statements] == [0, 10_000, 3_000, 5_000]
    assert [one.bound for one in first.statements] == [False, False, True, False]
    assert (first.begin_us, first.end_us, first.session) == (9_000, 40_000, 0)
    assert (last.begin_us, last.statements[0].pause_us) == (88_000, 0)
    assert (found.missing, found.untimed) == ({}, 0)


def test_statements_that_are_logged_before_they_run_begin_then():
    log = Log()
    for at, took, text in ((10, 1, "begin"), (20, 30, "delete from a"), (60, 1, "end")):
        log.add(1, at, kind="statement", statement=text, statement_id=7)
        log.add(1, at + took, kind="duration", duration_us=took * 1000)
    found = log.read()
    assert texts(found) == [["begin", "delete from a", "end"]]
    assert [one.pause_us for one in found.transactions[0].statements] == [0, 9_000, 10_000]


def test_what_cannot_be_sent_again_is_counted():
    log = Log()
    log.ran(1, 1, 1, "COMMIT")  # it began before the log
    log.ran(1, 2, 1, "BEGIN").failed(1, 3, "select 1/0").ran(1, 4, 1, "ROLLBACK")
    log.ran(1, 5, 1, "set search_path = a").ran(1, 6, 1, "copy a from stdin").failed(1, 7, "select x")
    log.ran(1, 8, 1, "begin; select 1; commit;").ran(1, 9, 1, "select ';' -- ;")
    log.ran(1, 10, 1, "begin").ran(1, 11, 1, "savepoint s").ran(1, 12, 1, "rollback work to s")
    log.ran(1, 13, 1, "set local work_mem = 1").ran(1, 14, 1, "rollback")
    log.ran(2, 15, 1, "begin").add(2, 16, kind="disconnection").ran(1, 17, 1, "begin")
    log.add(1, 18, kind="statement", statement="select 1", statement_id=7)
    log.ran(3, 19, 1, "select 3", parameters=None)
    log.rows[-1]["statement_id"] = None  # uncork's own monitoring
    found = log.read()
    assert texts(found) == [
        ["select ';' -- ;"],
        ["begin", "savepoint s", "rollback work to s", "set local work_mem = 1", "rollback"],
    ]
    assert found.missing == {
        "they failed": 2,
        "SET and the like change the session, not the data": 1,
        "COPY is not sent again": 1,
        "the client sent several statements in one message": 1,
        "the log does not show where they begin or end": 2,
    }
    assert found.untimed == 1


@pytest.mark.parametrize(
    ("text", "written", "values"),
    [
        ("update a set b = 'it''s :x', c=-1.5 where d is null; ",
         "update a set b = :t2_1, c=-:t2_2 where d is :t2_3",
         {"t2_1": "'it''s :x'", "t2_2": "1.5", "t2_3": "null"}),
        ("select a::int /* by 12:30 */\nfrom b", "select a::int from b", {}),
        ("select a[1:2] from b", ":t2", {"t2": "select a[1:2] from b"}),
        ("select $$x;$$, E'\\n'", "select :t2_1, :t2_2", {"t2_1": "$$x;$$", "t2_2": "E'\\n'"}),
        ('select "a:b"', ":t2", {"t2": 'select "a:b"'}),
    ],
)  # fmt: skip
def test_texts_are_separated_from_their_constants(text, written, values):
    found = script_statement(LoggedStatement(text, "", bound=False, pause_us=0), 2)
    assert (found.text, dict(found.values)) == (written, values)


def test_parameters_keep_their_values():
    logged = "$1 = 'it''s, $2 = ''x''', $2 = NULL, $3 = ''"
    assert parameter_values(logged) == {1: "it's, $2 = 'x'", 2: None, 3: ""}
    one = LoggedStatement("select $1, 7 where $2 = $1", "$1 = 'a''b', $2 = NULL", bound=True, pause_us=0)
    found = script_statement(one, 1)
    assert found.text == "select :p1_1, 7 where :p1_2 = :p1_1"
    assert found.values == {"p1_1": "a'b", "p1_2": None}
    assert whole_statement(one, 1).values == {"t1": "select 'a''b', 7 where NULL = 'a''b'"}
    without = LoggedStatement("select $1", "", bound=True, pause_us=0)
    assert script_statement(without, 1) is None and whole_statement(without, 1) is None


def test_each_sequence_of_statements_is_a_script():
    log = Log()
    for number in range(3):
        at = 100 * number
        log.ran(number % 2, at + 1, 1, "BEGIN").ran(number % 2, at + 10, 2, f"update a set b = {number}")
        log.ran(number % 2, at + 20, 1, "COMMIT")
    log.ran(5, 400, 1, "select b from a")
    found = recording_of(log.read(), 10)
    assert list(found.scripts) == ["transaction-001.sql", "transaction-002.sql"]
    assert found.scripts["transaction-001.sql"] == (
        "-- weight: 3\n"
        "-- 3 transactions, 75 % of the recording; median 20.0 ms, of which 16.0 ms are pauses\n"
        "BEGIN;\n\\sleep :w2 us\nupdate a set b = :t2_1;\n\\sleep :w3 us\nCOMMIT;\n"
    )
    second = found.transactions[1]
    assert (second.at_us, second.took_us, second.session) == (100_000, 20_000, 1)
    assert second.values == {"t2_1": "1", "w2": "7000", "w3": "9000"}
    assert (found.sessions, found.seconds, found.missing) == (3, 0.4, {})
    assert recording_of(log.read(), 1).missing == {"a recording has 1 transactions at most": 3}


def test_rare_sequences_share_a_script_by_their_length():
    log = Log()
    for number in range(150):
        log.ran(1, number, 0, f"select c{number} from a where b = {number}")
    found = recording_of(log.read(), 1_000)
    assert len(found.scripts) == 101
    assert found.scripts["other-001.sql"].endswith("\n:t1;\n")
    rare = [one for one in found.transactions if one.script == "other-001.sql"]
    assert len(rare) == 50
    assert all(one.values["t1"].startswith("select c") for one in rare)
    assert recording_of(LoggedSessions((), {"they failed": 2}, 0), 10).transactions == ()
