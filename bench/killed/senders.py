"""Check that nothing is lost or half-visible when processes that send runs to an address are killed.

Two processes write runs and send them to an S3 server without pause, each as if on a machine of its own. A
third, on another machine, lists the runs there and opens each. A fourth, which also sends, is killed
(SIGKILL) at a random moment, repeatedly. Each sender records the runs reported as stored, with one write that
survives the kill. At the end another process on the killed senders' machine sends what they left. Then every
recorded run must be there with all its rows, and so must every run that had ended. The reader must never have
seen an incomplete run, and must list all runs at the end.

``python -m bench.killed.senders [--rounds 50] [--seed 1]``
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.killed.writers import BATCHES, ROWS, write_run
from bench.servers.s3_server import BUCKET, s3_server

from uncork.analysis.runs.listing import read_runs
from uncork.errors import UncorkError
from uncork.store.query import RunReader
from uncork.store.remote.address import Address, parse_address
from uncork.store.remote.mirror import AddressMirror, open_mirror
from uncork.store.remote.objects import Remote
from uncork.workbench.publishing import send_pending

ADDRESS = f"s3://{BUCKET}/team"
_AHEAD = 3
"""Runs that are written before any is sent, so that the kill interrupts the sending."""
_LONGEST_S = 0.6
"""Maximum time between the start of sending and the kill: about what a sender's runs take."""


@dataclass(frozen=True)
class Outcome:
    """The outcome: `troubles` are sentences about lost or incomplete runs; the rest are counts.

    `told` runs were reported as stored. `cut` runs had files there and no index when their sender was killed.
    `killed_unsent` runs were sent later from what the killed senders left.
    """

    rounds: int
    told: int
    cut: int
    killed_unsent: int
    lists: int
    opened: int
    runs: int
    troubles: tuple[str, ...]


def send_runs(
    environment: Mapping[str, str], machine: Path, notes: Path, name: str, stop: Path | None = None
) -> None:
    """Write and send runs until stopped or killed; record each run once its call has returned."""
    mirror = _mirror(environment, machine)
    mirror.refresh()
    with notes.open("ab", buffering=0) as file:

        def note(text: str) -> None:
            os.write(file.fileno(), f"{text}\n".encode())

        while stop is None or not stop.exists():
            runs = [write_run(mirror.root, name, note) for _ in range(_AHEAD)]
            note("began")
            for run in runs:
                mirror.publish(run)
                note(f"told {run.name}")


def open_again_and_again(environment: Mapping[str, str], machine: Path, notes: Path, stop: Path) -> None:
    """List the runs at the address and open each once, until stopped; record what is incomplete."""
    mirror = _mirror(environment, machine)
    mirror.fresh_s = 0.0
    seen: set[str] = set()
    with notes.open("a", buffering=1) as file:
        while not stop.exists():
            for trouble in _looked_at(mirror, seen):
                file.write(f"trouble {trouble}\n")
            file.write("lists 1\n")
        file.write(f"opened {len(seen)}\n")


def _mirror(environment: Mapping[str, str], machine: Path) -> AddressMirror:
    os.environ.update(environment)
    address = parse_address(ADDRESS, os.environ)
    if not isinstance(address, Address):
        raise TypeError(ADDRESS)
    return open_mirror(address, machine)


def _looked_at(mirror: AddressMirror, seen: set[str]) -> Iterator[str]:
    found = read_runs(mirror.root)
    yield from map(str, found.damaged)
    for run in found.runs:
        if run.id in seen:
            continue
        seen.add(run.id)
        if run.status != "complete":
            yield f"{run.id}: shows as {run.status}"
        try:
            with closing(RunReader(run.folder)) as reader:
                rows = reader.ask("SELECT operations, count(*) FROM overheads GROUP BY 1 ORDER BY 1")[1]
        except UncorkError as error:
            yield f"{run.id}: {error}"
            continue
        if rows != [(batch, ROWS) for batch in range(1, BATCHES + 1)]:
            yield f"{run.id}: seen in part: {rows}"


