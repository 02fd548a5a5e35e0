"""Dead rows that statements read: why autovacuum leaves them, and what they cost."""

from dataclasses import replace

import pytest

from fakes.database_results import database_result
from fakes.evidence import a_function, a_statement, a_table, an_index, evidence, spent
from fakes.findings import compare_findings
from uncork.diagnosis.rules.indexes import missing_index
from uncork.diagnosis.rules.space import vacuum
from uncork.model.database.catalogue import TableOptions, TriggerFacts
from uncork.model.results.database import TimeNode
from uncork.profile.shapes.bodies import function_statements

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


def test_blocks_that_a_trigger_reads_in_another_table_are_no_dead_rows():
    update = "UPDATE item SET kind = $1 WHERE id = $2"
    primary = an_index("CREATE UNIQUE INDEX item_pkey ON item USING btree (id)")
    facts = {"index": primary, "blocks": 6_000 * 700}
    (one,) = behind(update, **facts)
    assert one.bill.share > 0.9
    trigger = TriggerFacts("t", "item", 1, "after", True, ("update",), "add", "")
    function = a_function("add", "BEGIN UPDATE total SET n = 1; END")
    known = replace(
        (found := seen(update, table={"heap_hit": 6_000 * 4}, **facts)),
        catalogue=replace(found.catalogue, triggers=(trigger,), functions=(function,)),
        take_body=lambda source: function_statements(source, {"total": ["n"]}),
    )
    assert list(vacuum.find_behind(known)) == []


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


def test_a_queue_of_changes_counts_the_upkeep_of_indexes_as_needed():
    take = (
        "UPDATE item SET kind = $1 WHERE id = (SELECT id FROM item WHERE state = $2 ORDER BY id LIMIT 1 "
        "FOR UPDATE SKIP LOCKED)"
    )
    assert behind(take, blocks=6_000 * 30, index=QUEUE) == []


def test_what_is_found_word_for_word():
    compare_findings("autovacuum", [
        ("a queue reads dead entries that autovacuum tolerates", behind()),
        ("a queue with dead entries lacks no index",
         missing_index.find_missing_indexes(seen(blocks=6_000 * 2_000))),
        ("options of the table are set back",
         behind(options={"autovacuum_vacuum_scale_factor": "0.5"})),
        ("few blocks or few dead rows are no fault", behind(blocks=6_000 * 10), behind(dead=500),
         behind(rows=6_000 * 100), behind(dead=None)),
        ("autovacuum that is due is on its way unless it pauses", behind(dead=90_000),
         behind(dead=90_000, background=PAUSING),
         behind(dead=90_000, background=PAUSING, options={"autovacuum_vacuum_cost_delay": "100"})),
        ("without autovacuum dead rows have a bill if statements read them",
         vacuum.find_dead_rows(seen(settings={"autovacuum": "off"})),
         vacuum.find_dead_rows(seen(dead=150_000, table={"vacuumed_us": END_US - 900_000_000})),
         vacuum.find_dead_rows(seen())),
    ])  # fmt: skip
