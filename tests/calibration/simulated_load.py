"""A load whose truth is known: a generator of some speed in front of a server of some capacity.

Each thread of the generator is a queue: a job there (to send a request, to read an answer) costs processor
time with jitter. A thread is now and then not run for some milliseconds, as on a shared machine, and one that
sleeps until an arrival wakes late. The server is a queue before some processors, or before none (it only
delays, as a network or a lock does), and may answer in batches, as commits in groups are. Both may share the
processors.

The same seed with `IDEAL`, a generator that takes no time, gives the truth: what the server alone would do.
"""

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Generator:
    """Times in seconds. `cost` is the mean processor time a request, half to send it, half to read."""

    threads: int = 1
    cost: float = 5e-6
    jitter: float = 0.3  # coefficient of variation of a job's cost
    wake: float = 0.0  # mean lateness of a sleeping thread's timer
    pauses: float = 0.0  # a second and thread; each lasts 1 to 10 ms
    stolen: bool = False  # whether the pauses are steal, which the machine knows of


IDEAL = Generator(cost=0.0)


@dataclass(frozen=True)
class Server:
    """Times in seconds. `processors` None: any number of requests at once."""

    processors: int | None
    service: float
    spread: float = 0.5  # standard deviation of the log of the service time
    network: float = 0.0  # there and back
    flush: float = 0.0  # answers leave at multiples of this
    shared: bool = False  # the generator's threads run on the same processors


@dataclass(frozen=True)
class Seen:
    """What the generator saw, in seconds: `latency` from the intended start, `service` from the real one."""

    elapsed: float
    busiest: float
    generator: float
    server: float
    stolen: float
    latency: np.ndarray
    service: np.ndarray
    lateness: np.ndarray

    @property
    def throughput(self) -> float:
        return len(self.latency) / self.elapsed


@dataclass(frozen=True)
class Job:
    """A thread's next piece of work: to send a client's request, or to read its answer."""

    client: int
    send: bool
    intended: float | None = None
    found_free: bool = False


def simulate(
    seed: list[int],
    generator: Generator,
    server: Server,
    *,
    clients: int,
    requests: int,
    rate: float | None = None,
) -> Seen:
    """Run a closed loop, or with a rate an open one of Poisson arrivals, until `requests` are answered.

    Service times and arrivals depend on the seed alone, not on the generator.
    """
    return _Load(seed, generator, server, clients, requests, rate).run()


