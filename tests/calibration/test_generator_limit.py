"""How often the verdict on the generator errs, over loads whose truth a simulation knows.

The truth is "the limit" if throughput (closed loop) or the p99 latency (open loop) differs by more than 5 %
with a generator that takes no time. A false "yes" blames a generator that did not matter; a missed one
acquits a generator that did. "perhaps" is neither, and is counted beside them. The shares depend on the mix
of loads, which is drawn wide: servers that are saturated, idle, remote or on the same machine; 1 to 200
clients; threads that use from a hundredth of a processor to all of it.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from simulated_load import IDEAL, Generator, Seen, Server, simulate
from simulation import at_most

from uncork.stats.load.generator import MATTERS, GeneratorLoad, Lateness, generator_verdict

SERVERS = ("processors", "delay", "network", "batches", "same machine")
PROCESSORS = (1, 2, 4, 8, 16)
PAUSES = (0.0, 0.3, 2.0)  # a second; up to 1.1 % of the time

FALSE_YES, MISSED_YES = 0.03, 0.06
GREATEST_MISSED = 0.3
DECIDED = 0.2
"""At least this part of either truth is called by its name, not "perhaps"."""


def _part(busy):
    """Name the part of a processor that the busiest thread used."""
    for below in (0.1, 0.25, 0.5, 0.75, 0.9):
        if busy < below:
            return f"thread below {below:.0%}"
    return "thread from 90%"


def _server(g, kind):
    service, spread = 10 ** g.uniform(-4.5, -2), g.uniform(0.3, 1.2)
    processors = int(g.choice(PROCESSORS))
    if kind == "delay":
        return Server(None, service, spread)
    if kind == "network":
        return Server(processors, service, spread, network=service * g.uniform(0.4, 6))
    if kind == "batches":
        return Server(None, service, spread, flush=service * g.uniform(1, 3))
    return Server(max(processors, 2), service, spread, shared=kind == "same machine")


def _capacity(server, clients):
    """Requests a second that the server can take from so many connections."""
    alone = clients / (server.service + server.network + server.flush / 2)
    return alone if server.processors is None else min(alone, server.processors / server.service)


def _generator(g, server, clients, cost, **more):
    """A generator with a cost a request of `cost` seconds times its threads."""
    threads = min(int(g.choice((1, 1, 1, 2, 4))), clients, server.processors if server.shared else clients)
    return Generator(
        threads=threads,
        cost=cost * threads,
        jitter=g.uniform(0.2, 0.8),
        pauses=0.0 if server.shared else float(g.choice(PAUSES)),  # there they come of the competition
        stolen=bool(g.random() < 0.5),
        **more,
    )


def _judge(seen: Seen, generator: Generator, server: Server, clients: int, *, open_loop: bool):
    elapsed_ns = round(seen.elapsed * 1e9)
    late = np.quantile(seen.lateness, (0.99, 0.999)) * 1e9 if len(seen.lateness) else (0.0, 0.0)
    load = GeneratorLoad(
        clients=clients, threads=generator.threads,
        cpus=server.processors if server.shared else generator.threads, elapsed_ns=elapsed_ns,
        busiest_thread=min(seen.busiest, 1.0), generator_ns=round(seen.generator * 1e9),
        server_ns=round(seen.server * 1e9) if server.shared else None, local=server.shared,
        steal_ns=round(seen.stolen * 1e9), operations=len(seen.latency),
        latency_p99_ns=float(np.quantile(seen.latency, 0.99)) * 1e9,
        service_p99_ns=float(np.quantile(seen.service, 0.99)) * 1e9,
        lateness=Lateness(len(seen.lateness), *late) if open_loop else None,
    )  # fmt: skip
    return load, generator_verdict(load)


def _closed(seed, kind):
    """Return the gain by a generator that takes no time, and the verdict on this one."""
    g = np.random.default_rng(seed)
    clients = int(g.choice((1, 2, 4, 8, 16, 32, 64, 128, 200)))
    server = _server(g, kind)
    # Relative to the server's capacity: a twentieth (the server limits) to three (the generator limits).
    cost = 10 ** g.uniform(-1.3, 0.5) / _capacity(server, clients)
    generator = _generator(g, server, clients, cost)
    seen, ideal = (
        simulate(seed, one, server, clients=clients, requests=max(1000, 8 * clients))
        for one in (generator, replace(IDEAL, threads=generator.threads))
    )
    gain = ideal.throughput / seen.throughput - 1
    return gain, *_judge(seen, generator, server, clients, open_loop=False)


def _open(seed, kind):
    g = np.random.default_rng(seed)
    clients = int(g.choice((1, 4, 8, 16, 32, 64, 128, 200)))
    server = _server(g, kind)
    load = g.uniform(0.05, 0.95)
    rate = load * _capacity(server, clients)
    utilisation = g.uniform(0.02, 1.0)
    if server.shared:  # what the server leaves of the processors
        utilisation *= 1 - load
    wake = 10 ** g.uniform(-5.3, -4)
    generator = _generator(g, server, clients, utilisation / rate, wake=wake)
    seen, ideal = (
        simulate(seed, one, server, clients=clients, requests=1500, rate=rate)
        for one in (generator, replace(IDEAL, threads=generator.threads))
    )
    gain = np.quantile(seen.latency, 0.99) / np.quantile(ideal.latency, 0.99) - 1
    return gain, *_judge(seen, generator, server, clients, open_loop=True)


@pytest.mark.parametrize(("name", "simulated"), [("closed", _closed), ("open", _open)])
def test_how_often_the_verdict_on_the_generator_errs(name, simulated, runs, generator, figure):
    seed, number = int(generator.integers(2**32)), runs // 40
    counts, missed = Counter(), [0.0]
    for index in range(number):
        kind = SERVERS[index % len(SERVERS)]
        gain, load, verdict = simulated([seed, index], kind)
        truth = "mattered" if gain > MATTERS else "did not matter"
        for group in ("", f", {_part(load.busiest_thread)}"):
            counts[truth, verdict.limit, group] += 1
            counts[truth, group] += 1
        if truth == "mattered" and verdict.limit == "no":
            missed.append(gain)

    def share(truth, limit, group=""):
        return counts[truth, limit, group] / max(counts[truth, group], 1)

    for truth, limit, group in sorted(key for key in counts if len(key) == 3):
        figure(f'generator: {name} loop, {truth}{group}: "{limit}"', share(truth, limit, group))
    figure(f'generator: {name} loop, greatest difference called "no"', max(missed))
    assert share("did not matter", "yes") <= at_most(FALSE_YES, counts["did not matter", ""])
    assert share("mattered", "no") <= at_most(MISSED_YES, counts["mattered", ""])
    assert max(missed) < GREATEST_MISSED
    assert share("did not matter", "no") > DECIDED
    assert share("mattered", "yes") > DECIDED
