"""Deleting old rows of a large table: partitions are proposed only where they would replace all of it."""

import pytest

from fakes.findings import compare_findings
from fakes.table_evidence import column, evidence, foreign_key, index, statement, table
from uncork.diagnosis.rules.space import vacuum
from uncork.model.database.catalogue import Catalogue, TableOptions, TriggerFacts

GB = 1 << 30
OLD = "DELETE FROM event WHERE created_at < $1"
OLDEST = "SELECT id FROM event WHERE created_at < now() - interval '90 days' LIMIT 5000"
BATCH = f"DELETE FROM event WHERE id IN ({OLDEST})"
COLUMNS = (
    column("event", "id", "bigint"),
    column("event", "created_at", "timestamp with time zone"),
    column("event", "tenant", "integer"),
)


def found(sql=OLD, *others, size=5 * GB, rows=600_000, by="created_at", keys=(), **catalogue):
    facts = {"bytes": size, "index_bytes": 0, "dead": 40_000, **catalogue.pop("facts", {})}
    seen = evidence(
        [statement(1, sql, rows=rows), *others],
        [table("event", **facts)],
        COLUMNS,
        [index(f"CREATE INDEX event_by ON event ({by})")],
        keys,
    )
    known = Catalogue(columns=seen.catalogue.columns, **catalogue)
    object.__setattr__(seen, "catalogue", known)
    return list(vacuum.find_expired(seen))


@pytest.mark.parametrize("sql", [OLD, BATCH, OLD.replace("<", "<=")])
def test_deletes_by_age_that_take_much_time_propose_partitions(sql):
    (one,) = found(sql)
    assert one.headline == "Statements delete the old rows of table event by created_at"
    assert one.evidence == (
        "The statements deleted 600 000 rows in 600 calls.",
        "The table has 5.37 GB with its indexes, and 40 000 dead rows.",
    )
    assert one.bill.share == pytest.approx(1.0)
    assert one.candidates[0].text.startswith("Partition event by range of created_at")
    assert one.candidates[0].unprovable


def test_what_forbids_partitions_or_the_drop_keeps_the_rule_silent():
    assert found(keys=(foreign_key("item", "event_id", "event"),)) == []
    assert found(facts={"kind": "partitioned table"}) == []
    options = TableOptions("event", 1, {}, "permanent", parent="events", bounds="FOR VALUES ...")
    assert found(options={"event": options}) == []
    trigger = TriggerFacts("audit", "event", 1, "after", True, ("delete",), "audit", "")
    assert found(triggers=(trigger,)) == []
    touched = statement(2, "UPDATE event SET created_at = now() WHERE id = $1")
    assert found(OLD, touched) == []
    assert found(OLD, statement(2, "UPDATE event SET tenant = 3 WHERE id = $1")) != []


def test_what_is_found_word_for_word():
    compare_findings("expired_rows", [
        ("a small table few rows or little time are not worth partitions", found(size=900 << 20),
         found(rows=600 * 999),
         found(OLD, statement(2, "SELECT tenant FROM event WHERE id = $1", busy=20.0))),
        ("without an index the index comes first", found(by="tenant")),
        ("other statements are no expiry of all old rows",
         *(found(sql) for sql in ("DELETE FROM event WHERE created_at < $1 AND tenant = $2",
                                  "DELETE FROM event WHERE created_at < $1 OR tenant = $2",
                                  "DELETE FROM event WHERE created_at > $1",
                                  "DELETE FROM event WHERE created_at = $1",
                                  "DELETE FROM event WHERE tenant < $1", "DELETE FROM event",
                                  "SELECT count(*) FROM event WHERE created_at < $1",
                                  "UPDATE event SET tenant = 0 WHERE created_at < $1"))),
    ])  # fmt: skip
