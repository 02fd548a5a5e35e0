from dataclasses import replace

import pytest

from uncork.stats.load.generator import GeneratorLoad, Lateness, generator_verdict

SECOND = 10**9

CLOSED = GeneratorLoad(
    clients=16, threads=1, cpus=8, elapsed_ns=10 * SECOND, busiest_thread=0.12,
    generator_ns=12 * SECOND // 10, server_ns=None, local=False, steal_ns=0, operations=100_000,
    latency_p99_ns=2e6, service_p99_ns=2e6,
)  # fmt: skip
OPEN = replace(
    CLOSED,
    busiest_thread=0.41,
    latency_p99_ns=5.1e6,
    service_p99_ns=5e6,
    lateness=Lateness(count=100_000, p99_ns=80_000, p999_ns=200_000),
)


def judged(load: GeneratorLoad, **changes: object) -> tuple[str, str]:
    verdict = generator_verdict(replace(load, **changes))
    return verdict.limit, verdict.reason


def test_a_generator_with_time_to_spare_is_not_the_limit():
    assert judged(CLOSED) == (
        "no",
        "The generator was not the limit: its busiest thread used 12 % of a processor, which cost less than "
        "1 % of the throughput.",
    )
    assert judged(OPEN) == (
        "no",
        "The generator was not the limit: its busiest thread used 41 % of a processor, and 99 % of requests "
        "were sent within 80.0 µs of their intended time.",
    )


