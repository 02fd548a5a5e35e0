"""Locks that are no rows and no tables: of notifications, of subtransactions, of the list of locks itself."""

from dataclasses import replace

import pytest

from fakes.evidence import a_blocker, a_function, a_statement, a_table, an_index, evidence, spent
from fakes.findings import compare_findings
from uncork.diagnosis.findings import find_findings
from uncork.diagnosis.rules.locks import internal
from uncork.model.database.catalogue import TableOptions, TriggerFacts
from uncork.model.database.plan import StatementPlan
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database import ForeignKeyFacts, WaiterFacts
from uncork.profile.plans.tree import plan_tree
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

COLUMNS = {"item": ["id", "note"]}
INSERT = a_statement("INSERT INTO item (note) VALUES ($1)", 0, COLUMNS)
COMMIT = a_statement("COMMIT", 1)
NOTIFY = a_statement("NOTIFY changed, 'x'", 2)


def blocker(event, template=1, *, mean_ms=2.0, sessions=4.0, **facts):
    known = {"text": "commit", "most": 5, "chain": 2, "processes": 6}
    waiters = (WaiterFacts("shop", template, "", event, sessions),)
    return a_blocker(mean_ms, template=template, waiters=waiters, **{**known, **facts})


def commits(statements, *, waiting=4.0, flushing=0.8, **catalogue):
    return evidence(
        [spent(1, waiting, "Lock:object"), spent(1, flushing, "IO:WalSync"), spent(0, 0.2)],
        statements,
        blockers=(blocker("object"),),
        catalogue=catalogue,
    )


def test_notifications_of_a_trigger_are_named_by_its_function():
    trigger = TriggerFacts("tell", "item", 1, "after", True, ("insert",), "tell()", "")
    tell = a_function("tell", "BEGIN PERFORM pg_notify('changed', NEW.id::text); RETURN NEW; END")
    (one,) = find_findings(commits([INSERT, COMMIT], triggers=(trigger,), functions=(tell,)))
    assert (one.rule, one.objects) == ("notify-commits", ("tell",))
    assert one.headline.endswith("because function tell sends NOTIFY")
    off = replace(trigger, enabled=False)
    assert list(internal.find_notify(commits([INSERT, COMMIT], triggers=(off,), functions=(tell,)))) == []


@pytest.mark.parametrize(
    "healthy",
    [
        commits([INSERT, COMMIT]),  # the lock of another object
        commits([INSERT, COMMIT, NOTIFY], waiting=0.05, flushing=0.8),
        evidence([spent(1, 4.0, "IO:WalSync")], [INSERT, COMMIT, NOTIFY]),
    ],
)
def test_commits_that_wait_for_their_own_flush_are_healthy(healthy):
    assert list(internal.find_notify(healthy)) == []


LOCK = a_statement("SELECT pg_advisory_xact_lock($1)", 0)


def turns(one=LOCK, *, waiting=4.0, working=1.0, **facts):
    return evidence(
        [spent(0, waiting, "Lock:advisory"), spent(1, working)],
        [one, COMMIT],
        blockers=(blocker("advisory", 0, state=CPU, **facts),),
    )


def test_a_spare_session_that_waits_for_its_turn_to_lead_is_healthy():
    spare = a_statement("SELECT pg_advisory_lock($1)", 0, calls=0)
    assert find_findings(turns(spare, processes=1, mean_ms=3_600_000)) == ()
    uncounted = a_statement(
        "SELECT pg_advisory_lock($1)", 0, calls=None, rows=None, blocks=None, mean_ns=None
    )
    assert list(internal.find_advisory(turns(uncounted, processes=1))) == []
    assert len(list(internal.find_advisory(turns(uncounted, processes=6)))) == 1


def test_a_forgotten_transaction_with_an_advisory_lock_is_the_finding_of_another_rule():
    forgotten = evidence(
        [spent(0, 4.0, "Lock:advisory")],
        [LOCK, COMMIT],
        blockers=(blocker("advisory", 0, state=IDLE, idle_ns=5_000_000_000),),
    )
    assert [one.rule for one in find_findings(forgotten)] == ["forgotten-transaction"]


SAVEPOINT = a_statement("SAVEPOINT one", 1, calls=60_000)
READ = a_statement("SELECT id FROM item WHERE id = $1", 0, COLUMNS)


def looked_up(statements=(READ, SAVEPOINT), *, waits=2.0, event="SubtransSLRU", **facts):
    return evidence(
        [spent(0, waits, f"LWLock:{event}"), spent(1, 0.2, application="batch"), spent(0, 1.0)],
        list(statements),
        **facts,
    )


