"""What the programs that an agent starts on a node have in common: their pipes, and how they end.

Standard input begins with the length of a job in decimal, a line feed and the job (pickled). Standard output
has one line of JSON for each message. ``{"folder": PATH}`` is the folder of the program's run,
``{"ready": true}`` that it awaits a line, ``{"note": TEXT}`` a message for people, and
``{"outcome": WORD}`` or ``{"error": TEXT}`` the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final, Protocol

from uncork.errors import UncorkError, UsageError

_RUN_ERROR: Final = 2
_ASKS: Final = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask a program to end, and to keep what it has measured."""


class Say(Protocol):
    """Sends a message to the agent."""

    def __call__(self, **message: object) -> None:
        """Send it as a line of JSON. If the agent is gone, nothing happens: the lease ends the program."""


def run_program(work: Callable[[Any, BinaryIO, Say], str]) -> None:
    """Call `work` with the job, the other input and what sends messages; exit with its word."""
    for number in _ASKS:  # Ray's processes block or ignore them, which their children inherit
        signal.signal(number, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKS)
    # Whatever else is printed must not come between the messages.
    with os.fdopen(os.dup(1), "wb", buffering=0) as output:
        os.dup2(2, 1)
        sys.exit(_worked(work, os.fdopen(0, "rb", buffering=0), output))


def _worked(work: Callable[[Any, BinaryIO, Say], str], source: BinaryIO, output: BinaryIO) -> int:
    def say(**message: object) -> None:
        with contextlib.suppress(OSError):
            output.write(json.dumps(message).encode() + b"\n")

    try:
        job = pickle.loads(_exactly(source, int(source.readline())))  # noqa: S301 -- our own agent wrote it
        outcome = work(job, source, say)
    except UncorkError as error:
        say(error=str(error))
        return error.exit_status
    except KeyboardInterrupt:
        say(outcome="interrupted")
        return _RUN_ERROR
    say(outcome=outcome)
    return 0


def _exactly(source: BinaryIO, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = source.read(length - len(data))
        if not more:
            raise UsageError("the agent ended before it had sent the job")
        data += more
    return data
