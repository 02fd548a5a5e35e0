"""Judge whether the load generator was the limit, or the server.

"The limit" means: with a generator that takes no time, the metric would differ by more than 5 %. The metric
is throughput in a closed loop, and the p99 latency from the intended start in an open loop. The answers "no"
and "yes" are given only if the trial's own totals support them; otherwise the answer is "perhaps". The
simulation in ``tests/calibration/test_generator_limit.py`` chose the thresholds and shows how often the
verdict is wrong.

A closed loop
    A connection alternates between server and generator. If answers arrive at random times, a thread that is
    busy for a fraction `u` of the time holds ``u / (1 - u)`` of its `n` connections (M/M/1). Without that
    thread's work they would run faster by at most ``f / (1 - f)``, ``f = min(u, u / (1 - u) / n)``: the
    bound. It is exact for one connection. It is not a bound if answers arrive in batches, as those of group
    commits do; therefore "no" also requires a small `u`. A thread that is always busy is a limit in any case.
An open loop
    Lateness, measured on operations that found a free connection, is what the generator did to their start.
    What it did to the reading of answers cannot be seen, but is about as much. If operations waited for a
    free connection, the loop behaves like a closed loop, and near its capacity a little lost time costs much
    latency.
New connections
    With a connection for each operation, a thread opens two at once, and the other clients wait for their
    turn. The fraction of the clients' time that they waited bounds the gain of more threads.
One machine
    A generator on the server's machine takes processor time from the server. If all processors were busy, the
    generator's share of them is its share of the limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uncork.model.units import format_duration

MATTERS = 0.05
"""The generator mattered if the metric differs by at least this relative amount."""

SATURATED = 0.98
"""Processor time of the busiest thread over the time it could have run: above this, it was never idle."""

QUIET = 0.25
"""Below this fraction, answers that arrive in batches lose little by waiting for each other in the
generator."""

ONE_CONNECTION = 0.25
"""With a single connection the bound is exact; from this value on the verdict is "yes" instead of
"perhaps"."""

FULL, CROWDED = 0.95, 0.8
"""Fractions of the machine's processor time. `FULL`: all processors were busy. `CROWDED`: so many were busy
that programs wait at times."""

OWN_SHARE, OWN_TRACE = 0.2, 0.03
"""The generator's fraction of the processor time used by generator and server. `OWN_SHARE`: a limiting
fraction. `OWN_TRACE`: more than a trace."""

LATE, RARELY_LATE = 0.075, 0.15
"""The lateness p99 and p99.9, as fractions of the p99 latency, up to which lateness does not matter."""

VERY_LATE = 0.3
"""The lateness p99, as a fraction of the p99 latency, from which on it matters in any case."""

FREE = 0.98
"""If at least this fraction of operations found a free connection, the rest does not affect the p99."""

IDLE, NO_LEVER = 0.05, 0.02
"""Near the capacity, the generator does not matter if the busiest thread is below `IDLE` and the bound times
the wait for connections is below `NO_LEVER`."""

AT_WORK = 0.7
"""If the busiest thread worked at least this fraction of the time, its own work is named as the cause of
lateness."""

OPENED_AT_ONCE = 2
"""How many connections each thread of the generator opens at once while a load runs."""

STEAL = 0.02
"""If the hypervisor took at least this fraction of the machine's processor time, it is named as a cause."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """Actual minus intended start of the `count` operations that found a free connection, in nanoseconds."""

    count: int
    p99_ns: float
    p999_ns: float


