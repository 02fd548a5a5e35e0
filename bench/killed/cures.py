"""Kill cures at random moments: what is left behind, and does the cure go on?

Watches a database with a missing index once. Then starts `uncork cure` of that watch again and again, and
kills it (SIGKILL) at a random moment: alone, or with its process group, as a cancelled CI job. Five seconds
later there must be no process, no folder of a server, no shared memory, and no session on the source. Each
killed run must still have a report, which says that it did not end. The last one is resumed and must end with
the proven index. The source logs every statement; any that does more than read is an error.

``python -m bench.killed.cures [--rounds 50] [--seed 1] [--longest 40] [--minutes M]``
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import psycopg
from bench.killed.runs import _clean, _folders, _note, _wait_for_end

from databases.indexes import SCENARIOS
from databases.scenario import SETTINGS, at_work, lay_out
from uncork.engines.embedded import EmbeddedServer

AFTER_S = 5.0
"""Time after the kill within which everything must have ended."""
LONGEST_S = 40.0
"""The latest moment of a kill, after the first message of the cure."""
_PATIENCE_S = 120.0
_LOOK_S = 0.02
_SICK = next(one for one in SCENARIOS if one.name == "a missing index")
READING = frozenset(
    {
        "SELECT",
        "WITH",
        "SHOW",
        "EXPLAIN",
        "COPY",
        "SET",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT",
        "RELEASE",
    }
    | {"PREPARE", "DEALLOCATE"}
)
"""What a reading session sends. COPY reads if it is COPY ... TO STDOUT, which is checked apart."""
_SENT = re.compile(r"(?:statement|execute [^:]*): +(?:/\*.*?\*/ *)?((\w+)[^\n]*)")


@dataclass(frozen=True)
class Outcome:
    """The outcome: sentences about what was left, and how long the slowest end took, in seconds.

    `steps` counts the kills by the step of the cure at that moment. `resumed` is the exit status of the cure
    that continued the last killed one, and `statements` the number that reached the source.
    """

    kills: int
    slowest_s: float
    left: tuple[str, ...]
    steps: Mapping[str, int]
    resumed: int
    answer: str
    statements: int


def kill_cures(
    rounds: int,
    seed: int,
    tell: Callable[[str], object],
    *,
    longest_s: float = LONGEST_S,
    after_s: float = AFTER_S,
    budget: str = "30s",
    minutes: float = float("inf"),
) -> Outcome:
    """Kill this many cures, or as many as `minutes` allow, then resume the last one."""
    chance = random.Random(seed)
    source = EmbeddedServer({**SETTINGS, "log_statement": "all"})
    source.start()
    left: list[str] = []
    steps: dict[str, int] = {}
    slowest = 0.0
    try:
        lay_out(source, _SICK, "sick")
        conninfo = source.conninfo("sick")
        with _folders() as (scratch, servers):
            runs = scratch / "runs"
            environment = {**os.environ, "UNCORK_SERVERS": str(servers), "UNCORK_RUNS": str(runs)}
            with at_work(source, _SICK, "sick"):
                _uncork(environment, scratch, "advise", conninfo, "--for", "3s", "--quiet").check_returncode()
            source.take_log(scratch / "before.log")
            (watched,) = [one.name for one in runs.iterdir() if one.name.startswith("database-")]
            words = ["cure", watched, conninfo, "--budget", budget]
            until, kills = time.monotonic() + 60 * minutes, 0
            while kills < rounds and time.monotonic() < until:
                number, kills = kills, kills + 1
                delay, group = chance.uniform(0.0, longest_s), number % 2 == 1
                seen, memory, step = _cure_and_kill(words, environment, scratch, delay, group)
                steps[step] = steps.get(step, 0) + 1
                took, remaining = _wait_for_end(seen, servers, after_s)
                slowest = max(slowest, took)
                found = [*remaining.values(), *(path.name for path in servers.iterdir())]
                found += sorted(memory & _shared_memory())
                found += _sessions(source, after_s)
                what = f"killed after {delay:.1f} s{' with its group' if group else ''} ({step})"
                if found:
                    left.append(f"{what}: {after_s:g} s later there is still {', '.join(found)}")
                tell(left[-1] if found else f"{what}: {len(seen)} processes, gone after {took:.2f} s")
                _clean(remaining, servers)
            for run in sorted(runs.glob("cure-*")):
                shown = _uncork(environment, scratch, "report", run.name)
                if shown.returncode != 0:
                    left.append(f"{run.name} has no report: {shown.stderr}")
            last = max(runs.glob("cure-*"), key=lambda one: one.stat().st_mtime).name
            done = _uncork(
                environment, scratch, "cure", conninfo, "--resume", last, "--budget", "60s", "--quiet"
            )
            answer = (done.stdout or done.stderr).strip().partition("\n")[0]
            source.take_log(scratch / "source.log")
            sent = _SENT.findall((scratch / "source.log").read_text())
            left += [f"the source received: {text}" for text, word in sent if not _reads(text, word)]
    finally:
        source.stop()
    return Outcome(kills, slowest, tuple(left), steps, done.returncode, answer, len(sent))


def _uncork(environment: Mapping[str, str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "uncork", *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def _cure_and_kill(
    words: list[str], environment: Mapping[str, str], folder: Path, delay_s: float, group: bool
) -> tuple[dict[tuple[int, int], str], set[str], str]:
    """Cure, and kill it so long after its first message, or before if there is none.

    Return its processes with their command lines, the shared memory that they had, and the step.
    """
    with (folder / "told").open("w+") as told:
        running = subprocess.Popen(
            [sys.executable, "-m", "uncork", *words],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=told,
            start_new_session=True,
        )
        seen: dict[tuple[int, int], str] = {}
        memory: set[str] = set()
        deadline, counts = time.monotonic() + _PATIENCE_S, False
        while time.monotonic() < deadline and running.poll() is None:
            _note(running.pid, seen)
            memory |= _memory_of(pid for pid, _ in seen)
            if not counts and (folder / "told").stat().st_size:
                deadline, counts = time.monotonic() + delay_s, True
            time.sleep(_LOOK_S)
        _note(running.pid, seen)
        if running.poll() is None:
            (os.killpg if group else os.kill)(running.pid, signal.SIGKILL)
        running.wait()
        lines = (folder / "told").read_text().splitlines()
    seen.pop(next((key for key in seen if key[0] == running.pid), (0, 0)), None)
    step = "it had ended" if running.returncode != -signal.SIGKILL else _step(lines)
    return seen, memory, step


def _step(lines: list[str]) -> str:
    """Return the step that a cure announced last, without what differs from one cure to the next."""
    words = lines[-1].removeprefix("uncork: ") if lines else "starting"
    return re.split(r"[,:;]| finding \d", words)[0].strip() or "starting"


def _memory_of(pids: Iterable[int]) -> set[str]:
    """Return the shared memory of processes, as `_shared_memory` names it."""
    found: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                *_, inode, path = line.split(maxsplit=5) if line.count(" ") > 5 else ("", "")
                if path.startswith("/SYSV"):
                    found.add(f"System V shared memory {inode}")
                elif path.startswith("/dev/shm/PostgreSQL."):  # noqa: S108
                    found.add(path)
    return found


def _shared_memory() -> set[str]:
    """Return the System V segments of this machine, and PostgreSQL's files of shared memory."""
    rows = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    segments = {f"System V shared memory {row.split()[1]}" for row in rows}
    return segments | {str(one) for one in Path("/dev/shm").glob("PostgreSQL.*")}  # noqa: S108


