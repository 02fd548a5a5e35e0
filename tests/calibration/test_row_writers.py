"""How often requests that each write one row pass for a loop over many rows, and how often a loop is found.

The decision uses counts, and sessions in samples. Requests have the worst counts here: their role sends no
other statement. Each client has a connection of its own, or they share a pool that prefers its first ones.
"""

from collections import Counter
from functools import cache
from itertools import product
from random import Random

import pytest

from uncork.diagnosis.rules.writes.row_by_row import writes_many_rows
from uncork.model.results.database_transactions import RowWriter

RATE_HZ = 20
CLIENTS = (4, 6, 8, 12, 16)
BUSY = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95)
STATEMENT_MS = 1.0


@cache
def occupied(clients, busy, pool):
    """Return which connections worked at moments of an endless service, and its requests a second.

    A client waits for `busy` of its time for its statement; both times are exponential. A pool gives a
    request the first connection that is free.
    """
    chance = Random(f"{clients} {busy} {pool}")
    think = STATEMENT_MS * (1 / busy - 1)
    events = [(chance.expovariate(1 / think), client, None) for client in range(clients)]
    moments, done, working, clock, look = [], 0, set(), 0.0, 0.0
    step = (STATEMENT_MS + think) * 3.1
    while len(moments) < 1_000:
        events.sort()
        clock, client, connection = events.pop(0)
        while look < clock:
            moments.append(frozenset(working))
            look += step
        if connection is None:
            free = client if not pool else next(n for n in range(clients) if n not in working)
            working.add(free)
            events.append((clock + chance.expovariate(1 / STATEMENT_MS), client, free))
        else:
            working.discard(connection)
            done += 1
            events.append((clock + chance.expovariate(1 / think), client, None))
    return moments[50:], done / clock * 1e3


def watched(looks, calls_a_second, seconds):
    """Return what a watch shows of sessions that worked in `looks`; None if it shows no session."""
    by_process = Counter(process for look in looks for process in look)
    if not by_process:
        return None
    return RowWriter(
        application="", user="app", template=0, text="", calls=round(calls_a_second * seconds),
        others=0, processes=len(by_process), samples=by_process.total(),
        evenness=min(by_process.values()) / max(by_process.values()),
        sessions=by_process.total() / len(looks), idle_share=0.0, log_share=0.8,
    )  # fmt: skip


@pytest.mark.parametrize("pool", [False, True], ids=["own connections", "a pool that prefers its first"])
def test_requests_of_four_clients_or_more_seldom_pass_for_a_loop(pool, runs, figure):
    worst, places = 0.0, list(product(CLIENTS, BUSY))
    each = max(20, runs // 40)
    for clients, busy in places:
        moments, rate = occupied(clients, busy, pool)
        chance, false = Random(7), 0
        for _ in range(each):
            seconds = chance.choice((5, 10, 60))
            writer = watched(chance.choices(moments, k=seconds * RATE_HZ), rate, seconds)
            false += writer is not None and writes_many_rows(writer, seconds)
        worst = max(worst, false / each)
    figure(f"single-row requests that pass for a loop, {'pool' if pool else 'own'}, worst of all", worst)
    assert worst <= 0.02


@pytest.mark.parametrize(("sessions", "busy"), [(1, 0.9), (1, 0.3), (2, 0.5), (3, 0.9), (3, 0.3)])
@pytest.mark.parametrize("seconds", [5, 10, 60])
def test_a_loop_over_many_rows_is_found_once_samples_have_counted_its_sessions(
    sessions, busy, seconds, runs, figure
):
    chance, found, each = Random(8), 0, max(20, runs // 40)
    for _ in range(each):
        looks = [
            frozenset(process for process in range(sessions) if chance.random() < busy)
            for _ in range(seconds * RATE_HZ)
        ]
        writer = watched(looks, sessions * busy / (STATEMENT_MS / 1e3), seconds)
        found += writer is not None and writes_many_rows(writer, seconds)
    figure(f"loops found, {sessions} sessions busy for {busy} of {seconds} s", found / each)
    if sessions * busy * seconds * RATE_HZ >= 80:
        assert found >= 0.9 * each
