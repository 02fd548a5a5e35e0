"""Check that logs that are read in tasks are counted once, however often something is killed meanwhile.

    python -m bench.killed.log_readings commands --rounds 5

40 rotated logs of two servers (plain, gzip, zstd) lie in a bucket of moto's S3 server. Kinds of rounds:

- ``commands``: the process group of `uncork profile logs --processes 2` is killed (SIGKILL) at random,
  up to four times; then the command is left to its end;
- ``own``: the same with ``--nodes 2``, on a Ray cluster that each command starts;
- ``raylets``: four nodes of a Ray cluster read, and at a random moment a raylet is killed (SIGKILL);
- ``workers``: two processes read files, and a random one is killed in each of three random tasks;
- ``cuts``: 1, 2 and 4 nodes of a Ray cluster read files that are cut at random places.

After each round, all tables must be those of one process that reads all logs. Processes and files of killed
commands must be gone after five seconds. ``own``, ``raylets`` and ``cuts`` need Ray (`make engines`).
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Final

import pyarrow as pa
from bench.servers.s3_server import BUCKET, s3_server

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from fakes.log_fleet import PREFIX, write_fleet
from fakes.ray_cluster import RayCluster, ray_cluster
from uncork.cluster.log_tasks import on_nodes
from uncork.model.load import ClusterRequest
from uncork.model.tables.log import LOG_TABLES
from uncork.profile.logs import LogReading, LogRequest, read_logs
from uncork.profile.portions.local import in_processes
from uncork.profile.portions.tasks import read_in_tasks
from uncork.spawn.reaper import processes
from uncork.store.tables import read_evidence

FILES: Final = 40
ENTRIES: Final = 3_000
"""Entries of a log: its size is about 300 kB."""
NODES: Final = 4
KILLS: Final = 4
"""The most kills of a round."""
LEFT_S: Final = 5.0
_LOOK_S: Final = 0.05

Tables = Mapping[str, pa.Table]


# ---- rounds ----


def commands(folder: Path, rounds: int, dice: random.Random) -> Iterator[str]:
    """Kill commands that read objects with two processes."""
    with _bucket(folder) as environment:
        yield from _killed_commands(folder, environment, ["--processes", "2"], rounds, dice)


def own(folder: Path, rounds: int, dice: random.Random) -> Iterator[str]:
    """Kill commands that read objects with two nodes of a cluster of their own."""
    with _bucket(folder) as environment:
        yield from _killed_commands(folder, environment, ["--nodes", "2"], rounds, dice)


def raylets(folder: Path, rounds: int, dice: random.Random) -> Iterator[str]:
    """Kill a raylet while four nodes read objects."""
    with _bucket(folder) as environment:
        expected = _read_whole(folder, environment)
        for number in range(rounds):
            with ray_cluster([environment] * NODES) as cluster:
                runs = folder / f"runs-{number}"
                yield _raylet_killed(runs, cluster, environment, expected, dice.randrange(FILES // 2))


def workers(folder: Path, rounds: int, dice: random.Random) -> Iterator[str]:
    """Kill processes that read files."""
    request = write_fleet(folder, FILES, ENTRIES)
    expected = read_logs(request)
    for _number in range(rounds):
        victims, began = set(dice.sample(range(FILES), 3)), list[int]()

        def kill(number: int, pid: int, victims: set[int] = victims, began: list[int] = began) -> None:
            if number in victims and number not in began:
                os.kill(pid, signal.SIGKILL)
            began.append(number)

        found = read_in_tasks(request, partial(in_processes, processes=2, began=kill))
        again = sorted({one for one in began if began.count(one) == 2})
        yield f"tasks {again} begun again, {_equal(found.tables, expected.tables)}"


def cuts(folder: Path, rounds: int, dice: random.Random) -> Iterator[str]:
    """Let 1, 2 and 4 nodes read files in parts of random sizes."""
    request = write_fleet(folder, FILES, ENTRIES)
    expected = read_logs(request)
    with ray_cluster([{}] * NODES) as cluster:
        os.environ.update(cluster.environment)
        for _number in range(rounds):
            for nodes in (1, 2, 4):
                size = dice.randrange(50_000, 600_000)
                yield f"{nodes} nodes, parts of {size} bytes: {_on(cluster, nodes, request, size, expected)}"


def _on(cluster: RayCluster, nodes: int, request: LogRequest, size: int, expected: LogReading) -> str:
    asked, said = ClusterRequest(nodes=nodes, place=cluster.address), list[str]()
    began = time.monotonic()
    found = read_in_tasks(request, partial(on_nodes, request=asked, notify=said.append), part_bytes=size)
    return f"{_equal(found.tables, expected.tables)} after {time.monotonic() - began:.1f} s{''.join(said)}"


# ---- commands ----


def _words(runs: Path, more: list[str]) -> list[str]:
    asked = [f"s3://{BUCKET}/", "--servers", "by-folder", "-p", PREFIX, "--runs", str(runs), *more]
    return [sys.executable, "-m", "uncork", "profile", "logs", *asked]


def _read_whole(folder: Path, environment: Mapping[str, str]) -> Tables:
    """Return the tables of one process that reads all objects."""
    words = _words(folder / "whole", ["-j", "1"])
    subprocess.run(words, env={**os.environ, **environment}, check=True, capture_output=True)
    return _stored(folder / "whole")


def _killed_commands(
    folder: Path, environment: Mapping[str, str], more: list[str], rounds: int, dice: random.Random
) -> Iterator[str]:
    expected = _read_whole(folder, environment)
    for number in range(rounds):
        runs, kept, left = folder / f"runs-{number}", [0], list[str]()
        while True:
            scratch = mkdtemp(prefix="lr-")
            own_environment = {**os.environ, **environment, "TMPDIR": scratch}
            with subprocess.Popen(
                _words(runs, more),
                env=own_environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                text=True,
            ) as command:
                most = dice.randrange(kept[-1], FILES) if len(kept) <= KILLS else FILES
                while command.poll() is None and _kept(runs) <= most:
                    time.sleep(_LOOK_S / 5)
                if command.poll() is None:
                    time.sleep(dice.uniform(0, _LOOK_S))
                    os.killpg(command.pid, signal.SIGKILL)
                _, errors = command.communicate(timeout=300)
            left += _left(scratch)
            if command.returncode != -signal.SIGKILL:
                break
            kept.append(_kept(runs))
        if command.returncode:
            raise SystemExit(errors)
        said = next(
            (line.partition(": ")[2] for line in errors.splitlines() if "were read before" in line), ""
        )
        rest = "nothing kept is left" if not (runs / ".unfinished").exists() else "PARTS ARE LEFT"
        ends = f"killed with {kept[1:]} of {FILES} parts kept; {said or 'nothing was kept'}"
        yield f"{ends}; {_equal(_stored(runs), expected)}; {rest}; left by the killed: {left or 'nothing'}"


def _kept(runs: Path) -> int:
    return len([one for one in (runs / ".unfinished").glob("*") if "." not in one.name])


def _raylet_killed(
    runs: Path, cluster: RayCluster, environment: Mapping[str, str], expected: Tables, after: int
) -> str:
    with subprocess.Popen(
        _words(runs, ["--nodes", str(NODES), "--cluster", cluster.address]),
        env={**cluster.environment, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        while command.poll() is None and _kept(runs) <= after:
            time.sleep(_LOOK_S / 10)
        os.kill(cluster.raylets[2], signal.SIGKILL)
        began = time.monotonic()
        _, errors = command.communicate(timeout=300)
    if command.returncode:
        raise SystemExit(errors)
    lost = [line for line in errors.splitlines() if "is lost" in line]
    when = f"killed after {after} of {FILES} parts, ended {time.monotonic() - began:.1f} s later"
    return f"{when}; {_equal(_stored(runs), expected)}; {''.join(lost) or 'NOT NOTICED'}"


def _left(scratch: str) -> list[str]:
    """Return which processes and files of a command are left after a while."""
    until = time.monotonic() + LEFT_S
    while (left := [*_of(scratch), *map(str, Path(scratch).iterdir())]) and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return left


def _of(scratch: str) -> list[str]:
    """Return the commands of processes whose folder for temporary files this is."""
    found = []
    for one in processes():
        try:
            if f"TMPDIR={scratch}".encode() in Path(f"/proc/{one.pid}/environ").read_bytes().split(b"\0"):
                words = Path(f"/proc/{one.pid}/cmdline").read_bytes().split(b"\0")
                found.append(b" ".join(words).decode())
        except OSError:
            continue
    return found


# ---- results ----


def _stored(runs: Path) -> Tables:
    (run,) = (one for one in runs.iterdir() if (one / "facts.json").is_file())
    return read_evidence(run, LOG_TABLES)[1]


def _equal(found: Tables, expected: Tables) -> str:
    different = [name for name, table in expected.items() if not _sorted(found[name]).equals(_sorted(table))]
    return f"tables differ: {', '.join(different)}" if different else f"{len(expected)} tables are equal"


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(one, "ascending") for one in table.column_names if one != "squares"])


@contextmanager
def _bucket(folder: Path) -> Iterator[dict[str, str]]:
    """Put the logs into a bucket; yield the environment of those who read it."""
    place = folder / "logs"
    place.mkdir()
    with s3_server() as server:
        for path in write_fleet(place, FILES, ENTRIES).paths:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            key = str(path).removeprefix(f"{place}/").replace("-", "/", 1)
            headers = {"content-type": "application/octet-stream"}
            connection.request("PUT", f"/{BUCKET}/{key}", Path(str(path)).read_bytes(), headers)
            if connection.getresponse().status != 200:
                raise SystemExit(f"moto does not take {key}")
            connection.close()
        yield server.environment


KINDS: Final[Mapping[str, Callable[[Path, int, random.Random], Iterator[str]]]] = {
    one.__name__: one for one in (commands, own, raylets, workers, cuts)
}


def main() -> int:
    """Run the rounds of a kind; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="uncork-readings-") as folder:
        for line in KINDS[options.kind](Path(folder), options.rounds, random.Random(options.seed)):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
