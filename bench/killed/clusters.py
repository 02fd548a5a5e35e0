"""Loads from the nodes of a Ray cluster on this machine: exactness, starts, wrong clocks, losses, traffic.

    python -m bench.killed.clusters starts --rounds 20

Needs Ray (`make engines`) and nginx. Kinds of rounds:

- ``same``: four nodes with one thread each send the requests of one process with four threads, with the same
  values of variables;
- ``starts``: loads of four nodes, two of which have clocks that are wrong by 250 ms; shows how far the starts
  lie apart, and that each percentile is the percentile of one histogram of all parts, also as the package
  ``hdrhistogram`` computes it where that is installed;
- ``kill``: at a random moment, in turn an agent or a raylet is killed (SIGKILL), a raylet is suspended
  (SIGSTOP), or the coordinator is killed. When is that noticed, when does the load end, do accounts close?
- ``traffic``: what crosses the loopback interface while nodes load a server over a Unix socket;
- ``slow``: in turn, all parts have their processors, or one gets 20 % of a processor (stopped for 80 of each
  100 ms), in an open loop and in a closed loop. Is that one named as the one that disagrees, and no other?
- ``p99``: two parts in turn from nodes and, twice, by ``--shard``.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
import random
import signal
import statistics
import struct
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from fakes.http_servers import Nginx, nginx
from fakes.ray_cluster import RayCluster, ray_cluster
from uncork.engines.embedded import EmbeddedServer
from uncork.load.merging import MeasuredPart, merged_measurement
from uncork.model.load import LoadMeasurement
from uncork.spawn.reaper import processes
from uncork.stats.student import student_reach
from uncork.store.loads import LoadReader
from uncork.store.parts import merged_parts

NODES: Final = 4
RATE: Final = 400
SHIFTS_MS: Final = (-250, 0, 0, 250)
VICTIMS: Final = ("agent", "raylet", "frozen raylet", "coordinator")
_SHIFTED: Final = """
import os, time
shift, real_ns, real = int(os.environ.get("CLOCK_ERROR_NS", "0")), time.time_ns, time.time
time.time_ns, time.time = lambda: real_ns() + shift, lambda: real() + shift / 1e9
"""
"""A module that Python imports at its start: the machine's wall clock is wrong."""


def words(*more: object) -> list[str]:
    """Return the command of a load."""
    return [sys.executable, "-m", "uncork", "load", *map(str, more), "--json"]


def on(cluster: RayCluster, nodes: int = NODES) -> list[str]:
    """Return the options for nodes of a cluster."""
    return ["--nodes", str(nodes), "--cluster", cluster.address, "--yes"]