class _Load:
    """The state of one simulation. An event is a time, and what happens then to which client or thread."""

    def __init__(
        self,
        seed: list[int],
        generator: Generator,
        server: Server,
        clients: int,
        requests: int,
        rate: float | None,
    ) -> None:
        self.generator, self.server, self.clients, self.requests = generator, server, clients, requests
        world, own = np.random.default_rng([*seed, 0]), np.random.default_rng([*seed, 1])
        count, threads = requests + clients + 1, generator.threads
        logs = server.spread * world.standard_normal(count) - server.spread**2 / 2
        self.services = iter((server.service * np.exp(logs)).tolist())
        self.arrivals = np.cumsum(world.exponential(1 / rate, count)).tolist() if rate else []
        shape = generator.jitter**-2
        self.costs = iter(own.gamma(shape, generator.cost / 2 / shape, 2 * count).tolist())
        self.wakes = iter((generator.wake * own.exponential(size=count)).tolist())
        self.pauses = [_pauses(own, generator.pauses) for _ in range(threads)]
        self.stolen = 0.0
        # A generator that takes no time needs no processor either.
        self.shared = server.shared and generator.cost > 0

        self.events: list[tuple[float, int, Callable[[float, int], None], int]] = []
        self.number = itertools.count()
        self.jobs: list[deque[Job]] = [deque() for _ in range(threads)]
        self.used, self.served = [0.0] * threads, 0.0
        self.processors = math.inf if server.processors is None else server.processors
        self.waiting: deque[tuple[Callable[[float, int], None], int]] = deque()
        self.idle = [list(range(thread, clients, threads)) for thread in range(threads)]
        self.backlog: list[deque[float]] = [deque() for _ in range(threads)]
        self.coming = list(range(threads))
        self.started, self.intended = [0.0] * clients, [0.0] * clients
        self.latency: list[float] = []
        self.service: list[float] = []
        self.lateness: list[float] = []

    def run(self) -> Seen:
        now = 0.0
        if self.arrivals:
            for thread, first in enumerate(self.coming):
                self.at(self.arrivals[first], self.arrive, thread)
        else:
            for client in range(self.clients):
                self.give(now, Job(client, send=True))
        while len(self.latency) < self.requests:
            now, _, act, who = heapq.heappop(self.events)
            act(now, who)
        return Seen(
            elapsed=now, busiest=max(self.used) / now, generator=sum(self.used), server=self.served,
            stolen=self.stolen if self.generator.stolen else 0.0, latency=np.array(self.latency),
            service=np.array(self.service), lateness=np.array(self.lateness),
        )  # fmt: skip

    def at(self, time: float, act: Callable[[float, int], None], who: int) -> None:
        heapq.heappush(self.events, (time, next(self.number), act, who))

    # Processors, first come first served; the generator asks for them only where they are shared.

    def ask(self, now: float, begin: Callable[[float, int], None], who: int) -> None:
        if self.processors > 0:
            self.processors -= 1
            begin(now, who)
        else:
            self.waiting.append((begin, who))

    def release(self, now: float) -> None:
        self.processors += 1
        if self.waiting:
            self.ask(now, *self.waiting.popleft())

    # The generator.

    def arrive(self, now: float, thread: int) -> None:
        """A request is due; a thread that sleeps notices late."""
        intended = self.arrivals[self.coming[thread]]
        if now == intended and not self.jobs[thread] and self.generator.wake:
            self.at(now + next(self.wakes), self.arrive, thread)
            return
        if self.idle[thread]:
            self.give(now, Job(self.idle[thread].pop(), send=True, intended=intended, found_free=True))
        else:
            self.backlog[thread].append(intended)
        self.coming[thread] += self.generator.threads
        if self.coming[thread] < len(self.arrivals):
            self.at(max(now, self.arrivals[self.coming[thread]]), self.arrive, thread)

    def give(self, now: float, job: Job) -> None:
        thread = job.client % self.generator.threads
        self.jobs[thread].append(job)
        if len(self.jobs[thread]) == 1:
            self.next_job(now, thread)

    def next_job(self, now: float, thread: int) -> None:
        if self.shared:
            self.ask(now, self.work, thread)
        else:
            self.work(now, thread)

    def work(self, now: float, thread: int) -> None:
        begin = self.pause(now, thread)
        job, cost = self.jobs[thread][0], next(self.costs)
        self.used[thread] += cost
        if not job.send:
            self.service.append(begin - self.started[job.client])
            self.latency.append(begin - self.intended[job.client])
        else:
            self.started[job.client] = begin
            self.intended[job.client] = begin if job.intended is None else job.intended
            if job.found_free:
                self.lateness.append(begin - self.intended[job.client])
        self.at(self.pause(begin + cost, thread), self.worked, thread)

    def pause(self, now: float, thread: int) -> float:
        """Return when a thread that wants to go on may do so."""
        pauses = self.pauses[thread]
        while pauses[-1][0] <= now:
            start, length = pauses.pop()
            now = max(now, start + length)
            self.stolen += length
        return now

    def worked(self, now: float, thread: int) -> None:
        if self.shared:
            self.release(now)
        job = self.jobs[thread][0]
        if job.send:
            self.ask(now, self.serve, job.client)
        elif not self.arrivals:
            self.jobs[thread].append(Job(job.client, send=True))
        elif self.backlog[thread]:
            self.jobs[thread].append(Job(job.client, send=True, intended=self.backlog[thread].popleft()))
        else:
            self.idle[thread].append(job.client)
        self.jobs[thread].popleft()
        if self.jobs[thread]:
            self.next_job(now, thread)

    # The server.

    def serve(self, now: float, client: int) -> None:
        service = next(self.services)
        self.served += service
        self.at(now + service, self.leave, client)

    def leave(self, now: float, client: int) -> None:
        self.release(now)
        flush = self.server.flush
        answered = math.ceil(now / flush) * flush if flush else now
        self.at(answered + self.server.network, self.answer, client)

    def answer(self, now: float, client: int) -> None:
        self.give(now, Job(client, send=False))


def _pauses(own: np.random.Generator, rate: float) -> list[tuple[float, float]]:
    """Return starts and lengths, the last first; beyond the last there are none."""
    if not rate:
        return [(math.inf, 0.0)]
    lengths = own.uniform(1e-3, 10e-3, 3000)
    starts = np.cumsum(own.exponential(1 / rate, 3000)) + np.cumsum(lengths) - lengths
    return [(math.inf, 0.0), *zip(starts[::-1].tolist(), lengths[::-1].tolist(), strict=True)]
