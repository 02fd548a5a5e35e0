"""Send a load in the background while something else runs."""

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
"""Another thread cannot end a load, so the load is sent in pieces of this length, each on new connections."""


@contextmanager
def going_on(name: str, spec: LoadSpec, connection: Mapping[str, Any]) -> Iterator[None]:
    """Send a load until the body has ended, whatever its own duration; messages call it `name`.

    The load has ended when the context has, at most a second after the body.

    Raises:
        LoadError: if a script is wrong, the server refuses the connection, or a transaction fails. It is
            raised at the end of the body, unless the body raised an error.
    """
    ended = threading.Event()
    piece = replace(spec, duration_ns=_PIECE_NS, operations_each=None)

    def send() -> None:
        turn = 0
        while not ended.is_set():
            # With the same seed, each piece would draw the same numbers.
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