def run(command: list[str], cluster: RayCluster) -> dict[str, Any]:
    """Run a command, and return the JSON that it prints."""
    done = subprocess.run(command, env=cluster.environment, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        raise SystemExit(f"{command}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def url(server: Nginx, path: str = "/small.txt") -> str:
    """Return an address of the server."""
    return f"http://127.0.0.1:{server.ports['plain']}{path}"


def newest(runs: Path) -> Path:
    """Return the run that was stored last."""
    return max(runs.iterdir(), key=lambda path: path.stat().st_mtime)


# ---- rounds ----


def same(folder: Path, rounds: int, _: random.Random) -> Iterator[str]:
    """Compare the requests of nodes with those of one process."""
    with nginx(folder) as server, ray_cluster([{}] * NODES) as cluster:
        for number in range(rounds):
            load = ["http", *f"-c 8 -R {RATE} --arrivals poisson -D 3 --runs".split(), folder / "runs"]
            load += ["--random-seed", number, "--var", "id=1..1000000000", url(server, "/small.txt?{id}")]
            seen = []
            for command in (words(*load, "-t", NODES), words(*load, "-t", 1, *on(cluster))):
                before = len(server.requests())
                run(command, cluster)
                seen.append(Counter(server.requests()[before:]))
            alike = sum((seen[0] & seen[1]).values())
            yield f"{alike} of {seen[0].total()} and {seen[1].total()} requests are the same"


def starts(folder: Path, rounds: int, _: random.Random) -> Iterator[str]:
    """Start loads on nodes with wrong clocks."""
    (folder / "shifted").mkdir()
    (folder / "shifted" / "sitecustomize.py").write_text(_SHIFTED)
    path = f"{folder / 'shifted'}:{os.environ.get('PYTHONPATH', '')}"
    clocks = [{"CLOCK_ERROR_NS": str(shift * 10**6), "PYTHONPATH": path} for shift in SHIFTS_MS]
    apart, bounds = [], []
    with nginx(folder) as server, ray_cluster(clocks) as cluster:
        for _number in range(rounds):
            load = ["http", "-c", "8", "-R", RATE, "-D", "1", "--runs", folder / "runs", url(server)]
            found = run(words(*load, *on(cluster)), cluster)
            run_folder, began, measured = newest(folder / "runs"), [], []
            for number, place in merged_parts(run_folder):
                with closing(LoadReader(place)) as reader:
                    facts, one = reader.manifest.options["part"], reader.measurement()
                offset = found["parts"]["parts"][number - 1]["clock_offset_ns"]
                # This machine's clock is right: the error that was injected is known.
                true = round(offset / 250e6) * 250_000_000
                began.append(facts["start_at_ns"] + (one.totals.start_late_ns or 0) - true)
                measured.append(MeasuredPart(number, one))
            apart.append((max(began) - min(began)) / 1e6)
            bounds += [part["clock_bound_ns"] / 1e6 for part in found["parts"]["parts"]]
            whole = {row.kind: row for row in merged_measurement(measured).times if row.kind == "operation"}
            alike = whole["operation"].p99_ns == found["operation"]["p99_ns"]
            others = _of_package([one.measured for one in measured])
            package = "" if others is None else f", percentiles of hdrhistogram: {others == _own(found)}"
            yield f"starts {apart[-1]:.2f} ms apart; p99 is that of one histogram: {alike}{package}"
    within = sum(one <= 5 for one in apart)
    median = statistics.median(apart)
    yield f"{within} of {rounds} starts within 5 ms: median {median:.2f}, most {max(apart):.2f} ms"
    yield f"bounds of clocks: median {statistics.median(bounds):.2f}, most {max(bounds):.2f} ms"


_PERCENTILES: Final = {"p50_ns": 50.0, "p90_ns": 90.0, "p95_ns": 95.0, "p99_ns": 99.0}


def _own(found: dict[str, Any]) -> list[int]:
    return [found["operation"][name] for name in _PERCENTILES]


def _of_package(parts: list[LoadMeasurement]) -> list[int] | None:
    """Return the percentiles of all parts by another implementation; None if it is not installed."""
    try:
        from hdrh.histogram import HdrHistogram  # noqa: PLC0415
    except ImportError:
        return None
    whole = HdrHistogram(1, 2**53, 3)
    for part in parts:
        plain = next(bytes(row.histogram) for row in part.times if row.kind == "operation" and row.histogram)
        packed = zlib.compress(plain)
        whole.add(HdrHistogram.decode(base64.b64encode(struct.pack(">II", 0x1C849304, len(packed)) + packed)))
    # The package rounds the rank of a percentile, uncork takes the next one up.
    ranks = [math.ceil(whole.total_count * one / 100) for one in _PERCENTILES.values()]
    return [whole.get_value_at_percentile(100 * rank / whole.total_count) for rank in ranks]


def kill(folder: Path, rounds: int, dice: random.Random) -> Iterator[str]:
    """Kill or suspend a process of each load."""
    for number in range(rounds):
        victim = VICTIMS[number % len(VICTIMS)]
        place = folder / str(number)
        place.mkdir()
        with nginx(place) as server, ray_cluster([{}] * NODES) as cluster:
            yield f"{victim}: {_killed(place, server, cluster, victim, dice.uniform(0.5, 8))}"


def _killed(folder: Path, server: Nginx, cluster: RayCluster, victim: str, after_s: float) -> str:
    load = ["http", *f"-c 8 -R {RATE} --arrivals poisson -D 40 -P 1 --runs".split(), folder / "runs"]
    command = words(*load, url(server), *on(cluster))
    with subprocess.Popen(
        command, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as coordinator:
        errors = _measuring(coordinator)
        time.sleep(after_s)
        raylet = cluster.raylets[2]
        pid = {"coordinator": coordinator.pid, "agent": _agent_of(raylet)}.get(victim, raylet)
        os.kill(pid, signal.SIGSTOP if victim.startswith("frozen") else signal.SIGKILL)
        began = time.monotonic()
        noticed, reason, last, count = None, "", began, len(server.requests())
        os.set_blocking(errors.fileno(), False)
        while time.monotonic() < last + 8:
            time.sleep(0.05)
            now = len(server.requests())
            last, count = (time.monotonic(), now) if now > count else (last, count)
            line = errors.readline() or ""
            if noticed is None and ("is lost" in line or "is suspended" in line):
                noticed, reason = time.monotonic() - began, line.strip()
        if victim.startswith("frozen"):
            os.kill(raylet, signal.SIGCONT)
        output, _ = coordinator.communicate(timeout=120)
    told = f"last request {last - began:.2f} s after"
    if victim == "coordinator":
        return told
    parts = json.loads(output)["parts"]["parts"]
    closed = all(one["planned"] == one["started"] + one["not_started"] + one["unknown"] for one in parts)
    least, unknown = (sum(one[name] for one in parts) for name in ("started", "unknown"))
    within = least <= len(server.requests()) <= least + unknown
    when = "never" if noticed is None else f"after {noticed:.2f} s ({reason})"
    counts = f"accounts close: {closed}, server's count within: {within} (unknown {unknown})"
    return f"noticed {when}, {told}, {counts}"


def _measuring(load: subprocess.Popen[str]) -> IO[str]:
    """Wait until a load reports progress; return its standard error."""
    if load.stderr is None:
        raise SystemExit("standard error is not a pipe")
    next(line for line in load.stderr if line.startswith("progress: "))
    return load.stderr


def _agent_of(raylet: int) -> int:
    for one in processes():
        if one.parent == raylet and b"RayAgent" in Path(f"/proc/{one.pid}/cmdline").read_bytes():
            return one.pid
    raise SystemExit("the node has no agent")


def traffic(folder: Path, rounds: int, _: random.Random) -> Iterator[str]:
    """Compare what crosses loopback with and without a load."""
    (folder / "probe.sql").write_text("SELECT 22;\n")
    server = EmbeddedServer({"shared_buffers": "64MB"})
    server.start()
    seconds = 10
    try:
        with ray_cluster([{}] * NODES) as cluster:
            load = ["sql", "-c", "8", "-n", "-R", RATE, "-T", seconds, "-f", folder / "probe.sql", "-P", "1"]
            for _number in range(rounds):
                idle = _loopback(seconds - 2)
                command = words(*load, "--runs", folder / "runs", *on(cluster), "--dsn", server.conninfo())
                with subprocess.Popen(
                    command,
                    env=cluster.environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                ) as process:
                    _measuring(process)
                    busy = _loopback(seconds - 4)
                    process.communicate()
                each = (busy - idle) / NODES / 1000
                both = f"idle cluster {idle / 1000:.1f} kB/s, with a load {busy / 1000:.1f} kB/s"
                yield f"{both}: {each:.2f} kB/s a node"
    finally:
        server.stop()


def _loopback(seconds: float) -> float:
    """Return how many bytes a second the loopback interface receives."""

    def received() -> int:
        line = next(one for one in Path("/proc/net/dev").read_text().splitlines() if "lo:" in one)
        return int(line.split(":")[1].split()[0])

    before, began = received(), time.monotonic()
    time.sleep(seconds)
    return (received() - before) / (time.monotonic() - began)


def slow(folder: Path, rounds: int, dice: random.Random) -> Iterator[str]:
    """Slow one part down, and see whether it is named, and no other."""
    right: Counter[str] = Counter()
    with nginx(folder) as server, ray_cluster([{}] * NODES) as cluster:
        for number in range(rounds):
            loop = ("open", "closed")[number % 2]
            rate = ["-R", RATE, "--arrivals", "poisson"] if loop == "open" else []
            load = ["http", "-c", "8", *rate, "-D", "20", "--runs", folder / "runs", url(server), "-P", "1"]
            for victim in (0, dice.randint(1, NODES)):
                found = _slowed(words(*load, *on(cluster)), cluster, victim)
                named = {one["number"] for one in found["parts"]["parts"] if one["disagrees"]}
                kind = f"{loop} loop, {'one slow' if victim else 'all alike'}"
                right[kind] += named == ({victim} if victim else set())
                yield f"{kind}: slow {victim or 'none'}, named {sorted(named) or 'none'}"
    for kind, count in sorted(right.items()):
        yield f"{kind}: {count} right"


def _slowed(command: list[str], cluster: RayCluster, victim: int) -> dict[str, Any]:
    """Carry out a load while one of its parts gets a fifth of its time; none if the number is 0."""
    with subprocess.Popen(
        command, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as load:
        if load.stderr is None or load.stdout is None:
            raise AssertionError
        for line in load.stderr:
            if line.startswith("progress: "):
                break
        part = _part(victim) if victim else None
        until = time.monotonic() + 30
        while part is not None and time.monotonic() < until:
            try:
                os.kill(part, signal.SIGSTOP)
                time.sleep(0.08)
                os.kill(part, signal.SIGCONT)
            except ProcessLookupError:
                break
            time.sleep(0.02)
        output, _ = load.communicate()
    return dict(json.loads(output))


def _part(number: int) -> int:
    """Return the process that sends a part: its run says which one it is."""
    for one in processes():
        place = Path(f"/proc/{one.pid}")
        try:
            if b"uncork.cluster.part_process" not in (place / "cmdline").read_bytes():
                continue
            for manifest in (place / "cwd").resolve().glob("runs/*/manifest.json"):
                if json.loads(manifest.read_text())["options"]["part"]["number"] == number:
                    return one.pid
        except (OSError, KeyError, ValueError):
            continue
    raise SystemExit(f"part {number} is not running")


def p99(folder: Path, rounds: int, chance: random.Random) -> Iterator[str]:
    """Compare two parts from nodes of Ray with two parts by hand, and the latter with each other (A/A)."""
    found: dict[str, list[float]] = {"by hand": [], "by hand again": [], "with Ray": []}
    with nginx(folder) as server, ray_cluster([{}] * 2) as cluster:
        load = ["http", "-c", "8", "-R", 1000, "-D", "8", "--random-seed", "5", url(server), "--runs"]
        for number in range(rounds):
            for arm in chance.sample(list(found), len(found)):
                if arm == "with Ray":
                    command = words(*load, folder / "runs", *on(cluster, 2))
                else:
                    names = _two_parts(load, folder / f"parts-{number}-{arm.replace(' ', '-')}")
                    command = [sys.executable, "-m", "uncork", "merge", *names, "--json"]
                    command += ["--runs", str(folder / "merged")]
                found[arm].append(run(command, cluster)["operation"]["p99_ns"])
            yield ", ".join(f"{arm} {values[-1] / 1e3:.0f} µs" for arm, values in found.items())
    for arm in ("by hand again", "with Ray"):
        logs = [math.log(one / other) for one, other in zip(found[arm], found["by hand"], strict=True)]
        middle = statistics.fmean(logs)
        reach = student_reach(0.95, rounds - 1) * statistics.stdev(logs) / math.sqrt(rounds)
        low, high = math.exp(middle - reach), math.exp(middle + reach)
        yield f"p99 {arm} against by hand: {math.exp(middle):.3f} [{low:.3f}, {high:.3f}]"


def _two_parts(load: Sequence[object], runs: Path) -> list[str]:
    """Send both parts of a load by hand, and return the folders of their runs."""
    start = f"{time.time() + 5:.6f}"
    parts = [
        subprocess.Popen(
            words(*load, runs, "--shard", f"{part}/2", "--start-at", start),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for part in (1, 2)
    ]
    for part in parts:
        part.wait()
    return [str(path) for path in runs.iterdir()]


KINDS: Final[dict[str, Callable[[Path, int, random.Random], Iterator[str]]]] = {
    one.__name__: one for one in (same, starts, kill, slow, traffic, p99)
}


@contextmanager
def _folder() -> Iterator[Path]:
    with TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        yield Path(name)


def main() -> None:
    """Carry out the rounds that the command line asks for, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with _folder() as folder:
        for line in KINDS[given.kind](folder, given.rounds, random.Random(given.seed)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