@dataclass(frozen=True, slots=True)
class GeneratorLoad:
    """The totals of a load that describe its generator. Times are in nanoseconds.

    `clients` is the maximum number of open connections, `threads` the number of started threads, `cpus` the
    number of processors of the generator's machine. `busiest_thread` is processor time over elapsed time, 0
    to 1. `generator_ns` and `server_ns` are processor times. `server_ns` is None if the server's processes
    cannot be read from here; `local` says whether the server ran on this machine even so. `steal_ns` is that
    of the whole machine. `operations` counts successes. Latency counts from the intended start, service time
    from the actual start; both are None if nothing succeeded. `lateness` is None in a closed loop.
    `opening_wait_ns` adds up how long clients waited until the generator began to open their connection.
    """

    clients: int
    threads: int
    cpus: int
    elapsed_ns: int
    busiest_thread: float
    generator_ns: int
    server_ns: int | None
    local: bool
    steal_ns: int
    operations: int
    latency_p99_ns: float | None
    service_p99_ns: float | None
    lateness: Lateness | None = None
    opening_wait_ns: int = 0

    @property
    def stolen(self) -> float:
        """Return the fraction of the machine's processor time that its hypervisor gave to others."""
        return self.steal_ns / (self.cpus * self.elapsed_ns)

    @property
    def busy(self) -> float:
        """Return the busiest thread's processor time over the time that was available to it, 0 to 1."""
        return min(1.0, self.busiest_thread / max(1e-9, 1.0 - self.stolen))

    @property
    def bound(self) -> float:
        """Return how much faster connections would run without the generator, at most; see the module."""
        busy = min(self.busy, 1.0 - 1e-9)
        part = min(busy, busy / (1.0 - busy) * min(self.threads, self.clients) / self.clients)
        return part / (1.0 - part)

    @property
    def queued(self) -> float:
        """Return the fraction of the clients' time that they waited for others' connections to open."""
        return min(1.0, self.opening_wait_ns / (self.clients * self.elapsed_ns))

    @property
    def crowd(self) -> float:
        """Return the fraction of this machine's processor time used by generator, server and steal.

        The result is 0 if unknown.
        """
        if self.server_ns is None:
            return 0.0
        return (self.generator_ns + self.server_ns + self.steal_ns) / (self.cpus * self.elapsed_ns)

    @property
    def share(self) -> float:
        """Return the generator's fraction of the processor time of generator and server; 0 if unknown."""
        used = self.generator_ns + (self.server_ns or 0)
        return self.generator_ns / used if self.server_ns is not None and used else 0.0


@dataclass(frozen=True, slots=True)
class GeneratorVerdict:
    """Whether the generator was the limit, and a sentence that gives the reason and the remedy."""

    limit: Literal["no", "perhaps", "yes"]
    reason: str


def generator_verdict(load: GeneratorLoad) -> GeneratorVerdict:
    """Judge a load by its totals.

    Raises:
        ValueError: `clients`, `threads`, `cpus` or `elapsed_ns` is not positive.
    """
    if min(load.clients, load.threads, load.cpus, load.elapsed_ns) < 1:
        message = "clients, threads, cpus and elapsed_ns of a load must be positive"
        raise ValueError(message)
    if load.operations == 0 or load.latency_p99_ns is None or load.service_p99_ns is None:
        return GeneratorVerdict(
            "perhaps", "It is unknown whether the generator was the limit, because no operation succeeded."
        )
    if load.lateness is None:
        return _closed(load)
    return _open(load, load.lateness, load.latency_p99_ns, load.service_p99_ns)


def _closed(load: GeneratorLoad) -> GeneratorVerdict:
    if load.busy >= SATURATED:
        return _yes(f"{_used(load)}, so the server might handle more; {_remedy(load)}")
    if load.clients == 1 and load.bound >= ONE_CONNECTION:
        return _yes(_one_connection(load))
    shared = _opening(load) if load.queued >= MATTERS else _one_machine(load)
    if shared is not None:
        return shared
    if load.bound < MATTERS and load.busy < QUIET:
        return _no(f"{_used(load)}, which cost {_at_most(load.bound)} of the throughput", load)
    if load.clients == 1:
        return _perhaps(_one_connection(load))
    return _perhaps(f"{_used(load)}, and answers may have waited for it; {_remedy(load)}")


def _open(load: GeneratorLoad, late: Lateness, latency_ns: float, service_ns: float) -> GeneratorVerdict:
    waited = 1.0 - service_ns / latency_ns if latency_ns else 0.0
    free = late.count >= FREE * load.operations
    very_late = late.count > 0 and late.p99_ns >= VERY_LATE * latency_ns
    if very_late or (waited > MATTERS and (free or load.busy >= SATURATED)):
        return _yes(_lateness(load, late, latency_ns))
    punctual = late.p99_ns <= LATE * latency_ns and late.p999_ns <= RARELY_LATE * latency_ns
    if waited <= MATTERS and punctual:
        return _no(f"{_used(load)}, and {_left_within(late)}", load)
    if waited <= MATTERS or free:
        return _perhaps(_lateness(load, late, latency_ns))
    opening = load.opening_wait_ns >= MATTERS * latency_ns * load.operations
    shared = _opening(load) if opening else _one_machine(load)
    if shared is not None:
        return shared
    wait = "operations waited for a free connection"
    lever = load.bound * latency_ns / service_ns if service_ns else load.bound
    if punctual and load.busy < IDLE and lever < NO_LEVER:
        left = _left_within(late) if late.count else "no operation waited for it"
        return _no(
            f"{_used(load)}, and {left}; {wait}, so the server is too slow or there are too few connections",
            load,
        )
    return _perhaps(
        f"{wait}, and because {_used(load)}, part of that wait was for the generator; run again with more "
        f"connections (--max-clients), and if that does not help, {_remedy(load)}"
    )


