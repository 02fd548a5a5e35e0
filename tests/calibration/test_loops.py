"""How often ordinary traffic of a connection pool is called a loop (N+1), and how often a loop is found.

Every log goes through the core that reads real ones. Requests do not use transactions: within one, repeated
statements are a fact, not a guess.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from uncork.analysis.log.result import loops_of
from uncork.profile.logs import LogRequest, read_logs

SESSIONS = 4
REQUESTS = 300
INNER_MS = 1.0
"""Mean pause between two statements of a request."""
TRIP_MS = 0.3
"""Shortest pause: the way to the client and back."""

Request = list[str]


MIXES = {
    "two kinds, one of them 5 %": np.array([0.95, 0.05]),
    "six kinds, half of the first": np.array([0.5, 0.2, 0.15, 0.08, 0.05, 0.02]),
    "30 kinds, 80 % of the first": np.array([0.8, *([0.2 / 29] * 29)]),
}


def _mixed(dice: np.random.Generator, shares: np.ndarray, statements: int) -> Iterator[Request]:
    """Yield independent requests of several kinds, each with statements of its own."""
    for kind in dice.choice(len(shares), REQUESTS, p=shares / shares.sum()):
        yield [f"SELECT a{part} FROM t{kind}" for part in range(1 if kind else statements)]


def _pages(dice: np.random.Generator, rows: Callable[[], int]) -> Iterator[Request]:
    """Yield pages of a list, with two statements for each row, among requests of another kind."""
    for _ in range(REQUESTS // 10):
        children = [f"SELECT a FROM {table}" for _ in range(rows()) for table in ("items", "prices")]
        yield ["SELECT id FROM orders", *children] if dice.random() < 0.5 else ["SELECT name FROM users"]


def log_of(dice: np.random.Generator, requests: list[list[Request]], between_ms: float) -> str:
    """Return the log of sessions that carry requests with a mean pause between them."""
    lines = []
    for pid, session in enumerate(requests, 1):
        now = 0.0
        for request in session:
            for place, text in enumerate(request):
                now += TRIP_MS + dice.exponential(INNER_MS - TRIP_MS if place else between_ms)
                took = 0.2 + dice.exponential(0.3)
                now += took
                seconds, millis = divmod(int(now), 1000)
                stamp = f"{seconds // 60:02}:{seconds % 60:02}.{millis:03}"
                lines.append(
                    (
                        now,
                        f"2026-01-01 00:{stamp} UTC [{pid}] LOG:  duration: {took:.3f} ms  "
                        f"statement: {text}\n",
                    )
                )
    return "".join(line for _, line in sorted(lines))


def finds(folder: Path, log: str) -> bool:
    """Read a log; say whether a loop takes a twentieth of the executions, the least share of a finding."""
    path = folder / "one.log"
    path.write_text(log)
    tables = read_logs(LogRequest((path,), threads=1)).tables
    templates = tables["log_templates"]
    executions = templates["executions"].to_pylist()
    found = loops_of(tables["log_loops"], templates["text"].to_pylist(), executions)
    looped = sum(template.executions for one in found for template in one.templates)
    return looped >= 0.05 * sum(executions)


@pytest.mark.parametrize("between_ms", [20.0, 1.0, 0.3])
@pytest.mark.parametrize("mix", MIXES)
def test_requests_of_a_pool_are_no_loop(mix, between_ms, runs, generator, figure, tmp_path):
    logs = runs // 100
    false = sum(
        finds(
            tmp_path,
            log_of(
                generator,
                [list(_mixed(generator, MIXES[mix], 2)) for _ in range(SESSIONS)],
                between_ms,
            ),
        )
        for _ in range(logs)
    )
    figure(f"loops: {mix}, {between_ms} ms apart: called a loop", false / logs)
    assert false <= 0.05 * logs + 1


@pytest.mark.parametrize("between_ms", [20.0, 5.0, 1.0])
@pytest.mark.parametrize("rows", ["25", "geometric, mean 30"])
def test_a_loop_among_other_requests_is_found(rows, between_ms, runs, generator, figure, tmp_path):
    logs = runs // 100
    draw = (lambda: 25) if rows == "25" else (lambda: int(generator.geometric(1 / 30)))
    found = sum(
        finds(
            tmp_path,
            log_of(generator, [list(_pages(generator, draw)) for _ in range(SESSIONS)], between_ms),
        )
        for _ in range(logs)
    )
    figure(f"loops: a page of {rows} rows, requests {between_ms} ms apart: found", found / logs)
    assert found >= (0.9 if between_ms >= 5 else 0.0) * logs
