"""Check that nothing keeps running when uncork is killed.

Starts uncork repeatedly and kills it (SIGKILL) at a random moment after it started its first process. For the
next five seconds, searches for processes that it had started: servers, services, builds, initdb, and the
reaper itself. Every second kill hits the whole process group, as when a CI job is cancelled. Descendants are
recorded while uncork runs, so that they are known when they have lost their parent. Folders of servers must
be gone too.

``python -m bench.killed.runs [--rounds 50] [--seed 1] [--package FOLDER]``
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from uncork.spawn.reaper import Process, processes, start_of

ROOT = Path(__file__).parents[2]
AFTER_S = 5.0
"""Time after the kill within which everything must have ended."""
LONGEST_S = 10.0
"""Maximum time between the start of uncork's first process and the kill of uncork."""
_PATIENCE_S = 60.0
"""Maximum time between uncork's start and that of its first process."""
_LOOK_S = 0.02

EXPERIMENT = '''
[experiment]
name = "killed"
question = "Does an index help?"
[variants.plain]
baseline = true
values = { index = "id" }
[variants.index]
values = { index = "value" }
[setup]
sql = """
CREATE TABLE t (id int PRIMARY KEY, value int);
INSERT INTO t SELECT n, n % 999 FROM generate_series(1, 9999) n;
CREATE INDEX ON t (:index);
"""
[workloads.find]
sql = "SELECT count(*) FROM t WHERE value = :value::int"
duration = "50ms"
parameters.value = { generator = { kind = "uniform", min = 0, max = 998 } }
'''
_VARIANTS = EXPERIMENT[EXPERIMENT.index("[variants.plain]") : EXPERIMENT.index("[setup]")]
GUARD = (
    EXPERIMENT.replace(_VARIANTS, "").replace(":index", "value")
    + """
[guard]
gates = ["p50 < +10%"]
build = ["sh", "-c", "sleep 60 & wait"]
"""
)


@dataclass(frozen=True)
class Outcome:
    """The outcome: sentences about what was left, and how long the slowest end took, in seconds."""

    kills: int
    started: int
    slowest_s: float
    left: tuple[str, ...]


def commands(folder: Path) -> dict[str, list[str]]:
    """Write the commands' files into a folder; return the commands' arguments by name."""
    (folder / "killed.toml").write_text(EXPERIMENT)
    repository = folder / "repository"
    repository.mkdir()
    (repository / "killed.toml").write_text(GUARD)
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    shutil.copytree(ROOT / "examples" / "services", folder / "services")
    return {
        "run": ["run", str(folder / "killed.toml"), "--budget", "60s"],
        "run with services": ["run", str(folder / "services" / "experiment.toml"), "--budget", "60s"],
        "load": ["load", "sql", "--embedded", "-s", "1", "-c", "2", "-T", "60"],
        "guard": [
            *("guard", str(ROOT / "examples" / "guard" / "experiment.toml")),
            *("--candidate", "variant=branch"),
        ],
        "guard of commits": [
            *("guard", str(repository / "killed.toml")),
            *("--baseline", "commit=HEAD", "--candidate", "commit=HEAD", "--same"),
        ],
        "case": ["case", "run", "cluster-names"],
    }


def kill_runs(
    rounds: int,
    seed: int,
    tell: Callable[[str], object],
    *,
    longest_s: float = LONGEST_S,
    after_s: float = AFTER_S,
    package: Path | None = None,
) -> Outcome:
    """Kill this many runs, each command in turn; `package` is the folder of another version of uncork.

    `after_s` after a kill everything must have ended.
    """
    chance = random.Random(seed)
    kills, started, slowest, left = 0, 0, 0.0, []
    with _folders() as (scratch, servers):
        environment = {**os.environ, "UNCORK_SERVERS": str(servers), "UNCORK_RUNS": str(scratch / "runs")}
        if package is not None:
            environment["PYTHONPATH"] = str(package)
        known = commands(scratch)
        for number in range(rounds):
            name = list(known)[number % len(known)]
            delay, group = chance.uniform(0.1, longest_s), number % 2 == 1
            seen = _run_and_kill(known[name], environment, scratch, delay, group)
            kills += 1
            started += len(seen)
            took, remaining = _wait_for_end(seen, servers, after_s)
            slowest = max(slowest, took)
            folders = [path.name for path in servers.iterdir()]
            what = f"{name}, killed after {delay:.2f} s{' with its group' if group else ''}"
            if remaining or folders:
                shown = ", ".join([*remaining.values(), *folders])
                left.append(f"{what}: {after_s:g} s later there is still {shown}")
            tell(
                left[-1]
                if remaining or folders
                else f"{what}: {len(seen)} processes, gone after {took:.2f} s"
            )
            _clean(remaining, servers)
    return Outcome(kills, started, slowest, tuple(left))


