"""What reading a database of 5 GB for a copy costs the load on its server.

``python bench/database/large_source.py`` fills an embedded server with pgbench's tables and a table with
TOAST data and further indexes, about 5 GB in total. Then it sends pgbench's transactions all the time, and
reads the rows as `uncork cure` does, by COPY at a bounded rate. The reading is switched on and off eight
times a second, and the load with it is compared with the load without it, as `uncork observe-cost` does
(`stats.ab_switching`). The rows are thrown away, so that only the source pays.

At last, it makes one whole copy without a load: the source's own counters tell how many blocks of its tables
were read, and its log (log_statement = all) every statement that reached it.

``[--gigabytes 5] [--rates 100,50,20] [--seconds 120] [--clients 2] [--no-copy]``
"""

from __future__ import annotations

import argparse
import re
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import psycopg

from uncork.engines.conninfo import resolve
from uncork.engines.copying.database import copy_source
from uncork.engines.copying.rows import Pace, _blocks
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.tpcb import initialise
from uncork.load.builtin import find
from uncork.model.load import LoadScript, LoadSpec
from uncork.model.server import Target
from uncork.workbench.overhead.switched import Steady, judge_switched, switch_under_load

MILLION = 1_000_000
_SCALE_BYTES = 15 * MILLION
"""Bytes of pgbench's tables and their indexes for each unit of scale."""
_NOTE_BYTES = 3000
"""Bytes of a note as it is stored: random, so that compression does not help. Larger values go to TOAST."""
_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "autovacuum": "off"}
_SENT = re.compile(r"(?:statement|execute [^:]*): +(?:/\*.*?\*/ *)?(\w+)(?:[^\n]*?(TO STDOUT|FROM STDIN))?")


class Reading:
    """Reads all tables of a database again and again while it is on, at a bounded rate."""

    def __init__(self, conninfo: str, tables: list[str], rate: float) -> None:
        self._source = psycopg.connect(conninfo, autocommit=True)
        self._tables, self._pace = tables, Pace(rate)
        self._on, self._ended = threading.Event(), False
        self.bytes, self.on_ns, self._since = 0, 0, 0
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def switch(self, on: bool) -> None:
        """Turn the reading on or off."""
        now = time.monotonic_ns()
        if self._on.is_set():
            self.on_ns += now - self._since
        self._since = now
        (self._on.set if on else self._on.clear)()

    def close(self) -> None:
        """End the reading."""
        self._ended = True
        self._on.set()
        self._thread.join()
        self._source.close()

    def _work(self) -> None:
        while True:
            for table in self._tables:
                query = f"COPY {table} TO STDOUT (FORMAT binary)"
                with closing(_blocks(self._source, query)) as blocks:
                    for block in blocks:
                        self.bytes += len(block)
                        if (pause := self._pace.wait(len(block), time.monotonic())) > 0:
                            time.sleep(pause)
                        self._on.wait()
                        if self._ended:
                            return


