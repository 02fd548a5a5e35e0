"""Checkpoints, full WAL buffers and slow commits: what they cost, and when they are no fault."""

from dataclasses import replace

import pytest

from fakes.evidence import BLOCK, evidence, spent
from fakes.findings import compare_findings
from uncork.diagnosis.rules import server
from uncork.model.database.sessions import SessionRates
from uncork.model.results.database import CounterFacts

FORCED = {
    "pg_stat_checkpointer.num_requested": 4.0,
    "pg_stat_wal.wal_bytes": 2.4e9,
    "pg_stat_wal.wal_fpi": 1.8e9 / BLOCK,
}


def commits(*pieces, counters=(), commits=100.0, **settings):
    seen = evidence(pieces, settings=settings, counters=dict(counters))
    return list(server.find_slow_commits(replace(seen, rates=SessionRates(commits=commits, rollbacks=0.0))))


@pytest.mark.parametrize(
    ("full", "size", "event", "found"),
    [
        (6_000.0, "4MB", "LWLock:WALWrite", True),
        (6_000.0, "4MB", "LWLock:WALInsert", True),
        (6_000.0, "4MB", "IO:WalSync", False),  # each commit needs a flush
        (60.0, "4MB", "LWLock:WALWrite", False),
        (6_000.0, "64MB", "LWLock:WALWrite", False),
        (6_000.0, "", "LWLock:WALWrite", False),
    ],
)
def test_full_wal_buffers_cost_the_time_of_writing_wal(full, size, event, found):
    counters = {"pg_stat_wal.wal_buffers_full": full, "pg_stat_wal.wal_write": 8_000.0}
    seen = evidence([spent(wait=event)], counters=counters, settings={"wal_buffers": size})
    bills = [one.bill.share for one in server.find_wal_buffers(seen)]
    assert bills == ([pytest.approx(0.75)] if found else [])


def test_from_postgresql_18_on_pg_stat_io_counts_writes_of_wal():
    seen = evidence([spent(wait="LWLock:WALWrite")], settings={"wal_buffers": "32kB"})
    full = CounterFacts("pg_stat_wal", "", "wal_buffers_full", 6_000.0)
    writes = CounterFacts("pg_stat_io", "client backend, wal, normal", "writes", 8_000.0)
    heap = CounterFacts("pg_stat_io", "client backend, relation, normal", "writes", 90_000.0)
    seen = replace(seen, database=replace(seen.database, counters=(full, writes, heap)))
    (one,) = server.find_wal_buffers(seen)
    assert one.bill.share == pytest.approx(0.75)
    assert one.headline == "The 32kB of wal_buffers were full 6 000 times"


def test_a_slow_disk_is_found_by_the_time_of_a_flush_but_ordinary_commits_are_not():
    busy = (spent(wait="IO:WALSync", sessions=0.9), spent(wait="LWLock:WALWrite", sessions=3.0))
    (one,) = commits(*busy, counters={"pg_stat_wal.wal_sync": 1_200.0})
    assert one.headline == "Each flush of the write-ahead log to disk takes 45.0 ms"
    assert commits(*busy, counters={"pg_stat_wal.wal_sync": 12_000.0}) == []
    assert commits(*busy) == []


def test_from_postgresql_18_on_pg_stat_io_counts_flushes():
    busy = [spent(wait="IO:WalSync", sessions=0.9)]
    flushes = CounterFacts("pg_stat_io", "client backend, wal, normal", "fsyncs", 1_200.0)
    heap = CounterFacts("pg_stat_io", "client backend, relation, normal", "fsyncs", 90_000.0)
    seen = evidence(busy)
    seen = replace(seen, database=replace(seen.database, counters=(flushes, heap)))
    assert [one.rule for one in server.find_slow_commits(seen)] == ["slow-commits"]


def test_what_is_found_word_for_word():
    compare_findings("wal", [
        ("forced checkpoints cost the part of waiting for wal that full pages are",
         server.find_checkpoints(evidence([spent(wait="LWLock:WALWrite"), spent(wait="CPU")],
                                        counters=FORCED))),
        ("flushes that take longer than writing the full pages cost only the writing",
         server.find_checkpoints(evidence([spent(wait="IO:WALSync", sessions=0.25),
                                         spent(wait="LWLock:WALWrite", sessions=0.75)],
                                        counters=FORCED))),
        ("forced checkpoints that nobody waits for cost disk",
         server.find_checkpoints(evidence([spent()], counters=FORCED)),
         server.find_checkpoints(evidence([spent()], counters=FORCED,
                                        settings={"max_wal_size": "16GB"}))),
        ("commits that wait long for a standby are found but not short waits",
         commits(spent(wait="IPC:SyncRep", sessions=4.0)),
         commits(spent(wait="IPC:SyncRep", sessions=4.0), commits=1_000.0),
         commits(spent(wait="IPC:SyncRep"), spent(sessions=9.0), commits=1.0)),
        ("a standby that must apply changes first can confirm earlier",
         commits(spent(wait="IPC:SyncRep", sessions=4.0), synchronous_commit="remote_apply")),
    ])  # fmt: skip
