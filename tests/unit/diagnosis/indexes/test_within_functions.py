"""Missing indexes of statements that only functions and triggers execute."""

from dataclasses import replace

import pytest

from fakes.evidence import a_function
from fakes.findings import compare_findings
from fakes.table_evidence import column, evidence, foreign_key, index, scan, statement, table
from uncork.diagnosis.findings import find_findings
from uncork.model.database.catalogue import TriggerFacts
from uncork.profile.shapes.bodies import function_statements

COLUMNS = (
    *(column("orders", name) for name in ("id", "customer_id", "total")),
    column("customer_totals", "customer_id"),
    column("customer_totals", "amount", distinct=50),
    *(column("line", name) for name in ("id", "order_id")),
)
UPDATE = "UPDATE orders SET total = $1 WHERE id = $2"
ADD = "BEGIN UPDATE customer_totals SET amount = amount + NEW.total WHERE customer_id = NEW.customer_id; END"
DELETE = "BEGIN DELETE FROM orders WHERE id <= upto; END"
PRIMARY = index("CREATE UNIQUE INDEX orders_pkey ON orders (id)")
TRIGGER = TriggerFacts("adding", "orders", 1, "after", True, ("update",), "add_up()", "")


def seen(sql, source, *others, tables=(), keys=(), indexes=(), counts=None, **facts):
    """Return evidence of a statement that executes a function, and of other statements."""
    found = evidence(
        [statement(0, sql, **{"blocks": 600 * 1_010, "mean_ns": 20e6, **(counts or {})}), *others],
        tables,
        [one for one in COLUMNS if one.table in {each.name for each in tables}],
        [PRIMARY, *indexes],
        keys,
    )
    names = {name: [one.name for one in columns] for name, columns in found.catalogue.columns.items()}
    catalogue = replace(
        found.catalogue, functions=(a_function("add_up", source, **facts),), triggers=(TRIGGER,)
    )
    return replace(found, catalogue=catalogue, take_body=lambda body: function_statements(body, names))


ORDERS = table("orders", seq_scans=0, seq_rows=0, whole_reads=0.0, updated=600)
TOTALS = table("customer_totals", updated=600)


def fired(*others, totals=TOTALS, sql=UPDATE, source=ADD, **facts):
    return find_findings(seen(sql, source, *others, tables=(ORDERS, totals), **facts))


def test_the_commit_of_the_calling_statement_is_not_billed():
    found = seen(UPDATE, ADD, tables=(ORDERS, TOTALS))
    (work,) = found.pieces
    flush = replace(work, wait_class="IO", wait_event="WalSync", batches=(1.0,) * 20)
    (one,) = find_findings(replace(found, pieces=(work, flush)))
    assert one.bill.share == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    "facts",
    [
        {"indexes": (index("CREATE INDEX totals_customer ON customer_totals (customer_id)"),)},
        {"counts": {"blocks": 600 * 12}},
        {"totals": table("customer_totals", rows=900, blocks=9)},
        {"totals": table("customer_totals", whole_reads=60.0)},
        {"totals": table("customer_totals", whole_reads=0.0, seq_scans=0)},
        {"totals": table("customer_totals", whole_reads=None)},
        {"source": "BEGIN UPDATE customer_totals SET amount = 0; END"},
        {"source": "BEGIN UPDATE customer_totals SET amount = 0 WHERE amount <> NEW.total; END"},
        {"source": "BEGIN EXECUTE 'UPDATE customer_totals SET amount = 0 WHERE customer_id = 1'; END"},
        {"source": ""},
        {"sql": "INSERT INTO orders (id) VALUES ($1)"},
        {"calls": 0, "total_ms": 0.0},
    ],
)
def test_a_function_that_does_not_scan_gets_no_finding(facts):
    assert [one for one in fired(**facts) if one.rule == "missing-index"] == []


BILLS = (
    table("line"),
    table("orders", rows=5_000, deleted=600, seq_scans=0, whole_reads=0.0),
)
KEY = foreign_key("line", "order_id", "orders")


