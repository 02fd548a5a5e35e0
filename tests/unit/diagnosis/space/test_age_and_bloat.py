"""Indexes that are mostly empty, and tables that were not frozen for long."""

import pytest

from fakes.evidence import BLOCK, a_statement, a_table, an_index, evidence, spent
from fakes.findings import compare_findings
from uncork.diagnosis.rules.space import vacuum
from uncork.diagnosis.rules.space.vacuum import find_empty_indexes
from uncork.model.database.plan import PlanNode, StatementPlan

DEFINITION = "CREATE INDEX item_day ON item USING btree (day)"


def found(*, size=80_000_000, bloat=60_000_000, kind="Index Only Scan", blocks=9_000, rows=3_000, wait="CPU"):
    node = PlanNode(kind, "item", "item", "item_day", 0.0, 1.0, 1.0, 8)
    plans = (StatementPlan(0, "generic", node, ""),)
    statement = a_statement("SELECT count(day) FROM item", blocks=6_000 * blocks, plans=plans)
    index = an_index(DEFINITION, bytes=size, bloat_bytes=bloat)
    seen = evidence([spent(wait=wait)], [statement], tables=[a_table(rows=rows)], indexes=[index])
    return list(find_empty_indexes(seen))


def test_a_statement_that_reads_all_of_an_empty_index_pays_for_the_space():
    (one,) = found()
    visits = 4 * 80_000_000 / BLOCK
    assert one.bill.share == pytest.approx(0.75 * visits / (visits + 3_000))
    (outside,) = found(rows=3_000_000, wait="IO:DataFileRead")
    assert outside.bill.share == pytest.approx(0.75)
    assert found(rows=3_000_000) == [], "returning the entries takes the time"
    assert one.candidates[0].sql == "REINDEX INDEX CONCURRENTLY item_day;"


def test_what_is_found_word_for_word():
    compare_findings("age_and_bloat", [
        ("a statement that reads a few entries pays nothing", found(blocks=10),
         found(kind="Index Scan"), found(bloat=None)),
        ("much empty space costs disk", found(size=800_000_000, bloat=600_000_000, blocks=10),
         found(size=800_000_000, bloat=270_000_000, blocks=10)),
        ("a table that was not frozen for long risks all writing",
         vacuum.find_not_frozen(evidence([], tables=[a_table(frozen_age=1_500_000_000)])),
         vacuum.find_not_frozen(evidence([], tables=[a_table(frozen_age=300_000_000)])),
         vacuum.find_not_frozen(evidence([], tables=[a_table(frozen_age=None)]))),
    ])  # fmt: skip
