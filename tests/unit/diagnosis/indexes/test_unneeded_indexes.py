"""Indexes that cost without serving, invalid ones, and foreign keys without an index."""

from dataclasses import replace

from fakes.database_results import database_result
from fakes.findings import compare_findings
from fakes.table_evidence import column, evidence, foreign_key, index, statement, table
from uncork.diagnosis.findings import find_findings

EVENT = (column("event", "id"), column("event", "a", "text"), column("event", "b", "text"))
PRIMARY = index("CREATE UNIQUE INDEX event_pkey ON event (id)")
AGAIN = index("CREATE INDEX event_a2 ON event (a)", warning="duplicate", same_as="event_a")
UNUSED = index("CREATE INDEX event_b ON event (b)", warning="unused", scans=0, scans_ever=0)
USED = index("CREATE INDEX event_a ON event (a)")
INSERT = "INSERT INTO event (id, a, b) VALUES ($1, $2, $3)"
SELECT = "SELECT * FROM event WHERE id = $1"
DAY_US = 86_400_000_000


def found(*indexes, sql=INSERT, keys=(), days=None, standby=False, **facts):
    usual = {"seq_scans": 0, "whole_reads": 0.0, "inserted": 600, **facts}
    database = replace(database_result(), standby=standby)
    if days is not None:
        database = replace(database, counted_since_us=database.watch.ended_us - days * DAY_US)
    seen = evidence(
        [statement(0, sql, blocks=600 * 10)],
        [table("event", **usual)],
        EVENT,
        indexes,
        keys,
        database=database,
    )
    return find_findings(seen)


def test_a_standby_cannot_tell_that_an_index_is_unused_and_accepts_no_change():
    large = replace(UNUSED, facts=replace(UNUSED.facts, bytes=500_000_000))
    assert found(PRIMARY, large, sql=SELECT, days=90, standby=True) == ()
    assert found(PRIMARY, large, sql=SELECT, days=90) != ()
    again = replace(AGAIN, facts=replace(AGAIN.facts, bytes=500_000_000))
    (one,) = found(PRIMARY, USED, again, sql=SELECT, standby=True)
    assert "Execute it on the primary: this server is a standby" in one.candidates[0].text
    (one,) = found(PRIMARY, USED, again, sql=SELECT)
    assert "primary" not in one.candidates[0].text


def test_hot_updates_and_reads_pay_nothing_for_an_index():
    assert found(PRIMARY, UNUSED, days=90, sql=SELECT) == ()
    update = "UPDATE event SET a = $1 WHERE id = $2"
    assert found(PRIMARY, UNUSED, days=90, sql=update, updated=600, hot_updated=590) == ()
    cold = found(PRIMARY, USED, UNUSED, days=90, sql=update, updated=600, hot_updated=0)
    assert "unused-index" in [one.rule for one in cold]
    # The rule about heap-only updates reports an index that its own updates make costly.
    own = "UPDATE event SET b = $1 WHERE id = $2"
    changed = found(PRIMARY, UNUSED, days=90, sql=own, updated=600, hot_updated=0)
    assert "unused-index" not in [one.rule for one in changed]


def test_a_large_index_without_cost_to_writes_costs_its_disk_after_thirty_days():
    large = replace(UNUSED, facts=replace(UNUSED.facts, bytes=50_000_000))
    assert found(PRIMARY, large, sql=SELECT, days=2) == ()
    (one,) = found(PRIMARY, large, sql=SELECT, days=90)
    assert (one.bill, one.cost) == (None, "50.0 MB of disk")
    assert found(PRIMARY, UNUSED, sql=SELECT, days=90) == ()


def test_an_invalid_index_is_built_again_if_statements_want_it():
    broken = index("CREATE INDEX event_a ON event (a)", warning="invalid", scans=0)
    seen = evidence(
        [statement(0, "SELECT * FROM event WHERE a = $1")], [table("event")], EVENT, [PRIMARY, broken]
    )
    (one,) = find_findings(seen)
    assert (one.rule, one.bill.share > 0.9) == ("invalid-index", True)
    assert one.candidates[0].sql == "REINDEX INDEX CONCURRENTLY event_a;"
    assert one.candidates[0].on_copy == "CREATE INDEX event_a ON event (a);"  # a copy has no invalid index
    text = "create index concurrently event_a on event (a)"
    building = replace(seen, statements={0: replace(seen.statements[0], text=text)})
    assert [one.rule for one in find_findings(building)] != ["invalid-index"]


LINES = (column("line", "id"), column("line", "bill", distinct=-0.2), column("bill", "id"))


def deletes(sql="DELETE FROM bill WHERE id = $1", *, indexed=False, blocks=600 * 1_010, keys=(), **facts):
    seen = evidence(
        [statement(0, sql, blocks=blocks)],
        [table("line", **facts), table("bill", rows=5_000, deleted=600, seq_scans=0, whole_reads=0.0)],
        LINES,
        foreign_keys=[foreign_key("line", "bill", "bill", indexed=indexed), *keys],
    )
    return find_findings(seen)


def test_what_is_found_word_for_word():
    compare_findings("unneeded_indexes", [
        ("duplicates cost the writes their part", found(PRIMARY, USED, AGAIN)),
        ("unused indexes cost the writes their part and may be needed later",
         found(PRIMARY, UNUSED, days=2), found(PRIMARY, UNUSED, days=90),
         found(PRIMARY, UNUSED, replace(UNUSED, facts=replace(UNUSED.facts, name="event_c")),
               days=2)),
        ("an unused index on a foreign key serves its deletes",
         found(PRIMARY, UNUSED, keys=[foreign_key("event", "b", "kind", indexed=True)], days=90)),
        ("deletes that scan the referring table want an index on the key", deletes()),
        ("deletes that do not scan have no finding",
         *(deletes(**facts) for facts in ({"indexed": True}, {"rows": 900}, {"blocks": 600 * 12},
                                          {"seq_scans": 0},
                                          {"sql": "UPDATE bill SET id = $1 WHERE id = $2",
                                           "blocks": 600 * 12}))),
    ])  # fmt: skip
