"""What texts of sampled statements cost. A watch keeps up to 12 of each statement, and asks 24 times at most.

``python bench/database/sampled_texts.py`` starts a server with busy sessions, whose statements are as long as
the server shows them, with other values each time. It takes samples with and without texts in turn, in random
order, and prints the processor time of uncork and of the server's process for each, with the standard error.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from contextlib import closing
from statistics import mean, stdev

import psycopg

from uncork.engines.embedded import EmbeddedServer
from uncork.engines.watch.connection import ServerWatch
from uncork.workbench.overhead.observers import process_cpu_ns
from uncork.workbench.profile.database_watch import Samples

LENGTH = 1000
"""The bytes of a statement; the server shows 1023."""
GROUP = 10
"""Samples that are measured together: one takes less than a clock can tell."""


def work(conninfo: str, statement: int, over: threading.Event) -> None:
    """Execute a statement again and again that mostly sleeps, each time with another value."""
    chance = random.Random(statement)
    with psycopg.connect(conninfo, autocommit=True, application_name="work") as connection:
        while not over.is_set():
            value = chance.randbytes(LENGTH).hex()
            text = f"SELECT pg_sleep(0.02) AS c{statement}, '{value}'"
            connection.execute(text[: LENGTH - 1].encode() + b"'")


def sample(watch: ServerWatch, *, texts: bool) -> tuple[int, int]:
    """Take samples; return the processor time of this thread and of the server's process for one of them."""
    found = Samples(time.monotonic_ns(), time.time_ns() // 1000)
    known: set[int] = set()
    if not texts:
        look = watch.look((), blockers=False)
        known = (
            set() if look is None else {row["query_id"] for row in look.rows if row["query_id"] is not None}
        )
    server, own = process_cpu_ns(watch.pid) or 0, time.thread_time_ns()
    for _ in range(GROUP):
        look = watch.look(known, blockers=False)
        if look is not None:
            found.add(look, blockers=False)
    return (time.thread_time_ns() - own) // GROUP, ((process_cpu_ns(watch.pid) or 0) - server) // GROUP


def main() -> None:
    """Measure with as many sessions as asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--groups", type=int, default=100)
    given = parser.parse_args()
    settings = {"shared_preload_libraries": "pg_stat_statements", "fsync": "off"}
    server = EmbeddedServer(settings)
    server.start()
    over = threading.Event()
    threads = [
        threading.Thread(target=work, args=(server.conninfo(), number, over))
        for number in range(given.sessions)
    ]
    try:
        for one in threads:
            one.start()
        time.sleep(1)
        with closing(ServerWatch(server.conninfo())) as watch:
            watch.begin_sampling()
            figures: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
            for _ in range(given.groups):
                for texts in random.sample([True, False], 2):
                    figures[texts].append(sample(watch, texts=texts))
    finally:
        over.set()
        for one in threads:
            one.join()
        server.stop()
    for place, whose in enumerate(("uncork", "the server")):
        differences = [
            some[place] - none[place] for some, none in zip(figures[True], figures[False], strict=True)
        ]
        error = stdev(differences) / len(differences) ** 0.5
        plain = mean(one[place] for one in figures[False])
        print(
            f"{whose}: {plain / 1e3:.0f} µs for a sample of {given.sessions} sessions, and "
            f"{mean(differences) / 1e3:.1f} ± {error / 1e3:.1f} µs for their texts"
        )


if __name__ == "__main__":
    main()
