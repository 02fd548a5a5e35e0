"""A cure's experiment stops measuring what its decisions no longer depend on."""

from dataclasses import replace

import pytest

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.judge import needless, promising
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import StatementEffect

LONG, SHORT = (
    CapturedStatement(number, "SELECT", ((),), "none", 3600.0, mean_s * 1e9, 0.5, ("t",), changes=False)
    for number, mean_s in ((1, 0.9), (2, 0.1))
)
WORKLOAD = CapturedWorkload((LONG, SHORT), (), 60.0, 1.0)
WHOLE = Arm("set", "set", "Both.", "", "", settings={"jit": "off"})
CONTROL = replace(WHOLE, name="control", kind="control")
WITHOUT = replace(WHOLE, name="without-a")
OTHER = replace(WHOLE, name="other")


def effects(**found):
    """Return effects by change, each with the intervals of both statements; None is unknown."""
    return {
        name.replace("_", "-"): [
            StatementEffect(
                *(one.template, one.sql, False, one.calls_per_hour, "none", one.mean_ns, None),
                *((None, None, None) if interval is None else (sum(interval) / 2, *interval)),
            )
            for one, interval in zip((LONG, SHORT), intervals, strict=True)
        ]
        for name, intervals in found.items()
    }


def test_a_statement_is_enough_once_its_part_of_the_bill_is_known():
    found = effects(set=((0.40, 0.44), (0.7, 1.1)))
    assert needless([WHOLE], found, WORKLOAD) == {("set", 1), ("set", 2)}
    wide = effects(set=((0.30, 0.44), (0.3, 1.1)))
    assert needless([WHOLE], wide, WORKLOAD) == set()
    assert needless([WHOLE], effects(set=(None, (0.9, 1.0))), WORKLOAD) == {("set", 2)}


@pytest.mark.parametrize(("most", "enough"), [(1.15, True), (1.5, False)])
def test_a_statement_that_may_be_harmed_is_measured_on(most, enough):
    mean_ns = 0.01e9  # so short that its part of the bill is known in any case
    workload = replace(WORKLOAD, statements=(LONG, replace(SHORT, mean_ns=mean_ns)))
    found = effects(set=((0.97, 0.99), (0.9, most)))
    assert (("set", 2) in needless([WHOLE], found, workload)) is enough


@pytest.mark.parametrize(("least", "idle"), [(0.8, True), (0.4, False)])
def test_the_control_ends_once_it_cannot_seem_as_good_as_the_change(least, idle):
    found = effects(set=((0.5, 0.6), (0.5, 0.6)), control=((least, 1.3), (least, 1.3)))
    done = needless([WHOLE, CONTROL], found, WORKLOAD)
    assert (("control", 1) in done) is idle


def test_the_control_goes_on_while_the_change_itself_is_unknown():
    found = effects(set=(None, (0.5, 0.6)), control=((0.8, 1.3), (0.8, 1.3)))
    assert ("control", 1) not in needless([WHOLE, CONTROL], found, WORKLOAD)


@pytest.mark.parametrize(("without", "needed"), [((0.9, 1.1), True), ((0.5, 0.7), False)])
def test_a_set_without_a_member_ends_once_the_member_surely_contributes(without, needed):
    found = effects(
        set=((0.5, 0.6), (0.5, 0.6)), without_a=(without, without), control=((0.9, 1.0), (0.9, 1.0))
    )
    done = needless([WHOLE, WITHOUT, CONTROL], found, WORKLOAD)
    assert (("without-a", 1) in done) is needed


def test_a_change_ends_once_another_is_surely_better():
    found = effects(set=((0.2, 0.4), (0.2, 0.4)), other=((0.6, 0.9), (0.6, 0.9)))
    done = needless([WHOLE, OTHER], found, WORKLOAD)
    assert {("other", 1), ("other", 2)} <= done and ("set", 1) not in done


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"set": ((0.2, 1.2), (0.9, 1.1))}, True),
        ({"set": ((0.2, 0.4), (0.9, 1.1))}, False),
        ({"set": ((0.99, 1.02), (0.9, 1.1))}, False),
        ({"set": ((0.2, 1.2), (0.9, 1.1)), "other": ((0.2, 0.4), (0.9, 1.1))}, False),
        ({"set": (None, None)}, False),
        ({}, False),
    ],
    ids=["may save much", "proven", "saves too little", "another is proven", "no interval", "nothing"],
)
def test_a_change_that_may_save_much_deserves_more_time(found, expected):
    assert promising([WHOLE, OTHER], effects(**found), WORKLOAD) is expected