def _sessions(source: EmbeddedServer, after_s: float) -> list[str]:
    """Return the sessions on the source that are still there `after_s` from now."""
    query = "SELECT application_name, state, left(query, 60) FROM pg_stat_activity WHERE datname = 'sick'"
    deadline = time.monotonic() + after_s
    with psycopg.connect(source.conninfo("postgres"), autocommit=True) as connection:
        while rows := connection.execute(query).fetchall():
            if time.monotonic() > deadline:
                return [f"a session on the source: {row}" for row in rows]
            time.sleep(_LOOK_S)
    return []


def _reads(text: str, word: str) -> bool:
    return word.upper() in READING and (word.upper() != "COPY" or " TO STDOUT" in text)


def main() -> int:
    """Kill cures; return 1 if anything was left, or the cure did not go on."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=LONGEST_S)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop killing after this time")
    options = parser.parse_args()
    tell = functools.partial(print, flush=True)
    outcome = kill_cures(
        options.rounds, options.seed, tell, longest_s=options.longest, minutes=options.minutes
    )
    many, slowest = len(outcome.left), outcome.slowest_s
    print(f"{outcome.kills} kills: {many} left something; the slowest end took {slowest:.2f} s")
    for step, many in sorted(outcome.steps.items(), key=lambda one: -one[1]):
        print(f"  {many} at: {step}")
    print(f"resumed: exit status {outcome.resumed}: {outcome.answer}")
    print(f"{outcome.statements} statements reached the source")
    for line in outcome.left:
        print(line)
    return 1 if outcome.left or outcome.resumed else 0


if __name__ == "__main__":
    sys.exit(main())
