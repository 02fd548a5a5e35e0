"""The bill of a finding: what part of the sessions' time it explains, with an interval."""

import pytest

from uncork.diagnosis.evidence import Evidence, Piece, Statement
from uncork.model.database.wait_classes import CPU, IDLE


def seen():
    return Evidence(
        seconds=60.0,
        pieces=(
            Piece(0, CPU, "", "shop", "app", (1.0, 3.0) * 10),
            Piece(0, "Lock", "tuple", "shop", "app", (1.0,) * 20),
            Piece(1, CPU, "", "shop", "app", (4.0,) * 20),
            Piece(None, IDLE, "ClientRead", "batch", "app", (1.0,) * 20),
        ),
        statements={0: Statement(0, "select 1"), 1: Statement(1, "select 2")},
    )


def test_the_bill_counts_the_working_time_of_a_statement_by_default():
    bill = seen().bill_of((0,))
    assert bill.seconds_per_hour == pytest.approx(2.0 * 3600)
    assert bill.share == pytest.approx(2.0 / 8.0)
    assert bill.low < bill.seconds_per_hour < bill.high


def test_a_fraction_and_other_classes():
    assert seen().bill_of({1: 0.25}).seconds_per_hour == pytest.approx(3600)
    assert seen().bill_of((0,), ("Lock",)).seconds_per_hour == pytest.approx(3600)
    assert seen().bill_of_waiting("Lock", 0.5).seconds_per_hour == pytest.approx(1800)


def test_without_any_time_the_bill_is_nothing():
    bill = seen().bill_of((7,))
    assert (bill.seconds_per_hour, bill.share) == (0.0, 0.0)


def test_statements_come_with_the_costliest_first():
    assert [one.number for one in seen().costliest()] == [1, 0]