def kill_senders(
    folder: Path, rounds: int, seed: int, tell: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Run the check in an empty folder; return the outcome."""
    moments = random.Random(seed)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bench.killed.senders", "s3fs"])
    with s3_server() as server:
        with _beside(context, server.environment, folder):
            for number in range(1, rounds + 1):
                notes = folder / f"notes-victim{number}"
                arguments = (server.environment, folder / "victims", notes, f"victim{number}")
                victim = context.Process(target=send_runs, args=arguments)
                victim.start()
                _wait_for(notes)
                time.sleep(moments.uniform(0, _LONGEST_S))
                os.kill(victim.pid or 0, signal.SIGKILL)
                victim.join()
                if number % 10 == 0:
                    tell(f"{number} of {rounds} senders killed")
        return _judged(server.environment, folder, rounds)


@contextmanager
def _beside(
    context: multiprocessing.context.ForkServerContext, environment: Mapping[str, str], folder: Path
) -> Iterator[None]:
    """Run two senders and a reader during the block."""
    stop = folder / "stop"
    others = [
        context.Process(
            target=send_runs, args=(environment, folder / name, folder / f"notes-{name}", name, stop)
        )
        for name in ("one", "two")
    ]
    reader = (environment, folder / "reader", folder / "notes-reader", stop)
    others.append(context.Process(target=open_again_and_again, args=reader))
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


def _wait_for(notes: Path) -> None:
    """Wait until a sender has begun to send."""
    until = time.monotonic() + 60
    while not (notes.exists() and "began" in notes.read_text()) and time.monotonic() < until:
        time.sleep(0.001)


def _judged(environment: Mapping[str, str], folder: Path, rounds: int) -> Outcome:
    """Compare the address with the records, then send what the killed senders left."""
    notes = [line for path in folder.glob("notes-*") for line in path.read_text().splitlines()]
    troubles = [line.removeprefix("trouble ") for line in notes if line.startswith("trouble ")]
    fresh = _mirror(environment, folder / "fresh")
    there: set[str] = set()
    troubles += _looked_at(fresh, there)
    told = _noted(notes, "told")
    troubles += [f"{id}: told as stored, and not there" for id in told - there]
    listed = {run.id for run in read_runs(_mirror(environment, folder / "reader").root).runs}
    troubles += [f"{id}: there, and not listed by the reader" for id in there - listed]
    cut = {id for id in Remote(fresh.address).folders() if not id.startswith(".")} - there
    sent = send_pending(_mirror(environment, folder / "victims").root)
    troubles += map(str, sent.troubles)
    last = _mirror(environment, folder / "last")
    there = {run.id for run in read_runs(last.root).runs}
    troubles += [f"{id}: it ended, and was not sent later" for id in _noted(notes, "complete") - there]
    sums = {word: sum(int(line.split()[1]) for line in notes if line.startswith(word)) for word in _COUNTED}
    return Outcome(
        rounds=rounds,
        told=len(told),
        cut=len(cut),
        killed_unsent=len(sent.runs),
        lists=sums["lists"],
        opened=sums["opened"],
        runs=len(there),
        troubles=tuple(troubles),
    )


_COUNTED = ("lists", "opened")


def _noted(notes: list[str], word: str) -> set[str]:
    return {line.split()[1] for line in notes if line.startswith(f"{word} ")}


def main() -> int:
    """Run the check and print the outcome; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="uncork-senders-"))
    try:
        outcome = kill_senders(folder, arguments.rounds, arguments.seed, print)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for trouble in outcome.troubles[:20]:
        print(trouble)
    print(f"{outcome.rounds} senders killed, {outcome.cut} runs sent in part then")
    print(f"{outcome.told} runs told as stored, {outcome.killed_unsent} that the killed had left sent later")
    print(f"{outcome.runs} runs at the address")
    print(f"{outcome.lists} lists and {outcome.opened} runs opened beside")
    print(f"{len(outcome.troubles)} lost or half-visible")
    return 1 if outcome.troubles else 0


if __name__ == "__main__":
    sys.exit(main())