@contextlib.contextmanager
def _folders() -> Iterator[tuple[Path, Path]]:
    """Yield a folder for files and one for servers, accessible to an unprivileged user, with a short path."""
    with tempfile.TemporaryDirectory() as scratch:
        servers = Path(tempfile.mkdtemp(prefix="uck-", dir="/var/tmp"))
        try:
            yield Path(scratch), servers
        finally:
            shutil.rmtree(servers, ignore_errors=True)


def _run_and_kill(
    words: list[str], environment: Mapping[str, str], folder: Path, delay_s: float, group: bool
) -> dict[tuple[int, int], str]:
    """Run a command for a while and kill it; return its processes with their command lines."""
    running = subprocess.Popen(
        [sys.executable, "-m", "uncork", *words],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    seen: dict[tuple[int, int], str] = {}
    deadline, counts = time.monotonic() + _PATIENCE_S, False
    while time.monotonic() < deadline and running.poll() is None:
        _note(running.pid, seen)
        if not counts and any(pid != running.pid for pid, _ in seen):
            deadline, counts = time.monotonic() + delay_s, True
        time.sleep(_LOOK_S)
    _note(running.pid, seen)
    if running.poll() is not None:
        raise RuntimeError(f"uncork {' '.join(words)} ended with status {running.returncode}, not killed")
    (os.killpg if group else os.kill)(running.pid, signal.SIGKILL)
    running.wait()
    seen.pop(next((key for key in seen if key[0] == running.pid), (0, 0)), None)
    return seen


def _note(root: int, seen: dict[tuple[int, int], str]) -> None:
    """Record the living descendants of a process and of its lost children, and its reaper."""
    living = processes()
    family = {root, *(pid for pid, _ in seen)}
    grown = True
    while grown:
        more = {one.pid for one in living if one.parent in family} - family
        family |= more
        grown = bool(more)
    for one in living:
        if (one.pid, one.start) not in seen and (one.pid in family or f" {root} " in _reaper_words(one)):
            seen[one.pid, one.start] = _command(one.pid)


def _wait_for_end(
    seen: Mapping[tuple[int, int], str], servers: Path, after_s: float
) -> tuple[float, dict[tuple[int, int], str]]:
    """Wait at most `after_s` until all have ended and their folders are gone; return what is left."""
    begun = time.monotonic()
    while True:
        remaining = {key: command for key, command in seen.items() if start_of(key[0]) == key[1]}
        remaining |= {
            (one.pid, one.start): command
            for one in processes()
            if str(servers) in (command := _command(one.pid)) and one.pid != os.getpid()
        }
        took = time.monotonic() - begun
        if (not remaining and not any(servers.iterdir())) or took >= after_s:
            return took, remaining
        time.sleep(_LOOK_S)


def _clean(remaining: Mapping[tuple[int, int], str], servers: Path) -> None:
    for pid, start in remaining:
        if start_of(pid) == start:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for path in servers.iterdir():
        shutil.rmtree(path, ignore_errors=True)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _reaper_words(process: Process) -> str:
    command = _command(process.pid)
    return f"{command} " if "reaper.py" in command else ""


def main() -> int:
    """Kill runs; return 1 if anything was left."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", type=Path, help="the folder of another version of uncork")
    options = parser.parse_args()
    tell = functools.partial(print, flush=True)
    outcome = kill_runs(options.rounds, options.seed, tell, package=options.package)
    print(
        f"{outcome.kills} kills, {outcome.started} processes: {len(outcome.left)} left something; "
        f"the slowest end took {outcome.slowest_s:.2f} s"
    )
    return 1 if outcome.left else 0


if __name__ == "__main__":
    sys.exit(main())
