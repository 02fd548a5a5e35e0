"""What keeps dead rows from VACUUM: who it is, which tables, and what it costs."""

from dataclasses import replace

import pytest

from fakes.database_results import database_result
from fakes.evidence import a_statement, a_table, an_index, evidence, spent
from fakes.findings import compare_findings
from uncork.analysis.database.result import horizon_holders
from uncork.diagnosis.rules.clients import sessions
from uncork.diagnosis.rules.space import vacuum
from uncork.model.results.database_transactions import HorizonHolder, InTransaction
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

END_US = database_result().watch.ended_us
HOUR_NS = 3_600_000_000_000
NEXT = "SELECT id FROM item WHERE state = $1 ORDER BY id LIMIT 1"
REPORT = HorizonHolder(
    "session", "reports", "analyst", 90_000, HOUR_NS, pid=4711, template=7, text="select sum(n) from big"
)


def seen(*holders, blocks=6_000 * 200, transactions=(), **table):
    known = {"dead": 90_000, "vacuumed_us": END_US - 10_000_000, "updated": 6_000, **table}
    return evidence(
        [spent()],
        [a_statement(NEXT, columns={"item": ["id", "state"]}, blocks=blocks)],
        tables=[a_table(**known)],
        indexes=[an_index("CREATE INDEX item_state_id ON item USING btree (state, id)")],
        horizons=holders,
        transactions=transactions,
    )


def found(*holders, **facts):
    return list(vacuum.find_held_back(seen(*holders, **facts)))


@pytest.mark.parametrize(
    "table",
    [
        {"vacuumed_us": None},
        {"vacuumed_us": END_US - HOUR_NS // 1000 - 1},  # before the transaction began
        {"updated": 600_000},  # they died since the last VACUUM
        {"dead": 50_000},  # autovacuum tolerates as many
    ],
)
def test_dead_rows_that_nobody_keeps_are_no_finding(table):
    assert found(REPORT, **table) == []


@pytest.mark.parametrize(
    "holders",
    [
        (),
        (replace(REPORT, held_age=900, open_ns=40_000_000_000),),
        # The oldest counts, and it is young: VACUUM left the rows for something that has ended.
        (replace(REPORT, held_age=9_000, open_ns=4_000_000_000), replace(REPORT, held_age=100)),
    ],
)
def test_short_transactions_are_no_finding(holders):
    assert found(*holders) == []


def test_of_equal_ages_the_transaction_that_was_open_first_is_named():
    short = replace(REPORT, name="shop", open_ns=2_000_000, held_age=90_010)
    slot = HorizonHolder("replication slot", "standby_1", "", 90_020, None)
    (one,) = found(short, slot, REPORT)
    assert one.objects[-1] == "reports"
    (older,) = found(REPORT, replace(slot, held_age=500_000))
    assert older.objects[-1] == "standby_1"


@pytest.mark.parametrize(
    ("holder", "words", "remedy"),
    [
        (HorizonHolder("prepared transaction", "it's", "app", 90_000, HOUR_NS),
         "prepared transaction it's, open for 60 min 00 s", "ROLLBACK PREPARED 'it''s'"),
        (HorizonHolder("replication slot", "old", "", 90_000, None, active=False),
         "replication slot old", "pg_drop_replication_slot('old')"),
        (HorizonHolder("replication slot", "new", "", 90_000, None), "slot new",
         "hot_standby_feedback = off"),
        (HorizonHolder("standby", "east", "", 90_000, HOUR_NS), "standby east",
         "hot_standby_feedback = off"),
    ],
)  # fmt: skip
def test_what_is_no_session_is_named_with_its_own_remedy(holder, words, remedy):
    (one,) = found(holder)
    assert words in one.headline
    assert fits(finding_headline(one))
    assert remedy in one.candidates[0].text
    assert one.candidates[0].sql == ""  # only a person knows whether it is needed


def test_a_forgotten_transaction_has_a_finding_of_its_own():
    idle = InTransaction(
        "reports", "analyst", None, "", 1.0, 1, 1.0, HOUR_NS, 1.0, HOUR_NS // 2, HOUR_NS, 90_000, 20
    )
    holder = replace(REPORT, idle_ns=HOUR_NS // 2)
    assert found(holder, transactions=(idle,)) == []
    assert list(sessions.find_forgotten(seen(holder, transactions=(idle,))))
    # One that pauses briefly between its statements is none.
    (one,) = found(replace(REPORT, idle_ns=1_000), transactions=(replace(idle, idle_ns=1_000_000),))
    assert "waited for its client after: select sum(n) from big" in one.evidence[0]


def row(**facts):
    known = {"backend": "client backend", "state": "active", "application": "shop", "user": "app", "pid": 1}
    times = {"held_age": 5, "transaction_us": 1_000, "state_us": 10, "template": 0, "database": "shop"}
    return {**known, **times, **facts}


def test_sessions_slots_and_prepared_transactions_are_listed_by_age():
    kept = [
        row(),
        row(pid=2, held_age=80, state="idle in transaction"),
        row(pid=3, held_age=70, backend="walsender", database=None, application="east", template=None),
    ]
    ignored = [
        row(pid=4, held_age=None),
        row(pid=5, held_age=900, database="other"),
        row(pid=6, held_age=900, backend="parallel worker"),
        row(pid=7, held_age=900, backend="autovacuum worker"),
        row(pid=8, held_age=900, template=1),
    ]
    known = {"active": True, "since_us": None, "user": None, "now_us": 9_000}
    others = [
        {**known, "kind": "prepared transaction", "name": "x", "database": "shop", "held_age": 60}
        | {"since_us": 4_000, "user": "app"},
        {**known, "kind": "prepared transaction", "name": "y", "database": "other", "held_age": 600},
        {**known, "kind": "replication slot", "name": "z", "database": None, "held_age": 90, "active": False},
    ]
    holders = horizon_holders([*kept, *ignored], others, "shop", {0: "select ?", 1: "vacuum item"})
    assert [(one.kind, one.name, one.held_age, one.open_ns, one.idle_ns, one.active) for one in holders] == [
        ("replication slot", "z", 90, None, None, False),
        ("session", "shop", 80, 1_000_000, 10_000, True),
        ("standby", "east", 70, 1_000_000, None, True),
        ("prepared transaction", "x", 60, 5_000_000, None, True),
        ("session", "shop", 5, 1_000_000, None, True),
    ]


def test_what_is_found_word_for_word():
    compare_findings("held_back", [
        ("a long report is named with its tables and what their dead rows cost", found(REPORT)),
        ("without statements that read dead rows no cost is claimed",
         found(REPORT, blocks=6_000 * 6),
         found(REPORT, blocks=6_000 * 6, dead=70_000, live=290_000)),
        ("autovacuum is not blamed for rows that it cannot remove",
         vacuum.find_behind(seen(dead=40_000)),
         vacuum.find_behind(seen(REPORT, dead=40_000))),
    ])  # fmt: skip
