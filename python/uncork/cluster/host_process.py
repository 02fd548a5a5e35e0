"""Measure rounds of an experiment on a host. A program: ``python -m uncork.cluster.host_process``.

An agent (`uncork.cluster.agent`) starts it, and keeps both ends of its pipes: see `node_program`. The program
prepares an ordinary run. Then each line ``round [[CELL, WORKLOAD], ...]`` lets it measure one more round of
those, after which it says ``{"round": N}``; with none of them it ends. All lines renew its lease: without a
line for `LEASE_S` it interrupts itself, because agent or coordinator are gone.
"""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import threading
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final

from uncork.cluster.jobs import HostJob
from uncork.cluster.node_program import Say, run_program
from uncork.experiment.plan.order import cells
from uncork.experiment.run.events import BudgetShort, Finished, Recovered, Refused, RoundEnded, Skipped
from uncork.experiment.run.ledger import Pair
from uncork.experiment.spec.schema import Spec
from uncork.workbench.event_words import event_line
from uncork.workbench.experiment.session import new_run

LEASE_S: Final = 60.0
"""How long a host measures without a sign of its coordinator. This asks twice a second, except while it waits
for a host that does not hand over its round."""

Grants = queue.SimpleQueue[list[list[str]]]


def main() -> None:
    """Measure the rounds that standard input asks for."""
    run_program(_measured)


class Granted:
    """The runner's rule for what to measure: waits before each round for what the coordinator wants."""

    reason = "the coordinator has enough rounds of all hosts"

    def __init__(self, spec: Spec, grants: Grants, say: Say) -> None:
        self._cells = {cell.name: cell for cell in cells(spec)}
        self._grants = grants
        self._say = say
        self._open: set[Pair] | None = None
        self._begun = False

    def open_pairs(self) -> set[Pair]:
        """Return what the round measures; wait for it if the round was not granted yet."""
        if self._open is None:
            if not self._begun:
                self._begun = True
                self._say(ready=True)
            self._open = {(self._cells[cell], workload) for cell, workload in self._grants.get()}
        return self._open

    def end_round(self) -> None:
        """Wait for the next grant when the runner asks again."""
        self._open = None


def _measured(job: HostJob, source: BinaryIO, say: Say) -> str:
    grants = Grants()
    threading.Thread(target=_listen, args=(source, grants), name="lease", daemon=True).start()
    experiment = job.source
    granted = Granted(experiment.spec, grants, say)
    session = new_run(Path("runs"), experiment, job.server, until=lambda _: granted)
    say(folder=str(session.folder.absolute()))
    reason = ""
    with closing(session.events()) as events:
        for event in events:
            match event:
                case RoundEnded():
                    granted.end_round()
                    say(round=event.number)
                case Refused() | Skipped() | BudgetShort() | Recovered():
                    say(note=event_line(event))
                case Finished():
                    reason = event.reason
    return reason


def _listen(source: BinaryIO, grants: Grants) -> None:
    """Pass on what to measure; interrupt this process when its lease ends."""
    text = b""
    while select.select([source], [], [], LEASE_S)[0]:
        data = source.read(1 << 16)
        if not data:
            break
        *lines, text = (text + data).split(b"\n")
        for line in lines:
            word, _, value = line.partition(b" ")
            if word == b"round":
                grants.put(json.loads(value))
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
