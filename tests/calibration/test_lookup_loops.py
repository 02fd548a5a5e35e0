"""How often unrelated lookups and lists are called a loop by their counts, and how often a loop is found."""

import numpy as np
import pytest

from uncork.diagnosis.evidence import Statement
from uncork.diagnosis.rules.clients.loops import follows, follows_exactly


def statement(calls, rows):
    return Statement(0, "", calls=int(calls), rows=int(rows))


@pytest.mark.parametrize("sessions", [0.2, 4.0])
def test_lookups_of_other_requests_are_seldom_called_a_loop(sessions, runs, generator, figure):
    """The rates of lists and lookups differ by up to a hundred times in either direction."""
    false = 0
    for _ in range(runs):
        lists = generator.integers(10, 2_000)
        rows = generator.poisson(generator.uniform(10, 100) * lists)
        calls = max(1, generator.poisson(rows * 10 ** generator.uniform(-2, 2)))
        false += follows(statement(calls, calls), statement(lists, rows), sessions)
    figure(f"lookup loops: {sessions} sessions, unrelated pairs called a loop", false / runs)
    assert false <= 0.02 * runs


def test_by_counts_alone_unrelated_lookups_are_hardly_ever_called_a_loop(runs, generator, figure):
    false = 0
    for _ in range(runs):
        lists = generator.integers(10, 2_000)
        rows = generator.poisson(generator.uniform(10, 100) * lists)
        calls = max(1, generator.poisson(rows * 10 ** generator.uniform(-2, 2)))
        false += follows_exactly(statement(calls, calls), statement(lists, rows))
    figure("lookup loops: unrelated pairs called a loop by their counts alone", false / runs)
    assert false <= 0.006 * runs


@pytest.mark.parametrize("sessions", [1, 4])
def test_by_counts_alone_a_loop_over_hundreds_of_lists_is_found(sessions, runs, generator, figure):
    found = 0
    for _ in range(runs // 4):
        mean = generator.uniform(10, 150)
        lists = generator.integers(200 * sessions, 1_000 * sessions)
        rows = generator.geometric(1 / mean, lists).sum()
        edges = generator.integers(0, mean, sessions).sum() - generator.integers(0, mean, sessions).sum()
        calls = rows + edges
        found += calls < 1_000 or follows_exactly(statement(calls, calls), statement(lists, rows))
    figure(f"lookup loops: {sessions} sessions, loops found by their counts alone", found / (runs // 4))
    assert found >= 0.9 * (runs // 4)


@pytest.mark.parametrize("sessions", [1, 8])
def test_a_loop_is_found_though_lists_are_open_at_both_ends(sessions, runs, generator, figure):
    found = 0
    for _ in range(runs):
        mean = generator.uniform(10, 100)
        lists = generator.integers(20 * sessions, 100 * sessions)
        rows = generator.geometric(1 / mean, lists)
        edges = np.concatenate(
            [generator.integers(0, mean, sessions), -generator.integers(0, mean, sessions)]
        )
        calls = rows.sum() + edges.sum()
        found += follows(statement(calls, calls), statement(lists, rows.sum()), sessions)
    figure(f"lookup loops: {sessions} sessions, loops found", found / runs)
    assert found >= 0.9 * runs
