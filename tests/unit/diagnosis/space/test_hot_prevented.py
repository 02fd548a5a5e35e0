"""Updates that could be heap-only: what prevents them, and when nobody pays for it."""

from dataclasses import replace

import pytest

from fakes.evidence import a_statement, a_table, an_index, evidence, spent
from fakes.findings import compare_findings
from uncork.diagnosis.rules.space.hot_prevented import find_hot_prevented
from uncork.model.database.catalogue import TableOptions
from uncork.model.results.database import ForeignKeyFacts

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


def test_an_index_of_a_foreign_key_is_no_fault_because_deletes_need_it():
    key = ForeignKeyFacts("item_seen_fkey", "item", 1, "day", 2, "seen", indexed=True)
    statement = a_statement(TOUCH, rows=6_000, blocks=84_000, calls=6_000)
    table = a_table(updated=6_000, hot_updated=0)
    seen = evidence([spent()], [statement], tables=[table], indexes=THREE)
    assert [one.objects[1] for one in find_hot_prevented(seen)] == ["item_seen"]
    assert list(find_hot_prevented(replace(seen, foreign_keys=(key,)))) == []


def test_a_table_with_room_in_its_pages_needs_no_lower_fillfactor():
    roomy = {"item": TableOptions("item", 1, {"fillfactor": "70"}, "permanent")}
    statement = a_statement("UPDATE item SET n = n + 1 WHERE id = $1", blocks=60_000)
    table = a_table(updated=6_000)
    seen = evidence([spent()], [statement], tables=[table], indexes=INDEXES, catalogue={"options": roomy})
    assert list(find_hot_prevented(seen)) == []


def test_what_is_found_word_for_word():
    compare_findings("hot_prevented", [
        ("an index that nothing scans and updates change costs the upkeep of all indexes", found()),
        ("an index that statements need is no fault",
         found(indexes=(*INDEXES, an_index(SEEN, scans=500))),
         found(indexes=(*INDEXES,
                        an_index("CREATE UNIQUE INDEX item_seen ON item USING btree (seen)")))),
        ("an index that something else scanned cannot be proven to be needless",
         found(indexes=(*INDEXES, an_index(SEEN, scans_ever=8))), found()),
        ("another index in use on the changed columns would prevent them anyway",
         found(indexes=(*INDEXES, an_index(SEEN),
                        an_index("CREATE INDEX item_sites_seen ON item USING btree (site, seen)",
                                 scans=900)))),
        ("a brin index prevents no heap only update since postgresql 16",
         found(indexes=(*INDEXES, an_index("CREATE INDEX item_seen ON item USING brin (seen)")))),
        ("updates that wait for their commit or touch many blocks anyway pay little",
         found(wait="IO:WalSync"), found(wait="LWLock:WALWrite"), found(blocks=6_000 * 200)),
        ("updates that are heap only mostly and bulk updates are left alone",
         found(table={"hot_updated": 4_000}), found(table={"updated": 100}),
         found(rows=6_000 * 60_000, blocks=6_000 * 600_000)),
        ("statistics that nobody counted find nothing", found(rows=None), found(blocks=None),
         found(calls=None), found(indexes=(*INDEXES, an_index("no definition INDEX item_odd")))),
        ("full pages want a lower fillfactor",
         found("UPDATE item SET n = n + 1 WHERE id = $1", indexes=INDEXES)),
    ])  # fmt: skip
