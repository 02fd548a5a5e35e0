"""A load that goes on beside something else, for as long as that takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from uncork.errors import LoadError
from uncork.load.run import run_load
from uncork.model.load import LoadOutcome, LoadSpec
from uncork.workbench.signals import uninterrupted

__all__ = ["going_on"]

_PIECE_NS: Final = 500_000_000
"""A load cannot be told to end by another thread, so that it is sent in pieces, each on new connections."""


@contextmanager
def going_on(name: str, spec: LoadSpec, connection: Mapping[str, Any]) -> Iterator[None]:
    """Send a load until the body has ended; its own duration does not count. `name` is for messages.

    It has ended when the body's context has: at most a second later.

    Raises:
        LoadError: if a script is wrong, the server refuses us, or a transaction fails; at the end of the
            body, unless that raised something itself.
    """
    ended = threading.Event()
    piece = replace(spec, duration_ns=_PIECE_NS, operations_each=None)

    def send() -> None:
        turn = 0
        while not ended.is_set():
            # Each piece would draw the same numbers.
            totals = run_load(replace(piece, seed=spec.seed + turn), connection).totals
            if totals.outcome is not LoadOutcome.COMPLETE or totals.failed:
                raise LoadError(f"{name}: {totals.message or totals.first_error or totals.outcome}")
            turn += 1

    with ThreadPoolExecutor(1, thread_name_prefix=name) as threads:
        sending = threads.submit(send)
        try:
            yield
        finally:
            ended.set()
            with uninterrupted():
                threads.shutdown()
        sending.result()
