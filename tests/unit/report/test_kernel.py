"""The kernel's part of the server's processor time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.results import small_result
from uncork.model.results.experiment import FactorFacts
from uncork.report.experiment.answer import kernel_words

COST = small_result().costs[0]
FACTORS = (FactorFacts("sessions", ("1", "8"), True),)
MS = 1e6


def cost(variant, user_ns, system_ns, cell=()):
    return replace(
        COST,
        variant=variant,
        cell=cell,
        workload="report",
        server_user_ns=user_ns,
        server_system_ns=system_ns,
    )


@pytest.mark.parametrize(
    ("user_ns", "system_ns", "share"), [(3.0, 1.0, 0.25), (0, 0, None), (None, 1.0, None), (0.0, 2.0, 1.0)]
)
def test_the_share_is_of_all_processor_time(user_ns, system_ns, share):
    assert cost("a", user_ns, system_ns).kernel_share == share


def test_a_high_share_is_told_beside_the_least():
    costs = [
        cost("careful", 66 * MS, 34 * MS),
        cost("ranges", 20 * MS, 0.2 * MS),
        cost("other", 5 * MS, 1 * MS),
    ]
    assert kernel_words(costs, FACTORS) == (
        "careful on report spends 34 % of its server CPU in the kernel (34.0 ms per operation); "
        'ranges spends 1 %. `evidence = ["syscalls"]` in the experiment file lists its system calls.',
    )


@pytest.mark.parametrize(
    "costs",
    [
        [],
        [cost("usual", 90 * MS, 10 * MS)],
        [cost("short", 10_000, 20_000)],
        [cost("unknown", None, None)],
    ],
)
def test_what_is_usual_too_short_or_unknown_is_not_told(costs):
    assert kernel_words(costs, FACTORS) == ()


def test_only_the_same_place_is_put_beside():
    here = (("sessions", "8"),)
    costs = [cost("careful", 10 * MS, 10 * MS, here), cost("ranges", 10 * MS, 0, (("sessions", "1"),))]
    assert kernel_words(costs, FACTORS) == (
        "careful on report at sessions 8 spends 50 % of its server CPU in the kernel "
        '(10.0 ms per operation). `evidence = ["syscalls"]` in the experiment file lists its system calls.',
    )