def archived(*others, sql="SELECT archive_old($1)", tables=BILLS, keys=(KEY,), **facts):
    found = seen(sql, DELETE, *others, tables=tables, keys=keys, **facts)
    functions = (a_function("archive_old", DELETE),)
    return find_findings(replace(found, catalogue=replace(found.catalogue, functions=functions)))


@pytest.mark.parametrize(
    "sql", ["SELECT archive_old($1)", "SELECT * FROM archive_old($1)", "CALL archive_old($1)"]
)
def test_a_function_that_deletes_referenced_rows_wants_an_index_on_the_foreign_key(sql):
    (one,) = archived(sql=sql)
    assert (one.rule, one.templates) == ("foreign-key-without-index", (0,))
    assert one.headline == "Deletes from orders scan line, which has no index on order_id"
    assert "ON line (order_id)" in one.candidates[0].sql
    assert (
        "Calls execute function archive_old, which executes: DELETE FROM orders WHERE id <= upto"
        in one.evidence
    )
    assert one.bill.share > 0.9


def test_a_function_calls_another_that_fires_a_trigger():
    found = seen("SELECT pay($1)", "BEGIN PERFORM book(1); END", tables=(ORDERS, TOTALS))
    functions = (
        a_function("pay", "BEGIN PERFORM book(1); END"),
        a_function("book", "BEGIN UPDATE orders SET total = 1 WHERE id = n; PERFORM pay(2); END"),
        a_function("add_up", ADD),
    )
    (one,) = find_findings(replace(found, catalogue=replace(found.catalogue, functions=functions)))
    assert one.objects == ("customer_totals", "customer_id")
    assert any("Trigger adding executes function add_up" in text for text in one.evidence)


def test_the_index_comes_before_a_trigger_for_each_statement():
    totals = table("customer_totals", whole_reads=6_000.0, seq_scans=6_000)
    bulk = {"calls": 60, "rows": 6_000, "blocks": 60 * 101_000, "mean_ns": 2e9}
    assert [one.rule for one in fired(totals=totals, counts=bulk)] == ["missing-index"]
    indexed = (index("CREATE INDEX totals_customer ON customer_totals (customer_id)"),)
    assert [one.rule for one in fired(totals=totals, counts=bulk, indexes=indexed)] == ["row-trigger"]


def test_statements_that_scan_the_same_table_share_its_scans():
    twice = (
        "BEGIN UPDATE customer_totals SET amount = 1 WHERE customer_id = NEW.customer_id; "
        "PERFORM 1 FROM customer_totals WHERE customer_id = NEW.id; END"
    )
    (one,) = fired(source=twice, counts={"blocks": 600 * 2_000})
    assert one.bill.share == pytest.approx(0.5, abs=0.02)


def test_what_is_found_word_for_word():
    compare_findings("within_functions", [
        ("a trigger that scans a table wants an index on what it compares", fired()),
        ("a called function counts too",
         fired(sql="SELECT add_up($1)",
               source="SELECT amount FROM customer_totals WHERE customer_id = $1")),
        ("only the time and the blocks of the scans count", fired(counts={"blocks": 600 * 2_000}),
         fired(counts={"mean_ns": 100e6}), fired(counts={"mean_ns": 1e9})),
        ("scans of another statement are not the functions",
         fired(statement(1, "SELECT sum(amount) FROM customer_totals",
                         plans=(scan("customer_totals", ""),)))),
        ("healthy deletes within functions get no finding",
         archived(keys=(replace(KEY, indexed=True),)), archived(counts={"blocks": 600 * 12}),
         archived(tables=(table("line", rows=900, blocks=9), BILLS[1])),
         archived(tables=(table("line", whole_reads=0.0), BILLS[1])),
         archived(tables=(BILLS[0], replace(BILLS[1], deleted=0)))),
        ("deletes outside of the function are billed for their own scans",
         archived(statement(1, "DELETE FROM orders WHERE id = $1", blocks=600 * 1_010))),
    ])  # fmt: skip
