"""The candidates of findings become variants, or a sentence says why a copy cannot prove them."""

from __future__ import annotations

import pytest

from fakes.goldens import compare_answers
from uncork.experiment.cure.arms import CONTROL, MOST_ARMS, arms_of, as_sent, control, unique_names
from uncork.experiment.cure.setups import CopyKeeps, table_named
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload

READ = CapturedStatement(
    1,
    "SELECT id FROM orders WHERE customer = $1 AND state NOT IN (SELECT state FROM old)",
    (("7",),),
    "executed",
    100,
    1e6,
    0.5,
    ("orders", "old"),
    changes=False,
)
OTHER = CapturedStatement(2, "SELECT 1 FROM item", ((),), "none", 10, 1e6, 0.2, ("item",), changes=False)
WRITE = CapturedStatement(
    3, "DELETE FROM customer WHERE id = $1", (("1",),), "seen", 5, 1e6, 0.1, ("customer",), changes=True
)
WORKLOAD = CapturedWorkload((READ, OTHER, WRITE), (), 60.0, 1.0)
STATISTICS, PAGES = CopyKeeps(statistics=True, pages=False), CopyKeeps(statistics=False, pages=True)
BILL = Bill(100.0, 50.0, 150.0, 0.2)

INDEX = "CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer);"
DROP = "DROP INDEX CONCURRENTLY orders_customer_idx;"
RELOAD = "SELECT pg_reload_conf();"


def finding(*candidates, bill=BILL, templates=(1,), proof="Compare both with uncork run."):
    return Finding(
        "some-rule", "x", ("orders", "customer"), bill, templates, candidates=candidates, proof=proof
    )


def one(kind, sql, undo="-- undo", **more):
    arms, reason = arms_of(finding(Candidate(kind, "Do it.", sql, undo), **{"bill": BILL, **more}), WORKLOAD)
    assert len(arms) + bool(reason) == 1
    return arms[0] if arms else reason


def test_a_change_becomes_a_set_up_or_settings_or_a_reason_why_a_copy_cannot_prove_it():
    def answer(text):
        kind, _, sql = text.partition(": ")
        found = one(kind, sql)
        if isinstance(found, str):
            return found
        assert (found.sql, found.undo) == (sql, "-- undo")
        touched = [str(each.template) for each in WORKLOAD.statements if found.touches(each)]
        facts = [f"{name} = {value}" for name, value in found.settings.items()]
        facts += [f"tables: {', '.join(found.tables)}", f"statements: {', '.join(touched)}"]
        return "\n".join([found.setup, *facts])

    compare_answers("cure/arms", answer)


def test_a_fillfactor_rewrites_the_table_as_vacuum_full_does():
    arm = one("ddl", "ALTER TABLE orders SET (fillfactor = 80); VACUUM (FULL, ANALYZE) orders;")
    first, second = arm.setup.split(";\n", 1)
    assert first == "ALTER TABLE orders SET (fillfactor = 80)"
    assert second.startswith("DO $uncork$")
    assert "'orders'::regclass" in second
    assert "VACUUM" not in arm.setup


@pytest.mark.parametrize(
    ("sql", "keeps", "setup", "tables"),
    [
        ("ANALYZE orders;", STATISTICS, "ANALYZE orders;", ("orders",)),
        ("ANALYZE (VERBOSE) orders (state); ANALYZE item;", STATISTICS, "ANALYZE orders;\nANALYZE item;",
         ("orders", "item")),
        ("ANALYZE;", STATISTICS, "ANALYZE;", ()),
        ("REINDEX INDEX CONCURRENTLY orders_pkey;", PAGES, "REINDEX INDEX orders_pkey;",
         ("orders", "customer")),
    ],
)  # fmt: skip
def test_what_only_some_copies_show_needs_no_way_back(sql, keeps, setup, tables):
    arms, reason = arms_of(finding(Candidate("maintenance", "Do it.", sql)), WORKLOAD, keeps)
    assert reason == ""
    assert [(arm.setup, arm.tables) for arm in arms] == [(setup, tables)]
    other = PAGES if keeps is STATISTICS else STATISTICS
    assert arms_of(finding(Candidate("maintenance", "Do it.", sql)), WORKLOAD, other)[0] == ()


def test_a_table_is_rewritten_on_a_copy_with_its_pages():
    change = Candidate("maintenance", "Do it.", "VACUUM (FULL, ANALYZE) orders;")
    (arm,), _ = arms_of(finding(change), WORKLOAD, PAGES)
    assert arm.setup.startswith("DO $uncork$") and arm.setup.endswith(";\nANALYZE orders;")
    assert arm.tables == ("orders",)


def test_an_index_is_dropped_only_if_it_costs_time():
    assert "saves disk only" in one("index", DROP, bill=None)
    assert one("index", DROP).setup == "DROP INDEX orders_customer_idx;"


def test_a_change_that_no_measurement_can_prove_now_is_not_tried():
    candidate = Candidate("index", "Drop it.", DROP, INDEX, unprovable="A nightly job may need it.")
    assert arms_of(finding(candidate, bill=BILL), WORKLOAD) == ((), "A nightly job may need it.")


