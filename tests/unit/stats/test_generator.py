from dataclasses import replace
from pathlib import Path

import pytest

from fakes.goldens import compare
from uncork.stats.load.generator import GeneratorLoad, Lateness, generator_verdict

SECOND = 10**9

CLOSED = GeneratorLoad(
    clients=16, threads=1, cpus=8, elapsed_ns=10 * SECOND, busiest_thread=0.12,
    generator_ns=12 * SECOND // 10, server_ns=None, local=False, steal_ns=0, operations=100_000,
    latency_p99_ns=2e6, service_p99_ns=2e6,
)  # fmt: skip
OPEN = replace(
    CLOSED, busiest_thread=0.41, latency_p99_ns=5.1e6, service_p99_ns=5e6,
    lateness=Lateness(count=100_000, p99_ns=80_000, p999_ns=200_000),
)  # fmt: skip


OPENING = {"opening_wait_ns": 16 * 10 * SECOND // 2}
CROWDED = {"service_p99_ns": 2e6, "lateness": Lateness(count=10, p99_ns=1_000, p999_ns=2_000)}
LATE = {"lateness": Lateness(100_000, 3.4e6, 8e6), "latency_p99_ns": 9e6, "service_p99_ns": 5e6}
WAITING = {"latency_p99_ns": 50e6, "lateness": Lateness(20_000, 80_000, 200_000)}
BESIDE = {"cpus": 2, "local": True, "busiest_thread": 0.47, "generator_ns": 47 * SECOND // 10}
TRACE = {**BESIDE, "generator_ns": SECOND // 5, "busiest_thread": 0.02}
NOTHING = {"operations": 0, "latency_p99_ns": None, "service_p99_ns": None}
ONE = {"clients": 1, "busiest_thread": 0.04}
LOADS = [
    ("time to spare", CLOSED, {}),
    ("an open loop with time to spare", OPEN, {}),
    ("clients wait for their own connections", CLOSED, OPENING),
    ("... with as many threads as clients", CLOSED, {**OPENING, "threads": 16}),
    ("... on a busy machine", CLOSED, {**OPENING, "cpus": 2, "server_ns": 17 * SECOND, "local": True}),
    ("... too little to matter", CLOSED, {"opening_wait_ns": OPENING["opening_wait_ns"] // 20}),
    ("... in an open loop in which operations waited", OPEN, {**OPENING, **CROWDED}),
    ("... in one in which no operation waited for a free connection", OPEN, OPENING),
    ("a thread that is always at work", CLOSED, {"busiest_thread": 0.995}),
    ("... of 3 threads", CLOSED, {"busiest_thread": 0.99, "threads": 3}),
    ("... of 6, and there are 8 processors", CLOSED, {"busiest_thread": 0.99, "threads": 6}),
    ("... of 6, for 7 connections", CLOSED, {"busiest_thread": 0.99, "threads": 6, "clients": 7}),
    ("... of one for each processor", CLOSED, {"busiest_thread": 0.99, "threads": 8}),
    ("... of more than connections", CLOSED, {"busiest_thread": 0.99, "threads": 16, "clients": 2}),
    ("in between there is doubt", CLOSED, {"busiest_thread": 0.6}),
    ("nearly always at work", CLOSED, {"busiest_thread": 0.89}),
    (
        "... while a tenth of 8 processors was stolen",
        CLOSED,
        {"busiest_thread": 0.89, "steal_ns": 8 * SECOND},
    ),
    ("a single connection", CLOSED, ONE),
    ("... that waits for a busy generator", CLOSED, {**ONE, "busiest_thread": 0.1}),
    ("... that waits for a busier one", CLOSED, {**ONE, "busiest_thread": 0.4}),
    ("beside its server", CLOSED, {**BESIDE, "server_ns": 15 * SECOND}),
    ("... with less work", CLOSED, {**BESIDE, "generator_ns": 2 * SECOND, "server_ns": 17 * SECOND}),
    ("... with hardly any", CLOSED, {**TRACE, "server_ns": 19 * SECOND}),
    ("... both idle", CLOSED, {**TRACE, "generator_ns": SECOND, "server_ns": 5 * SECOND}),
    ("beside a server that cannot be seen", CLOSED, {"local": True}),
    ("requests leave late", OPEN, {**LATE, "busiest_thread": 0.97}),
    ("... since processors were stolen", OPEN, {**LATE, "busiest_thread": 0.2, "steal_ns": 8 * SECOND}),
    ("... beside the server", OPEN, {**LATE, "busiest_thread": 0.2, "local": True}),
    ("... for an unknown reason", OPEN, {**LATE, "busiest_thread": 0.2}),
    ("rare lateness is a doubt", OPEN, {"lateness": Lateness(100_000, 80_000, 4e6)}),
    ("waiting for a free connection is not lateness", OPEN, {**WAITING, "busiest_thread": 0.02}),
    ("... with a busier generator", OPEN, WAITING),
    ("... none was free", OPEN, {**WAITING, "lateness": Lateness(0, 0.0, 0.0), "busiest_thread": 0.001}),
    ("... with a thread always at work", OPEN, {**WAITING, "busiest_thread": 0.99}),
    ("nothing succeeded", CLOSED, NOTHING),
    ("nothing succeeded in an open loop", OPEN, NOTHING),
]


def judged(load: GeneratorLoad, **changes: object) -> tuple[str, str]:
    verdict = generator_verdict(replace(load, **changes))
    return verdict.limit, verdict.reason


def test_the_verdict_on_a_generator_word_for_word():
    """UNCORK_BLESS=1 rewrites the sentences; read the difference first."""
    found = [f"{name}: {': '.join(judged(load, **changes))}\n" for name, load, changes in LOADS]
    compare(Path(__file__).parents[2] / "golden" / "stats" / "generator.txt", "".join(found))


@pytest.mark.parametrize("name", ["clients", "threads", "cpus", "elapsed_ns"])
def test_an_impossible_load_is_an_error(name):
    with pytest.raises(ValueError, match="must be positive"):
        judged(CLOSED, **{name: 0})


def test_a_busier_generator_is_never_acquitted_sooner():
    severity = {"no": 0, "perhaps": 1, "yes": 2}
    for clients in (1, 4, 64):
        for load in (CLOSED, OPEN):
            verdicts = [
                severity[judged(load, clients=clients, busiest_thread=busy / 100)[0]] for busy in range(101)
            ]
            assert verdicts == sorted(verdicts)


def test_the_bound_is_exact_for_one_connection_and_small_for_many():
    assert replace(CLOSED, clients=1, busiest_thread=0.2).bound == pytest.approx(0.25)
    assert replace(CLOSED, clients=200, busiest_thread=0.5).bound == pytest.approx(1 / 199)
    assert replace(CLOSED, busiest_thread=1.0).bound > 1e6
