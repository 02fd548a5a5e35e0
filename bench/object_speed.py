"""Compare reading a log from a local file with reading it as an object, over loopback: wall and CPU time.

nginx serves the log with range requests, as an S3 server would (the requests are signed; nginx does not check
the signature). Each turn is a process of its own that reads the log and gathers its entries, or with
``--whole`` the command `uncork profile logs` to the end of its report. Turns alternate in random order within
pairs. "Equal processor time" is the ratio of bytes per second of the process's own CPU time; the server's CPU
time is not part of it, but on a machine with few processors it competes for them.

``python bench/object_speed.py --log /var/tmp/big.log [--pairs 7] [--whole]``
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from servers.nginx_server import find_nginx, nginx
from uncork.stats.effect import estimate
from uncork.stats.sample import Observation, noise_units

READ = """
import json, os, sys, time
from uncork.profile.objects.reading import ObjectReader
from uncork.workbench.profile.log_files import log_request
from uncork.profile.logs import _native, _options, LogObject

request = log_request([sys.argv[1]], None, (None, None), 0)
begun, cpu = time.perf_counter(), os.times()
objects = [one for one in request.paths if isinstance(one, LogObject)]
if objects:
    with ObjectReader(objects) as reader:
        profile = _native.read_logs(_options(request), None, None, reader)
else:
    profile = _native.read_logs(_options(request), None, None)
wall, now = time.perf_counter() - begun, os.times()
facts = json.loads(profile.facts())
assert not facts["files"][0]["trouble"], facts["files"]
print(json.dumps([wall, now.user - cpu.user + now.system - cpu.system, facts["entries"]]))
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """The cost of one turn, in seconds and bytes, and the entries that it counted (0 for `--whole`)."""

    wall_s: float
    cpu_s: float
    memory: int
    entries: int


def main() -> int:
    """Run the comparison; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--log", type=Path, required=True, help="a log, for example of bench/log_speed.py")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--whole", action="store_true", help="run the command, not only the reading")
    options = parser.parse_args()
    program = find_nginx()
    if program is None:
        raise SystemExit("nginx is not installed")
    size = options.log.stat().st_size
    with ExitStack() as stack:
        folder, scratch = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        server = stack.enter_context(nginx(program, folder))
        (folder / "logs").mkdir()
        (folder / "logs" / "big.log").symlink_to(options.log.resolve())
        environment = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "a-secret-of-nobody",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.ports[False]}",
        }
        places = {"file": str(options.log), "object": "s3://logs/big.log"}
        found: dict[str, list[Turn]] = {name: [] for name in places}
        order, names = random.Random(1), list(places)
        for pair in range(options.pairs + 1):
            order.shuffle(names)
            for name in names:
                turn = _turn(places[name], environment, scratch if options.whole else None)
                if pair:
                    found[name].append(turn)
    if len({turn.entries for turns in found.values() for turn in turns}) != 1:
        raise SystemExit("the turns counted different numbers of entries")
    _report(size, found)
    return 0


def _turn(place: str, environment: Mapping[str, str], runs: Path | None) -> Turn:
    command = [sys.executable, "-c", READ, place]
    if runs is not None:
        command = [sys.executable, "-m", "uncork", "profile", "logs", place, "-q", "--runs", str(runs)]
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    output = process.stdout.read() if process.stdout else ""
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{place} failed: status {process.returncode}")
    if runs is not None:
        return Turn(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, 0)
    wall, cpu, entries = json.loads(output)
    return Turn(wall, cpu, used.ru_maxrss * 1024, entries)


def _report(size: int, found: Mapping[str, Sequence[Turn]]) -> None:
    print(f"{size / 1e6:.0f} MB, {len(found['file'])} pairs\n")
    print("| from | wall, s | MB/s | CPU, s | MB per CPU second | memory, MB |")
    print("|---|---|---|---|---|---|")
    for name, turns in found.items():
        walls, cpus = [turn.wall_s for turn in turns], [turn.cpu_s for turn in turns]
        wall, cpu = sum(walls) / len(walls), sum(cpus) / len(cpus)
        memory = max(turn.memory for turn in turns) / 1e6
        print(
            f"| {name} | {wall:.3g} ({min(walls):.3g} to {max(walls):.3g}) | {size / 1e6 / wall:.0f} "
            f"| {cpu:.3g} ({min(cpus):.3g} to {max(cpus):.3g}) | {size / 1e6 / cpu:.0f} | {memory:.0f} |"
        )
    for what, cost in (("equal processor time", "cpu_s"), ("wall time", "wall_s")):
        observations = [
            Observation(1, pair, name, getattr(turn, cost))
            for name, turns in found.items()
            for pair, turn in enumerate(turns)
        ]
        effect = estimate(noise_units(observations, baseline="object", again="file", kind="block"), 0.95)
        print(f"speed of the object at {what}: {effect.ratio:.2f} [{effect.low:.2f}, {effect.high:.2f}]")


if __name__ == "__main__":
    sys.exit(main())
