"""Check that nothing is lost or half-visible when processes that write runs are killed.

Two processes write runs without pause into one folder, a third lists and reads them, and a fourth, which also
writes, is killed (SIGKILL) at a random moment, repeatedly. Writers record what was reported as stored, each
record with one write that survives the kill. Afterwards everything recorded must be there, and the reader
must never have seen an incomplete run, table or row. Runs of killed writers must be shown as killed, with
everything they had stored, and no other run may be.

``python -m bench.killed.writers [--rounds 200] [--seed 1]``
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from uncork.analysis.runs.listing import read_runs
from uncork.engines import process
from uncork.errors import UncorkError
from uncork.store.layout import Attempt, Manifest, new_run_folder, write_atomically, write_manifest
from uncork.store.query import RunReader
from uncork.store.query_all import AllRunsReader
from uncork.store.tables import append_rows

BATCHES = 4
"""Batches of rows in a run."""
ROWS = 50
"""Rows in a batch: all of them must be there, or none."""
_LONGEST_S = 0.25
"""Maximum time between a writer's start and its kill: in the middle of its first runs."""
_SETTLES_S = 0.02
_READS_NEWEST = 20


@dataclass(frozen=True)
class Outcome:
    """The outcome: `troubles` are sentences about lost or incomplete data; `killed` counts runs."""

    rounds: int
    stored: int
    lists: int
    runs: int
    killed: int
    troubles: tuple[str, ...]


def write_runs(root: Path, notes: Path, name: str, pause_s: float = 0.0, stop: Path | None = None) -> None:
    """Write runs until stopped or killed; record what is stored once the call has returned."""
    with notes.open("ab", buffering=0) as file:

        def note(text: str) -> None:
            os.write(file.fileno(), f"{text}\n".encode())

        note("began")
        while stop is None or not stop.exists():
            write_run(root, name, note, pause_s)


def write_run(root: Path, name: str, note: Callable[[str], None], pause_s: float = 0.0) -> Path:
    """Write a run and record each stored step; return the run."""
    now = datetime.now(UTC)
    folder = new_run_folder(root, name, f"{now:%Y%m%d-%H%M%S}")
    started = now.isoformat(timespec="seconds")
    manifest = Manifest(
        id=folder.name,
        name=name,
        question="What is lost when a writer is killed?",
        status="running",
        started_at=started,
        seed=1,
        unit="round",
        server="none",
        uncork_version="0",
        owner=process.identity(os.getpid()),
    )
    write_atomically(folder / "experiment.toml", "[experiment]\n")
    write_manifest(folder, manifest)
    note(f"run {folder.name}")
    for batch in range(1, BATCHES + 1):
        append_rows(folder, "overheads", _rows(batch))
        note(f"batch {folder.name} {batch}")
        time.sleep(pause_s)
    attempt = Attempt(started, 10**6, BATCHES, "complete", "done")
    write_manifest(folder, _ended(manifest, attempt))
    note(f"complete {folder.name}")
    return folder


def _rows(batch: int) -> list[dict[str, object]]:
    return [{"engine": f"batch {batch}, row {row}", "operations": batch} for row in range(ROWS)]


def _ended(manifest: Manifest, attempt: Attempt) -> Manifest:
    from dataclasses import replace  # noqa: PLC0415

    return replace(manifest, status="complete", owner=None, attempts=(attempt,))


def read_again_and_again(root: Path, notes: Path, stop: Path) -> None:
    """List and read the runs until stopped; record what is incomplete."""
    before = None
    with notes.open("a", buffering=1) as file:
        while not stop.exists():
            file.write("lists 1\n")
            found = before = read_runs(root, before)
            for error in found.damaged:
                file.write(f"trouble {error}\n")
            for run in found.runs[-_READS_NEWEST:]:
                for trouble in _looked_at(run.folder, complete=run.status == "complete"):
                    file.write(f"trouble {trouble}\n")


def _looked_at(folder: Path, *, complete: bool) -> Iterator[str]:
    """Yield what is incomplete in a run: missing rows of a batch, skipped batches."""
    try:
        with closing(RunReader(folder)) as reader:
            rows = reader.ask("SELECT operations, count(*) FROM overheads GROUP BY 1 ORDER BY 1")[1]
    except UncorkError as error:
        yield f"{folder.name}: {error}"
        return
    batches = [batch for batch, _ in rows]
    if batches != list(range(1, len(batches) + 1)) or any(count != ROWS for _, count in rows):
        yield f"{folder.name}: batches seen in part: {rows}"
    if complete and len(batches) != BATCHES:
        yield f"{folder.name}: complete with {len(batches)} of {BATCHES} batches"


