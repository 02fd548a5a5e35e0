"""Updates that could be heap-only: what prevents them, and when nobody pays for it."""

from dataclasses import replace

import pytest

from fakes.evidence import a_statement, a_table, an_index, evidence, spent
from uncork.advise.rules.space.hot_prevented import find_hot_prevented
from uncork.model.database.catalogue import TableOptions
from uncork.model.results.database import ForeignKeyFacts
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

SEEN = "CREATE INDEX item_seen ON item USING btree (seen)"
INDEXES = (
    an_index("CREATE UNIQUE INDEX item_pkey ON item USING btree (id)", scans=6_000),
    an_index("CREATE INDEX item_site ON item USING btree (site)", scans=500),
)
TOUCH = "UPDATE item SET seen = now() WHERE id = $1"


THREE = (*INDEXES, an_index(SEEN))


def found(sql=TOUCH, *, indexes=THREE, table=(), wait="CPU", **facts):
    known = {"rows": 6_000, "blocks": 84_000, "calls": 6_000, **facts}
    changed = a_table(**{"updated": 6_000, "hot_updated": 0, **dict(table)})
    return list(
        find_hot_prevented(
            evidence([spent(wait=wait)], [a_statement(sql, **known)], tables=[changed], indexes=indexes)
        )
    )


def test_an_index_that_nothing_scans_and_updates_change_costs_the_upkeep_of_all_indexes():
    (one,) = found()
    assert one.objects == ("item", "item_seen")
    assert one.bill.share == pytest.approx(9 / 14)  # three indexes of 977 pages have three levels each
    assert one.candidates[0].sql == "DROP INDEX CONCURRENTLY item_seen;"
    assert one.candidates[0].undo == "CREATE INDEX CONCURRENTLY item_seen ON item USING btree (seen);"
    assert fits(finding_headline(one))


@pytest.mark.parametrize(
    "index",
    [
        "CREATE INDEX item_seen ON item USING btree (site) INCLUDE (seen)",
        "CREATE INDEX item_seen ON item USING btree (site) WHERE (seen IS NULL)",
        "CREATE INDEX item_seen ON item USING btree (date_trunc('day'::text, seen))",
    ],
)
def test_columns_of_expressions_predicates_and_included_ones_prevent_heap_only_updates_too(index):
    (one,) = found(indexes=(*INDEXES, an_index(index)))
    assert one.objects[1] == "item_seen"


def test_an_index_that_statements_need_is_no_fault():
    assert found(indexes=(*INDEXES, an_index(SEEN, scans=500))) == []
    assert (
        found(indexes=(*INDEXES, an_index("CREATE UNIQUE INDEX item_seen ON item USING btree (seen)"))) == []
    )


def test_an_index_that_something_else_scanned_cannot_be_proven_to_be_needless():
    (one,) = found(indexes=(*INDEXES, an_index(SEEN, scans_ever=8)))
    assert "not captured scanned item_seen 8 times" in one.candidates[0].unprovable
    (young,) = found()
    assert "a job that runs seldom may need it" in young.candidates[0].unprovable


def test_an_index_of_a_foreign_key_is_no_fault_because_deletes_need_it():
    key = ForeignKeyFacts("item_seen_fkey", "item", 1, "day", 2, "seen", indexed=True)
    statement = a_statement(TOUCH, rows=6_000, blocks=84_000, calls=6_000)
    table = a_table(updated=6_000, hot_updated=0)
    seen = evidence([spent()], [statement], tables=[table], indexes=THREE)
    assert [one.objects[1] for one in find_hot_prevented(seen)] == ["item_seen"]
    assert list(find_hot_prevented(replace(seen, foreign_keys=(key,)))) == []


def test_another_index_in_use_on_the_changed_columns_would_prevent_them_anyway():
    used = an_index("CREATE INDEX item_sites_seen ON item USING btree (site, seen)", scans=900)
    assert found(indexes=(*INDEXES, an_index(SEEN), used)) == []


def test_a_brin_index_prevents_no_heap_only_update_since_postgresql_16():
    brin = an_index("CREATE INDEX item_seen ON item USING brin (seen)")
    assert [one.objects[-1] for one in found(indexes=(*INDEXES, brin))] == ["fillfactor"]


def test_updates_that_wait_for_their_commit_or_touch_many_blocks_anyway_pay_little():
    assert found(wait="IO:WalSync") == []
    assert found(wait="LWLock:WALWrite") == []
    assert found(blocks=6_000 * 200) == []


def test_updates_that_are_heap_only_mostly_and_bulk_updates_are_left_alone():
    assert found(table={"hot_updated": 4_000}) == []
    assert found(table={"updated": 100}) == []
    assert found(rows=6_000 * 60_000, blocks=6_000 * 600_000) == []


def test_statistics_that_nobody_counted_find_nothing():
    assert found(rows=None) == []
    assert found(blocks=None) == []
    assert found(calls=None) == []
    assert found(indexes=(*INDEXES, an_index("no definition INDEX item_odd"))) == []


def test_full_pages_want_a_lower_fillfactor():
    (one,) = found("UPDATE item SET n = n + 1 WHERE id = $1", indexes=INDEXES)
    assert one.objects == ("item", "fillfactor")
    assert "SET (fillfactor = 80)" in one.candidates[0].sql
    assert "RESET (fillfactor)" in one.candidates[0].undo


def test_a_table_with_room_in_its_pages_needs_no_lower_fillfactor():
    roomy = {"item": TableOptions("item", 1, {"fillfactor": "70"}, "permanent")}
    statement = a_statement("UPDATE item SET n = n + 1 WHERE id = $1", blocks=60_000)
    table = a_table(updated=6_000)
    seen = evidence([spent()], [statement], tables=[table], indexes=INDEXES, catalogue={"options": roomy})
    assert list(find_hot_prevented(seen)) == []