def test_blocks_that_handle_exceptions_are_subtransactions_too():
    call = a_statement("SELECT put($1)", 1)
    handles = "BEGIN INSERT INTO item VALUES (1); EXCEPTION WHEN unique_violation THEN NULL; END"
    put = a_function("put", handles)
    (one,) = internal.find_subtransactions(
        looked_up((READ, call), event="SubtransBuffer", catalogue={"functions": (put,)})
    )
    assert one.objects == ("put",)
    assert "Rewrite function put without EXCEPTION" in one.candidates[0].text


ORDER = a_statement("INSERT INTO item (note) VALUES ($1)", 0, COLUMNS)
SHARE = a_statement("SELECT id FROM item WHERE id = $1 FOR SHARE", 0, COLUMNS)
PARENT = ForeignKeyFacts("item_shop_fkey", "item", 1, "shop", 2, "shop", True)


def shared(one=ORDER, *, wait="LWLock:MultiXactMemberSLRU", waits=2.0, **facts):
    seen = evidence([spent(0, waits, wait), spent(0, 1.0)], [one], **facts)
    return list(internal.find_multixacts(replace(seen, foreign_keys=(PARENT,))))


@pytest.mark.parametrize(
    "wait", ["LWLock:MultiXactOffsetBuffer", "LWLock:MultiXactGen", "LWLock:MultiXactMemberSLRU"]
)
def test_rows_that_foreign_keys_lock_together_are_named_by_their_table(wait):
    (one,) = shared(wait=wait)
    assert one.headline == "Many transactions at once lock the same rows of shop in shared mode"
    assert fits(finding_headline(one))
    assert (one.objects, one.bill.share) == (("shop",), pytest.approx(2 / 3))
    assert [each.kind for each in one.candidates] == ["client", "client"]


SUM = "SELECT sum(note) FROM item WHERE id = $1"


def parts(number, removed=0):
    scans = "".join(
        f"\n  ->  Seq Scan on item_{one}  (cost=0.00..9.00 rows=1 width=4)" for one in range(number)
    )
    text = f"Append  (cost=0.00..99.00 rows=9 width=4){scans}"
    root = plan_tree(text)
    return StatementPlan(0, "generic", replace(root, removed_parts=removed), text)


def locking(plan, *, waits=2.0, version="PostgreSQL 15.4", settings=None, indexes=1):
    options = {
        "item": TableOptions("item", 1, {}, "permanent", partition_key="RANGE (day)"),
        **{
            f"item_{one}": TableOptions(f"item_{one}", 2, {}, "permanent", parent="item") for one in range(99)
        },
    }
    return evidence(
        [spent(0, waits, "LWLock:LockManager"), spent(0, 1.0)],
        [a_statement(SUM, 0, COLUMNS, plans=(plan,))],
        tables=[a_table("item", kind="partitioned table")],
        indexes=[an_index(f"CREATE INDEX i{one} ON item (note)") for one in range(indexes)],
        settings=settings,
        catalogue={"options": options},
        server_version=version,
    )


def test_from_version_18_on_sessions_note_more_locks():
    many = {"version": "PostgreSQL 18.4", "settings": {"max_locks_per_transaction": "64"}}
    assert list(internal.find_lock_manager(locking(parts(30), **many))) == []
    (one,) = internal.find_lock_manager(locking(parts(40), **many))
    assert any("max_locks_per_transaction" in each.sql for each in one.candidates)


def test_what_is_found_word_for_word():
    compare_findings("internal_locks", [
        ("commits with notify queue for one lock",
         find_findings(commits([INSERT, COMMIT, NOTIFY]))),
        ("an advisory lock that changes hands is a queue", find_findings(turns())),
        ("a few turns are healthy", find_findings(turns(waiting=0.6))),
        ("subtransactions that others look up are named with their application",
         internal.find_subtransactions(looked_up())),
        ("a larger cache is proposed where its size is a setting",
         internal.find_subtransactions(looked_up(settings={"subtransaction_buffers": "256kB"}))),
        ("statements that lock rows for share and caches with a size get changes",
         shared(SHARE,
                settings={"multixact_offset_buffers": "128kB",
                          "multixact_member_buffers": "256kB"})),
        ("short waits for shared locks are healthy", shared(waits=0.05),
         shared(wait="LWLock:WALWrite")),
        ("statements that lock many partitions wait for the list of locks",
         internal.find_lock_manager(locking(parts(40), indexes=2))),
        ("partitions that a generic plan removes are locked all the same",
         internal.find_lock_manager(locking(parts(1, removed=60)))),
        ("other waits for internal locks are no subtransactions",
         *(internal.find_subtransactions(healthy) for healthy in (looked_up(waits=0.1),
                                                              looked_up(event="XactSLRU")))),
        ("few locks or short waits are healthy",
         *(internal.find_lock_manager(healthy) for healthy in (locking(parts(4)),
                                                           locking(parts(40), waits=0.05)))),
    ])  # fmt: skip
