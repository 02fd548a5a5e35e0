"""Send one part of a load on a node. A program: ``python -m uncork.cluster.part_process``.

An agent (`uncork.cluster.agent`) starts it, and keeps both ends of its pipes: see `node_program`. After the
job, standard input has lines. ``start N`` is the start time in Unix nanoseconds. Each line renews the lease:
when agent or coordinator are gone, no more lines come, and the core ends the load by itself.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from pathlib import Path
from typing import BinaryIO

from uncork.cluster.jobs import PartJob, part_of_job
from uncork.cluster.node_program import Say, run_program
from uncork.errors import UsageError
from uncork.load.parts import Lease, PartControl


def main() -> None:
    """Send the part that standard input describes."""
    run_program(_loaded)


def _loaded(wanted: PartJob, source: BinaryIO, say: Say) -> str:
    from uncork.workbench.load.sessions import new_load  # noqa: PLC0415 -- after the job is known

    job = part_of_job(wanted, dict(os.environ))
    runs = Path("runs")
    session = new_load(runs, job)
    say(folder=str(session.folder.absolute()))
    lease, starts = Lease(), queue.SimpleQueue[int | None]()
    threading.Thread(target=_listen, args=(source, lease, starts), name="lease", daemon=True).start()

    def await_start() -> int:
        say(ready=True)
        start_ns = starts.get()
        if start_ns is None:
            raise UsageError("the coordinator ended before the start")
        return start_ns

    return str(session.run(None, lambda text: say(note=text), PartControl(lease, await_start)))


def _listen(source: BinaryIO, lease: Lease, starts: queue.SimpleQueue[int | None]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while line := source.readline():
            lease.renew()
            word, _, value = line.partition(b" ")
            if word == b"start":
                starts.put(int(value))
    starts.put(None)


if __name__ == "__main__":
    main()
