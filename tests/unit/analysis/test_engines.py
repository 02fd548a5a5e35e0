"""What is said of clients that differ between engines."""

from __future__ import annotations

import pytest

from fakes.results import comparison
from uncork.analysis.experiment.engines import client_warnings, clients_in_doubt
from uncork.model.results.experiment import EngineFacts


def engine(name, p50_ns, *variants):
    return EngineFacts(name, name.title(), "1", variants, False, p50_ns, p50_ns, None)


ENGINES = (
    engine("here", 10_000, "base", "other"),
    engine("there", 2_000, "new"),
    engine("far", None, "mute"),
)


@pytest.mark.parametrize(
    ("variant", "values", "metric", "warning"),
    [
        (
            "new",
            (15_000, 20_000),
            "latency_p50",
            "a statement that does nothing takes 2.00 µs with There and 10.0",
        ),
        ("new", (20_000, 15_000), "latency_mean", "which could explain the whole difference of 5.00 µs"),
        ("new", (5_000, 20_000), "latency_p50", None),
        ("other", (19_000, 20_000), "latency_p50", None),
        ("new", (15_000, 20_000), "throughput", None),
        ("new", (None, 20_000), "latency_p50", None),
        (
            "mute",
            (1, 20_000),
            "latency_p50",
            "the overhead of the clients of Far and Here is unknown",
        ),
    ],
)
def test_a_difference_that_the_clients_alone_could_make_is_doubted(variant, values, metric, warning):
    found = client_warnings(ENGINES, (variant, "base"), values, metric)
    assert (warning is None) == (not found)
    assert warning is None or warning in found[0]


def test_the_run_names_them_in_one_sentence():
    doubted = client_warnings(ENGINES, ("new", "base"), (15_000, 20_000), "latency_p50")
    plain = comparison("other", warnings=("too few rounds",))
    mine = comparison("new", cell=(("rows", "10"),), warnings=doubted)
    assert clients_in_doubt([plain, mine]) == (
        "the clients of the engines alone could explain the whole difference: new on select at rows=10",
    )
    assert clients_in_doubt([plain]) == ()