def test_clients_that_wait_for_a_connection_of_their_own_are_limited_by_the_generator():
    waited = 16 * 10 * SECOND // 2
    assert judged(CLOSED, opening_wait_ns=waited) == (
        "yes",
        "The generator was the limit: it opens 2 connections at once (2 for each thread), and clients waited "
        "50 % of their time for their turn; run again with more threads (-j 2).",
    )
    limit, reason = judged(CLOSED, opening_wait_ns=waited, threads=16)
    assert limit == "yes" and "it opens 32 connections at once" in reason and "(--shard)" in reason
    limit, reason = judged(CLOSED, opening_wait_ns=waited, cpus=2, server_ns=17 * SECOND, local=True)
    assert limit == "perhaps" and "91 % of this machine's processor time was in use" in reason
    assert judged(CLOSED, opening_wait_ns=waited // 20) == judged(CLOSED), "too little to matter"
    crowded = {"service_p99_ns": 2e6, "lateness": Lateness(count=10, p99_ns=1_000, p999_ns=2_000)}
    assert "for their turn" in judged(OPEN, opening_wait_ns=waited, **crowded)[1]
    assert judged(OPEN, opening_wait_ns=waited)[0] == "no", "no operation waited for a free connection"


def test_a_thread_that_is_always_at_work_is_the_limit():
    assert judged(CLOSED, busiest_thread=0.995) == (
        "yes",
        "The generator was the limit: its busiest thread used 100 % of a processor, so the server might "
        "handle more; run again with more threads (-j 2) or from another machine.",
    )


@pytest.mark.parametrize(("changes", "remedy"), [
    ({"threads": 3}, "-j 6"),
    ({"threads": 6}, "-j 8"),  # no more than there are processors ...
    ({"threads": 6, "clients": 7}, "-j 7"),  # ... or connections
    ({"threads": 8}, "run again from another machine with more or faster processors."),
    ({"threads": 16, "clients": 2}, "run again from another machine with more or faster processors."),
])  # fmt: skip
def test_more_threads_are_advised_where_they_can_help(changes, remedy):
    limit, reason = judged(CLOSED, busiest_thread=0.99, **changes)
    assert limit == "yes"
    assert remedy in reason


def test_in_between_there_is_doubt():
    limit, reason = judged(CLOSED, busiest_thread=0.6)
    assert (limit, "used 60 % of a processor" in reason, "-j 2" in reason) == ("perhaps", True, True)


def test_what_the_hypervisor_took_the_thread_could_not_use():
    stolen = {"steal_ns": 8 * SECOND}  # a tenth of 8 processors in 10 s
    assert judged(CLOSED, busiest_thread=0.89)[0] == "perhaps"
    assert judged(CLOSED, busiest_thread=0.89, **stolen)[0] == "yes"


def test_a_single_connection_waits_for_the_generator():
    one = {"clients": 1, "busiest_thread": 0.04}
    assert judged(CLOSED, **one)[0] == "no"
    for busy, expected in ((0.1, "perhaps"), (0.4, "yes")):
        limit, reason = judged(CLOSED, **{**one, "busiest_thread": busy})
        assert limit == expected
        assert f"a single connection waits while the generator works, which was {busy * 100:.0f} %" in reason
        assert "-j" not in reason  # more threads than connections are of no use
        assert "(-c)" in reason


def test_a_generator_beside_its_server_takes_processors_from_it():
    beside = {"cpus": 2, "local": True, "busiest_thread": 0.47, "generator_ns": 47 * SECOND // 10}
    limit, reason = judged(CLOSED, **beside, server_ns=15 * SECOND)
    assert limit == "yes"
    assert (
        "98 % of this machine's processor time was in use, and the generator used 24 % of what both used"
        in reason
    )
    assert judged(CLOSED, **{**beside, "generator_ns": 2 * SECOND}, server_ns=17 * SECOND)[0] == "perhaps"
    trace = {**beside, "generator_ns": SECOND // 5, "busiest_thread": 0.02}
    assert judged(CLOSED, **trace, server_ns=19 * SECOND)[0] == "no"
    assert judged(CLOSED, **{**trace, "generator_ns": SECOND}, server_ns=5 * SECOND)[0] == "no"


def test_a_server_beside_it_that_cannot_be_seen_is_mentioned():
    limit, reason = judged(CLOSED, local=True)
    assert limit == "no"
    assert reason.endswith("the server also runs on this machine, but its processor time is unknown.")


def test_requests_that_leave_late_show_in_the_latency():
    late = {"lateness": Lateness(100_000, 3.4e6, 8e6), "latency_p99_ns": 9e6, "service_p99_ns": 5e6}
    limit, reason = judged(OPEN, **late, busiest_thread=0.97)
    assert limit == "yes"
    assert (
        "99 % of requests were sent within 3.40 ms of their intended time, which is long compared with a p99 "
        "latency of 9.00 ms" in reason
    )
    assert reason.endswith("-j 2) or from another machine.")
    for changes, cause in (
        ({"steal_ns": 8 * SECOND}, "the hypervisor gave 10 % of this machine's processor time to others"),
        ({"local": True}, "the server runs on this machine too, so the results describe both"),
        ({}, "judge the server by the service times"),
    ):
        limit, reason = judged(OPEN, **late, busiest_thread=0.2, **changes)
        assert limit == "yes"
        assert cause in reason


def test_rare_lateness_is_a_doubt():
    limit, reason = judged(OPEN, lateness=Lateness(100_000, 80_000, 4e6))
    assert limit == "perhaps"
    assert "99.9 % of requests were sent within 4.00 ms" in reason


def test_waiting_for_a_free_connection_is_not_lateness():
    waiting = {"latency_p99_ns": 50e6, "lateness": Lateness(20_000, 80_000, 200_000)}
    limit, reason = judged(OPEN, **waiting, busiest_thread=0.02)
    assert limit == "no"
    assert "operations waited for a free connection, so the server is too slow" in reason
    limit, reason = judged(OPEN, **waiting)
    assert limit == "perhaps"
    assert "--max-clients" in reason
    none_free = {**waiting, "lateness": Lateness(0, 0.0, 0.0), "busiest_thread": 0.001}
    assert judged(OPEN, **none_free)[0] == "no"
    assert judged(OPEN, **waiting, busiest_thread=0.99)[0] == "yes"


def test_nothing_succeeded():
    changes = {"operations": 0, "latency_p99_ns": None, "service_p99_ns": None}
    for load in (CLOSED, OPEN):
        limit, reason = judged(load, **changes)
        assert (limit, "no operation succeeded" in reason) == ("perhaps", True)


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
