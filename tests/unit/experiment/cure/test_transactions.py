"""A captured transaction becomes variants that hold its locks for less time, with the same changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.goldens import compare_cases
from uncork.experiment.cure.judge import judge
from uncork.experiment.cure.transactions import (
    held_times,
    net_of_transactions,
    transaction_arms,
    transactions_experiment,
    whole_transaction,
)
from uncork.experiment.spec.schema import parse_spec
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.transaction import CapturedTransaction
from uncork.model.database.workload import CapturedStatement
from uncork.model.results.cure import StatementEffect

LOCK = CapturedStatement(
    1, "UPDATE total SET sold = sold + $1 WHERE shop = 1", (("1",), ("2",)), "seen", 7200, 1e6, 0.5,
    ("total",), changes=True,
)  # fmt: skip
SALE = replace(LOCK, template=2, sql="INSERT INTO sale (price) VALUES ($1)", tables=("sale",))
READ = replace(LOCK, template=3, sql="SELECT count(*) FROM sale", sets=((),), tables=("sale",), changes=False)
OUTSIDE = Candidate("client", "Pause outside.", habit="pauses", against=("What is read can change.",))
LAST = Candidate("client", "Change total last.", habit="locks early")
PARTS = Candidate(
    "ddl",
    "Split sold.",
    habit="counts in one row",
    sql="CREATE TABLE total_part AS SELECT shop, 0::smallint AS part, sold FROM total;\n"
    "ALTER TABLE total_part ADD PRIMARY KEY (shop, part);\n"
    "INSERT INTO total_part (shop, part, sold) VALUES ($1, (random() * 15)::int, 1)\n"
    "ON CONFLICT (shop, part) DO UPDATE SET sold = total_part.sold + excluded.sold;",
)
FINDING = Finding("hot-row", "shop queues", ("total",), Bill(3600, 3500, 3700, 0.9), templates=(1,))


def transaction(*statements, pauses=None, block=True):
    pauses = pauses or (0.0,) * (len(statements) + 1)
    return CapturedTransaction(
        statements, pauses, 3600.0, 200e6, 4, "samples", block, ("Its order was sampled.",)
    )


def arms(found, *candidates):
    return transaction_arms(replace(FINDING, candidates=candidates), found)


def written(found, *candidates):
    """Return the experiment about a transaction, and what is said about each variant."""
    made, reason = arms(found, *candidates)
    text = transactions_experiment("Is it faster?", "dbname=copy", found, made, budget_s=30)
    assert parse_spec(text, file="transaction.toml", read=str, overrides={}) and not reason
    for arm in made:
        change = arm.arm
        yield "\n".join(
            (change.kind, change.text, change.sql, "", change.undo, "", *change.against, *arm.assumed)
        )
    yield text


def test_variants_are_as_written():
    compare_cases("cure/transactions", [
        ("a pause moves before the transaction",
         *written(transaction(LOCK, SALE, pauses=(0.0, 120e6, 0.0)), OUTSIDE)),
        ("a contended statement moves to the end and pauses stay before it",
         *written(transaction(LOCK, SALE, READ, pauses=(0.0, 0.0, 5e6, 0.0)), LAST)),
        ("a counter in parts is made once and has the same sums",
         *written(transaction(LOCK, block=False), PARTS, LAST)),
    ])  # fmt: skip
    ((arm,), _) = arms(transaction(LOCK, SALE, pauses=(0.0, 120e6, 0.0)), OUTSIDE)
    assert arm.outside_ns == 120e6


def test_the_sums_of_a_counter_in_parts_are_compared_by_queries_of_their_own():
    *_, text = written(transaction(LOCK, block=False), PARTS)
    spec = parse_spec(text, file="transaction.toml", read=str, overrides={})
    found = [(spec.check("s1", name) or "").split()[3:5] for name in spec.variants]
    assert found == [["FROM", "total"], ["FROM", "total_part"]]


@pytest.mark.parametrize(
    ("statements", "candidate", "reason"),
    [
        ((SALE, LOCK), LAST, "is the last one of its transaction already"),
        ((replace(LOCK, sql=LOCK.sql + " RETURNING sold"), SALE), LAST, "returns values"),
        ((LOCK, replace(READ, tables=("total",))), LAST, "uses total"),
        ((replace(READ, template=1), SALE), LAST, "locks a row to read it"),
        ((LOCK, replace(READ, tables=("total",))), PARTS, "must add up the parts"),
        ((SALE,), PARTS, "by another statement"),
        ((LOCK, SALE), OUTSIDE, "without a pause"),
        ((LOCK, replace(SALE, sql="DELETE FROM sale WHERE id = $1")), LAST, "deletes rows"),
    ],
)
def test_what_no_variant_can_show_is_refused_with_the_reason(statements, candidate, reason):
    made, why = arms(transaction(*statements), candidate)
    assert made == () and reason in why


def effect(ratio, low, high, before=8.0):
    """Return an effect on operations a second of 4 clients."""
    return StatementEffect(
        1, "SELECT 1", True, 3600.0, "none", before, before * ratio, ratio, low, high, clients=4
    )


def test_a_pause_before_begin_is_no_time_of_the_transaction():
    # 4 clients at 8 operations a second: 500 ms each, of which the variant pauses 120 ms of its 125 ms.
    found = held_times(effect(4.0, 3.95, 4.05), 120e6)
    assert (found.before_ns, found.after_ns) == (pytest.approx(500e6), pytest.approx(5e6))
    assert found.ratio == pytest.approx(0.01)
    assert found.low == pytest.approx(1 / 4.05 - 0.24) and found.high == pytest.approx(1 / 3.95 - 0.24)
    net = net_of_transactions(found, transaction(LOCK, SALE))
    assert net.before == pytest.approx(720.0)  # 3600 transactions of 200 ms on the source
    assert net.saved == pytest.approx(712.8)
    ((arm,), _) = arms(transaction(LOCK, SALE, pauses=(0.0, 120e6, 0.0)), OUTSIDE)
    assert judge(arm.arm, [found], net)[0] == "cured"


def test_without_a_pause_the_time_of_an_operation_counts():
    found = held_times(effect(2.0, 1.5, 2.5), 0.0)
    assert (found.ratio, found.low, found.high) == (0.5, 0.4, pytest.approx(1 / 1.5))
    assert net_of_transactions(replace(found, low=None), transaction(LOCK)) is None


def test_more_than_all_of_the_time_is_never_saved():
    found = held_times(effect(4.2, 4.1, 4.4), 120e6)
    assert 0 < found.low <= found.ratio < 0.01 and found.after_ns > 0


def test_a_transaction_stands_for_its_statements():
    whole = whole_transaction(transaction(READ, LOCK, SALE))
    assert whole.template == 3 and whole.changes and whole.tables == ("sale", "total")
    assert whole.sql.count(";\n") == 2 and whole.calls_per_hour == 3600.0
