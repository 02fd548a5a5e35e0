"""How often a loop that waits for each answer passes for a pipeline in a log, and how often one is found.

A group of 32 executions follows the rule of ``crates/uncork-log/src/gather/sequence/bursts.rs``: the log's
clock has milliseconds. Times are microseconds.
"""

import numpy as np
import pytest

from uncork.diagnosis.log_loops import is_pipeline

GROUP, KNOWN, CLOCK = 32, 256, 1_000


def groups(pauses, within):
    """Return how many groups there are, and how many were executed at once; each execution takes 30 µs."""
    ends = np.cumsum(pauses + within + 30)
    binds = np.floor((ends - 30 + 20 - within) / CLOCK) * CLOCK
    ends = np.floor(ends / CLOCK) * CLOCK
    inner = ends[1:] - binds[1:] - 20
    count = len(inner) // GROUP
    last = ends[: count * GROUP + 1 : GROUP]
    of_group = inner[: count * GROUP].reshape(count, GROUP).sum(axis=1)
    waited = np.diff(last) - 30 * GROUP
    within = np.maximum(0, np.cumsum(of_group)) / np.arange(1, count + 1)
    known = slice(KNOWN // GROUP, None)
    return len(waited[known]), int((waited <= np.minimum(2 * within + CLOCK / 2, CLOCK))[known].sum())


@pytest.mark.parametrize("executions", [400, 1_000, 10_000])
@pytest.mark.parametrize("round_trip", [60, 70, 100, 300])
def test_a_loop_that_waits_for_each_answer_seldom_passes_for_a_pipeline(
    round_trip, executions, runs, generator, figure
):
    """The pause of a client has half of its mean for certain, and the rest is exponential."""
    each = runs // 10
    false = 0
    for _ in range(each):
        pauses = round_trip / 2 + generator.exponential(round_trip / 2, executions)
        false += is_pipeline(*groups(pauses, generator.uniform(3, 12)))
    figure(f"pipelines: {executions} executions in a loop with pauses of {round_trip} µs pass", false / each)
    assert false <= 0.05 * each


@pytest.mark.parametrize("executions", [400, 1_000, 10_000])
@pytest.mark.parametrize("burst", [50, 200])
def test_a_pipeline_is_found_though_its_client_sends_slowly(burst, executions, runs, generator, figure):
    """After each burst, whose length is exponential, the server waits for the client."""
    each = runs // 10
    found = 0
    for _ in range(each):
        pauses = generator.uniform(3, 12, executions)
        pauses += (generator.random(executions) < 1 / burst) * generator.exponential(8_000, executions)
        found += is_pipeline(*groups(pauses, generator.uniform(3, 12)))
    figure(f"pipelines: {executions} executions in bursts of {burst} found", found / each)
    assert found >= (0.9 if executions >= 1_000 else 0.35) * each