def fill(conninfo: str, gigabytes: float) -> None:
    """Make a database of so many gigabytes: three quarters pgbench's tables, one quarter notes."""
    size = gigabytes * 1000 * MILLION
    initialise(conninfo, scale=max(1, round(0.75 * size / _SCALE_BYTES)))
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE note (id bigint PRIMARY KEY, customer int, made timestamptz, body bytea)"
        )
        rows = round(0.25 * size / _NOTE_BYTES)
        note = (
            "(SELECT decode(string_agg(md5(random()::text || g), ''), 'hex') FROM generate_series(1, %s) AS g"
        )
        connection.execute(
            f"INSERT INTO note SELECT n, n %% 5000, now() - n * interval '1 s', {note} WHERE n > 0) "  # noqa: S608
            "FROM generate_series(1, %s) AS n",
            (_NOTE_BYTES // 16, rows),
        )
        connection.execute("CREATE INDEX ON note (customer, made)")
        connection.execute("VACUUM ANALYZE")


def measure(server: EmbeddedServer, rate: float, seconds: float, clients: int) -> str:
    """Return a row of a table: what reading at a rate costs the load."""
    conninfo = server.conninfo()
    address = resolve(conninfo)
    target = Target(address.database, asdict(address), server.pid)
    with psycopg.connect(conninfo) as connection:
        scale = connection.execute("SELECT count(*) FROM pgbench_branches").fetchone()[0]
    script = LoadScript("tpcb-like", 1, find("tpcb-like").text)
    spec = LoadSpec(
        scripts=(script,),
        clients=clients,
        protocol="prepared",
        variables={"scale": str(scale)},
        seed=1,
        duration_ns=20 * 10**9,
    )
    reading = Reading(conninfo, ["pgbench_accounts", "note"], rate)
    try:
        slices, _ = switch_under_load(Steady(spec, target), {"copy": reading}, seconds, 1, lambda _: None)
    finally:
        reading.close()
    found = judge_switched(slices, "copy", 0.95, 0.99)
    done = sum(one.operations for one in slices) / (sum(one.length_ns for one in slices) / 1e9)
    read = reading.bytes / max(1, reading.on_ns) * 1e9 / MILLION

    def shown(one: object) -> str:
        low, high = getattr(one, "low", None), getattr(one, "high", None)
        return "unknown" if low is None else f"{low - 1:+.1%} to {high - 1:+.1%}"

    cells = (f"{rate / MILLION:.0f}", f"{read:.0f}", f"{done:.0f}", f"{found.quadruples if found else 0}")
    effects = (
        shown(found and found.adjusted),
        shown(found and found.plain),
        shown(found and found.processor),
    )
    others = f"{found.others:.2f}" if found else ""
    return f"| {' | '.join((*cells, *effects, others))} |"


def copy_once(server: EmbeddedServer) -> None:
    """Copy the database, and print what the source counted and logged."""
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE reader SUPERUSER LOGIN")
        connection.execute("ALTER ROLE reader SET log_statement = 'all'")
    with tempfile.TemporaryDirectory() as folder:
        server.take_log(Path(folder) / "before.log")
        before = blocks(server)
        target = EmbeddedServer(_SETTINGS)
        target.start()
        try:
            begun = time.monotonic()
            place = f"{server.conninfo()} user=reader"
            facts = copy_source(place, target.conninfo("copy"), disk=10**12, told=lambda _: None)
            seconds = time.monotonic() - begun
        finally:
            target.stop()
        time.sleep(2)  # sessions report their counters within a second
        after = blocks(server)
        server.take_log(Path(folder) / "copy.log")
        sent = Counter(
            " ".join(filter(None, one)) for one in _SENT.findall((Path(folder) / "copy.log").read_text())
        )
    print(f"one copy: {facts.bytes / MILLION:.0f} MB of rows in {seconds:.0f} s, sampled: {facts.sampled}")
    for name, (pages, reads) in after.items():
        print(f"{name}: {pages} blocks, {reads - before[name][1]} reads of blocks by the copy")
    print(f"statements that reached the source: {dict(sent)}")


def blocks(server: EmbeddedServer) -> dict[str, tuple[int, int]]:
    """Return each large table's blocks, and how many were read so far, from shared buffers or not.

    A value in TOAST is read by its chunks, of which several are in one block.
    """
    query = (
        "SELECT c.relname, c.relpages, coalesce(s.heap_blks_read + s.heap_blks_hit, 0)::bigint "
        "FROM pg_class c JOIN pg_statio_all_tables s ON s.relid = c.oid "
        "WHERE c.relkind IN ('r', 't') AND c.relpages > 100 AND c.oid >= 16384"
    )
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        return {name: (pages, reads) for name, pages, reads in connection.execute(query).fetchall()}


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--rates", default="100,50,20", help="megabytes per second")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the load, for each rate")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--no-copy", dest="copy", action="store_false")
    given = parser.parse_args()
    server = EmbeddedServer(_SETTINGS)
    server.start()
    try:
        begun = time.monotonic()
        fill(server.conninfo(), given.gigabytes)
        with psycopg.connect(server.conninfo()) as connection:
            size = connection.execute("SELECT pg_database_size(current_database())").fetchone()[0]
        print(f"{size / MILLION:.0f} MB, filled in {time.monotonic() - begun:.0f} s", flush=True)
        print(
            "| at most MB/s | read MB/s | transactions/s | quadruples | throughput | as counted | CPU/op | "
            "others' CPUs |"
        )
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for rate in given.rates.split(","):
            print(measure(server, float(rate) * MILLION, given.seconds, given.clients), flush=True)
        if given.copy:
            copy_once(server)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
