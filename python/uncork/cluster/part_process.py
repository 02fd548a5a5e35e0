"""Send one part of a load on a node. A program: ``python -m uncork.cluster.part_process``.

An agent (`uncork.cluster.agent`) starts it, and keeps both ends of these pipes:

- Standard input: the length of a job in decimal and a line feed, the job (pickled), then lines. ``start N``
  is the start time in Unix nanoseconds. Each line renews the lease: when agent or coordinator are gone, no
  more lines come, and the core ends the load by itself.
- Standard output: one line of JSON each. ``{"folder": PATH}`` is the run's folder, ``{"ready": true}`` that
  the start is awaited, ``{"note": TEXT}`` a message, ``{"outcome": WORD}`` or ``{"error": TEXT}`` the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO, Final

from uncork.cluster.part_job import part_of_job
from uncork.errors import UncorkError, UsageError
from uncork.load.parts import Lease, PartControl
from uncork.model.load import LoadOutcome
from uncork.requests.jobs import LoadJob

__all__ = ["main"]

_RUN_ERROR: Final = 2
_ASKS: Final = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask a part to end, and to keep what it has measured."""


def main() -> None:
    """Send the part that standard input describes."""
    for number in _ASKS:  # Ray's processes block or ignore them, which their children inherit
        signal.signal(number, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKS)
    # Whatever else is printed must not come between the messages.
    with os.fdopen(os.dup(1), "wb", buffering=0) as output:
        os.dup2(2, 1)
        sys.exit(_send(os.fdopen(0, "rb", buffering=0), output))


def _send(source: BinaryIO, output: BinaryIO) -> int:
    def say(**message: object) -> None:
        with contextlib.suppress(OSError):  # the agent is gone: the lease ends the load
            output.write(json.dumps(message).encode() + b"\n")

    try:
        outcome = _loaded(source, say)
    except UncorkError as error:
        say(error=str(error))
        return error.exit_status
    except KeyboardInterrupt:
        say(outcome=str(LoadOutcome.INTERRUPTED))
        return _RUN_ERROR
    say(outcome=str(outcome))
    return 0


def _loaded(source: BinaryIO, say: Any) -> LoadOutcome:
    from uncork.workbench.load.http import new_http_load  # noqa: PLC0415 -- only the one that is needed
    from uncork.workbench.load.sql import new_load  # noqa: PLC0415

    wanted = pickle.loads(_exactly(source, int(source.readline())))  # noqa: S301 -- our own agent wrote it
    job = part_of_job(wanted, dict(os.environ))
    runs = Path("runs")
    session = new_load(runs, job) if isinstance(job, LoadJob) else new_http_load(runs, job)
    say(folder=str(session.folder.absolute()))
    lease, starts = Lease(), queue.SimpleQueue[int | None]()
    threading.Thread(target=_listen, args=(source, lease, starts), name="lease", daemon=True).start()

    def await_start() -> int:
        say(ready=True)
        start_ns = starts.get()
        if start_ns is None:
            raise UsageError("the coordinator ended before the start")
        return start_ns

    return session.run(None, lambda text: say(note=text), PartControl(lease, await_start))


def _listen(source: BinaryIO, lease: Lease, starts: queue.SimpleQueue[int | None]) -> None:
    """Renew the lease with each line, and pass on the start; None when no more lines come."""
    with contextlib.suppress(OSError, ValueError):
        while line := source.readline():
            lease.renew()
            word, _, value = line.partition(b" ")
            if word == b"start":
                starts.put(int(value))
    starts.put(None)


def _exactly(source: BinaryIO, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = source.read(length - len(data))
        if not more:
            raise UsageError("the agent ended before it had sent the job")
        data += more
    return data


if __name__ == "__main__":
    main()