def kill_writers(
    folder: Path, rounds: int, seed: int, tell: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Run the check in an empty folder; return the outcome."""
    root, stop = folder / "runs", folder / "stop"
    root.mkdir()
    moments = random.Random(seed)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bench.killed.writers"])
    killed_by_us: set[str] = set()
    with _beside(context, root, folder, stop):
        for number in range(1, rounds + 1):
            notes = folder / f"killed-{number}"
            victim = context.Process(target=write_runs, args=(root, notes, f"victim{number}"))
            victim.start()
            _wait_for(notes)
            time.sleep(moments.uniform(0, _LONGEST_S))
            os.kill(victim.pid or 0, signal.SIGKILL)
            victim.join()
            killed_by_us.add(f"victim{number}")
            if number % 20 == 0:
                tell(f"{number} of {rounds} writers killed")
    return _judged(root, folder, rounds, killed_by_us)


@contextmanager
def _beside(
    context: multiprocessing.context.ForkServerContext, root: Path, folder: Path, stop: Path
) -> Iterator[None]:
    """Run two writers and a reader during the block."""
    others = [
        context.Process(target=write_runs, args=(root, folder / f"steady-{name}", name, _SETTLES_S, stop))
        for name in ("one", "two")
    ]
    others.append(context.Process(target=read_again_and_again, args=(root, folder / "reader", stop)))
    for other in others:
        other.start()
    try:
        yield
    finally:
        stop.touch()
        for other in others:
            other.join(120)
            if other.is_alive():
                other.kill()


def _wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.001)


def _judged(root: Path, folder: Path, rounds: int, victims: set[str]) -> Outcome:
    """Compare what is stored with the records."""
    notes = [line for path in folder.glob("*") if path.is_file() for line in path.read_text().splitlines()]
    troubles = [line.removeprefix("trouble ") for line in notes if line.startswith("trouble ")]
    found = read_runs(root)
    troubles += [str(error) for error in found.damaged]
    status = {run.id: run.status for run in found.runs}
    stored = _stored(root, found.runs)
    for line in notes:
        word, _, rest = line.partition(" ")
        id, _, batch = rest.partition(" ")
        if word == "run" and id not in status:
            troubles.append(f"{id}: reported as stored, and gone")
        if word == "batch" and stored[id, int(batch)] != ROWS:
            troubles.append(
                f"{id}: batch {batch} was reported as stored; {stored[id, int(batch)]} rows are there"
            )
        if word == "complete" and status.get(id) != "complete":
            troubles.append(f"{id}: reported as complete, and it is {status.get(id)}")
    for run in found.runs:
        troubles += _looked_at(run.folder, complete=run.status == "complete")
        expected = ("complete", "killed") if run.name in victims else ("complete",)
        if run.status not in expected:
            troubles.append(f"{run.id}: shows as {run.status}")
    counts = Counter(status.values())
    batches = sum(line.startswith("batch ") for line in notes)
    lists = sum(int(line.split()[1]) for line in notes if line.startswith("lists "))
    return Outcome(rounds, batches, lists, len(status), counts["killed"], tuple(troubles))


def _stored(root: Path, runs: tuple[object, ...]) -> Counter[tuple[str, int]]:
    """Return the rows of each batch of each run, from one query of all runs."""
    with closing(AllRunsReader(root, runs)) as reader:
        rows = reader.ask("SELECT run, operations, count(*) FROM overheads GROUP BY ALL")[1]
    return Counter({(run, batch): count for run, batch, count in rows})


def main() -> int:
    """Run the check and print the outcome; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="uncork-killed-"))
    try:
        outcome = kill_writers(folder, arguments.rounds, arguments.seed, print)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for trouble in outcome.troubles[:20]:
        print(trouble)
    print(
        f"{outcome.rounds} writers killed; {outcome.runs} runs, {outcome.killed} of them show as killed; "
        f"{outcome.stored} batches reported as stored; {outcome.lists} lists read beside; "
        f"{len(outcome.troubles)} lost or half-visible"
    )
    return 1 if outcome.troubles else 0


if __name__ == "__main__":
    sys.exit(main())