def _opening(load: GeneratorLoad) -> GeneratorVerdict:
    """Judge a generator whose clients waited until it had opened the connections of others."""
    threads = min(load.threads, load.clients)
    found = (
        f"it opens {OPENED_AT_ONCE * threads} connections at once ({OPENED_AT_ONCE} for each thread), and "
        f"clients waited {_percent(load.queued)} of their time for their turn"
    )
    if load.crowd >= CROWDED:
        return _perhaps(
            f"{found}; but {_percent(min(load.crowd, 1.0))} of this machine's processor time was in use by "
            "generator and server, so more would gain little; run it from another machine, with more threads "
            "(-j) there"
        )
    remedy = (
        f"run again with more threads (-j {min(2 * threads, load.clients)})"
        if threads < load.clients
        else "run again from several machines (--shard)"
    )
    return _yes(f"{found}; {remedy}")


def _one_machine(load: GeneratorLoad) -> GeneratorVerdict | None:
    """Judge a generator that took processor time from its server; None if it did not, or if unknown."""
    if load.crowd < CROWDED or load.share < OWN_TRACE:
        return None
    reason = (
        f"it ran on the server's machine, {_percent(min(load.crowd, 1.0))} of this machine's processor time "
        f"was in use, and the generator used {_percent(load.share)} of what both used, so the results "
        "describe both; run it from another machine"
    )
    return _yes(reason) if load.crowd >= FULL and load.share >= OWN_SHARE else _perhaps(reason)


def _lateness(load: GeneratorLoad, late: Lateness, latency_ns: float) -> str:
    quantile, value = ("99 %", late.p99_ns) if late.p99_ns > LATE * latency_ns else ("99.9 %", late.p999_ns)
    found = (
        f"{quantile} of requests were sent within {format_duration(value)} of their intended time, which is "
        f"long compared with a p99 latency of {format_duration(latency_ns)}; {_used(load)}"
    )
    if load.busy >= AT_WORK:
        return f"{found}; {_remedy(load)}"
    if load.stolen >= STEAL:
        return (
            f"{found}, but the hypervisor gave {_percent(load.stolen)} of this machine's processor time to "
            "others (steal); run it from a separate machine"
        )
    if load.local or load.server_ns is not None:
        return (
            f"{found}, but the server runs on this machine too, so the results describe both; "
            "run it from another machine"
        )
    return f"{found}; judge the server by the service times, which do not include the lateness"


def _one_connection(load: GeneratorLoad) -> str:
    part = load.bound / (1.0 + load.bound)
    return (
        f"a single connection waits while the generator works, which was {_percent(part)} of the time; "
        "judge the server by the latencies, or run with more clients (-c)"
    )


def _used(load: GeneratorLoad) -> str:
    return f"its busiest thread used {_percent(load.busiest_thread)} of a processor"


def _left_within(late: Lateness) -> str:
    return f"99 % of requests were sent within {format_duration(late.p99_ns)} of their intended time"


def _remedy(load: GeneratorLoad) -> str:
    threads = min(load.threads, load.clients)
    if threads < load.clients and threads < load.cpus:
        more = min(2 * threads, load.clients, load.cpus)
        return f"run again with more threads (-j {more}) or from another machine"
    return "run again from another machine with more or faster processors"


def _at_most(bound: float) -> str:
    return "less than 1 %" if bound < 0.01 else f"at most {_percent(bound)}"


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.0f} %" if ratio >= 0.01 or ratio <= 0 else f"{ratio * 100:.1f} %"


def _no(reason: str, load: GeneratorLoad) -> GeneratorVerdict:
    unknown = (
        "; the server also runs on this machine, but its processor time is unknown"
        if load.local and load.server_ns is None
        else ""
    )
    return GeneratorVerdict("no", f"The generator was not the limit: {reason}{unknown}.")


def _perhaps(reason: str) -> GeneratorVerdict:
    return GeneratorVerdict("perhaps", f"The generator may have been the limit: {reason}.")


def _yes(reason: str) -> GeneratorVerdict:
    return GeneratorVerdict("yes", f"The generator was the limit: {reason}.")
