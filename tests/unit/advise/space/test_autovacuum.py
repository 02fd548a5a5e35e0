"""Dead rows that statements read: why autovacuum leaves them, and what they cost."""

from dataclasses import replace

import pytest

from fakes.database_results import database_result
from fakes.evidence import a_statement, a_table, an_index, evidence, spent
from uncork.advise.rules.indexes import missing_index
from uncork.advise.rules.space import vacuum
from uncork.model.database.catalogue import FunctionFacts, TableOptions, TriggerFacts
from uncork.model.results.database import TimeNode
from uncork.profile.shapes.variables import function_statements
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

NEXT = "SELECT id FROM item WHERE state = $1 ORDER BY id LIMIT 1"
QUEUE = an_index("CREATE INDEX item_state_id ON item USING btree (state, id)")
END_US = database_result().watch.ended_us
PAUSING = TimeNode(
    "all",
    "",
    1.0,
    1.0,
    None,
    (
        TimeNode(
            "process",
            "autovacuum worker",
            1.0,
            1.0,
            None,
            (
                TimeNode(
                    "class",
                    "Timeout",
                    1.0,
                    1.0,
                    None,
                    (TimeNode("event", "VacuumDelay", 0.9, 0.9, None, ()),),
                ),
            ),
        ),
    ),
)


def seen(sql=NEXT, *, blocks=6_000 * 200, rows=6_000, index=QUEUE, options=None, dead=40_000, **facts):
    table = {"dead": dead, "vacuumed_us": END_US, **facts.pop("table", {})}
    return evidence(
        [spent()],
        [a_statement(sql, columns={"item": ["id", "state", "kind"]}, blocks=blocks, rows=rows)],
        tables=[a_table(**table)],
        indexes=[index],
        catalogue={"options": {"item": TableOptions("item", 1, options or {}, "permanent")}},
        **facts,
    )


def behind(*arguments, **facts):
    return list(vacuum.find_behind(seen(*arguments, **facts)))


def test_a_queue_reads_dead_entries_that_autovacuum_tolerates():
    (one,) = behind()
    assert one.bill.share == pytest.approx((200 - 6) / 200)
    assert one.candidates[0].sql == (
        "ALTER TABLE item SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);"
    )
    assert fits(finding_headline(one))


def test_blocks_that_a_trigger_reads_in_another_table_are_no_dead_rows():
    update = "UPDATE item SET kind = $1 WHERE id = $2"
    primary = an_index("CREATE UNIQUE INDEX item_pkey ON item USING btree (id)")
    facts = {"index": primary, "blocks": 6_000 * 700}
    (one,) = behind(update, **facts)
    assert one.bill.share > 0.9
    trigger = TriggerFacts("t", "item", 1, "after", True, ("update",), "add", "")
    function = FunctionFacts(
        "add", "plpgsql", "volatile", "unsafe", False, False, 100.0, "BEGIN UPDATE total SET n = 1; END"
    )
    known = replace(
        (found := seen(update, table={"heap_hit": 6_000 * 4}, **facts)),
        catalogue=replace(found.catalogue, triggers=(trigger,), functions=(function,)),
        take_body=lambda source: function_statements(source, {"total": ["n"]}),
    )
    assert list(vacuum.find_behind(known)) == []


def test_a_queue_with_dead_entries_lacks_no_index():
    assert list(missing_index.find_missing_indexes(seen(blocks=6_000 * 2_000))) == []


def test_options_of_the_table_are_set_back():
    (one,) = behind(options={"autovacuum_vacuum_scale_factor": "0.5"})
    assert one.candidates[0].undo == (
        "ALTER TABLE item SET (autovacuum_vacuum_scale_factor = 0.5); "
        "ALTER TABLE item RESET (autovacuum_vacuum_threshold);"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM item WHERE state = $1 AND kind = $2 ORDER BY id LIMIT 1",  # filters by kind
        "SELECT id FROM item WHERE state = $1 ORDER BY kind LIMIT 1",  # sorts
        "SELECT id FROM item WHERE id > $1 LIMIT 1",  # not the first column
        "SELECT count(*) FROM item WHERE state = $1",  # reads more rows than it returns
        "SELECT id FROM item WHERE state = $1 ORDER BY id LIMIT 1 OFFSET $2",
        "SELECT DISTINCT id FROM item WHERE state = $1",
        "SELECT i.id FROM item i JOIN other o ON o.id = i.id WHERE i.state = $1",
        "SELECT id FROM item WHERE state = $1 OR id = $2",
    ],
)
def test_statements_that_read_other_rows_for_a_reason_prove_nothing(sql):
    assert behind(sql) == []


def test_few_blocks_or_few_dead_rows_are_no_fault():
    assert behind(blocks=6_000 * 10) == []
    assert behind(dead=500) == []
    assert behind(rows=6_000 * 100) == []
    assert behind(dead=None) == []


def test_a_queue_of_changes_counts_the_upkeep_of_indexes_as_needed():
    take = (
        "UPDATE item SET kind = $1 WHERE id = (SELECT id FROM item WHERE state = $2 ORDER BY id LIMIT 1 "
        "FOR UPDATE SKIP LOCKED)"
    )
    assert behind(take, blocks=6_000 * 30, index=QUEUE) == []


def test_autovacuum_that_is_due_is_on_its_way_unless_it_pauses():
    assert behind(dead=90_000) == []
    (one,) = behind(dead=90_000, background=PAUSING)
    assert "autovacuum_vacuum_cost_limit = 2000" in one.candidates[0].sql
    (own,) = behind(dead=90_000, background=PAUSING, options={"autovacuum_vacuum_cost_delay": "100"})
    assert own.candidates[0].sql.startswith("ALTER TABLE item SET (autovacuum_vacuum_cost_delay = 2")


def test_without_autovacuum_dead_rows_have_a_bill_if_statements_read_them():
    (one,) = vacuum.find_dead_rows(seen(settings={"autovacuum": "off"}))
    assert one.bill.share == pytest.approx(0.97)
    (late,) = vacuum.find_dead_rows(seen(dead=150_000, table={"vacuumed_us": END_US - 900_000_000}))
    assert late.headline.endswith("and was last vacuumed 15 min 00 s ago")
    assert list(vacuum.find_dead_rows(seen())) == []