def test_a_change_without_a_way_back_is_not_tried():
    assert one("index", INDEX, undo="") == "uncork does not know what reverts it."


def test_a_rewritten_statement_replaces_the_captured_one():
    text = "SELECT id FROM orders AS o WHERE customer = $1 AND NOT EXISTS (SELECT FROM old WHERE 1 = 1)"
    arm = one("statement", f"{text};")
    assert arm.statements == {1: text}
    assert [arm.touches(each) for each in WORKLOAD.statements] == [True, False, False]
    assert "was not captured" in one("statement", text, templates=(9,))
    assert "was not captured" in one("statement", text, templates=())


def test_the_replaced_statement_has_the_types_that_the_client_gives():
    typed = READ.sql.replace("$1", "$1::numeric")
    text = typed.replace("customer = $1::numeric", "(customer = $1::numeric::int AND customer = $1::numeric)")
    arm = one("statement", text, undo=typed)
    assert (arm.replaced, arm.undo) == ({1: typed}, typed)
    assert [each.sql for each in as_sent(WORKLOAD.statements, [arm])] == [typed, OTHER.sql, WRITE.sql]
    for undo, handed in (("", f"{READ.sql};"), (READ.sql, READ.sql), (OTHER.sql, OTHER.sql)):
        arm = one("statement", text, undo=undo)
        assert (arm.replaced, arm.undo) == ({}, handed)


def test_what_can_return_other_rows_is_for_people_to_decide():
    change = Candidate("statement", "Rewrite it.", "SELECT 1", "SELECT 2", same_answers=False)
    arms, reason = arms_of(finding(change), WORKLOAD)
    assert arms == ()
    assert reason == "It can return other rows, so only a person can decide about it."


def test_an_index_touches_readers_of_its_table_its_own_finding_and_all_writers():
    arm = one("index", INDEX, templates=())
    assert [arm.touches(each) for each in WORKLOAD.statements] == [True, False, True]
    assert one("index", INDEX, templates=(2,)).touches(OTHER)
    assert one("setting", "SET jit = off;").touches(OTHER)


def test_an_index_that_no_captured_statement_can_use_is_not_tried():
    reads = CapturedWorkload((OTHER,), (), 60.0, 1.0)
    arms, reason = arms_of(finding(Candidate("index", "x", INDEX, DROP)), reads)
    assert (arms, reason) == ((), "No captured statement uses orders.")


def test_the_best_changes_come_first_without_repetitions_and_with_names_of_their_own():
    several = [Candidate("index", "x", INDEX, DROP)] * 2 + [
        Candidate("setting", "x", f"SET work_mem = '{size}MB';", "RESET work_mem;") for size in (8, 16, 32)
    ]
    arms, reason = arms_of(finding(Candidate("client", "x"), *several), WORKLOAD)
    assert (len(arms), reason) == (MOST_ARMS, "")
    assert [arm.name for arm in arms] == ["orders_customer_idx", "some-rule-orders", "some-rule-orders-2"]
    assert len({arm.name for arm in unique_names([*arms, *arms])}) == 2 * MOST_ARMS


def test_a_finding_without_changes_says_how_to_go_on():
    assert arms_of(finding(), WORKLOAD) == (
        (), "The finding proposes no change. Compare both with uncork run."
    )  # fmt: skip


def test_the_control_is_a_setting_that_no_captured_statement_uses():
    arm = control(WORKLOAD, [])
    assert (arm.kind, arm.name, arm.settings) == (CONTROL, CONTROL, {"maintenance_work_mem": "256MB"})
    assert all(arm.touches(each) for each in WORKLOAD.statements)
    assert control(WORKLOAD, [arm]).name == "control-2"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("orders", "orders"), ("Public.Orders", "orders"),
        ('"Orders"', "Orders"), ("app.orders", "app.orders"),
        ('app."a""b"', 'app.a"b'),
    ],
)  # fmt: skip
def test_a_table_has_the_name_that_the_captured_workload_uses(written, name):
    assert table_named(written) == name


def test_a_trigger_is_tried_only_with_the_function_that_it_calls():
    function = "CREATE FUNCTION f_all() RETURNS trigger LANGUAGE plpgsql AS $b$ BEGIN RETURN NULL; END $b$"
    trigger = "CREATE TRIGGER t_all AFTER INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION {}()"
    swap = f"{function};\nDROP TRIGGER t ON orders;\n{trigger.format('f_all')};"
    arm = one("ddl", swap)
    assert arm.setup == swap and arm.tables == ("orders",)
    assert "somebody must write" in one("ddl", f"{function};\n{trigger.format('other')};")
    assert "somebody must write" in one("ddl", f"{function};")


def test_a_change_can_have_other_sql_on_a_copy():
    again = Candidate("index", "Build it again.", "REINDEX INDEX CONCURRENTLY i;", on_copy=INDEX)
    (arm,), _ = arms_of(finding(again), WORKLOAD)
    assert (arm.sql, arm.undo, arm.tables) == (again.sql, "", ("orders",))
    assert arm.setup == "CREATE INDEX orders_customer_idx ON orders (customer);"
