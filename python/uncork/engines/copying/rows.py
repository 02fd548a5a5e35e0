"""Transfer rows from the source to the copy by COPY, block by block and at a bounded rate."""

from __future__ import annotations

import select
import time
from collections.abc import Generator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import pq

_BURST_S: Final = 0.1
"""Unused time that a reader may catch up with, in seconds."""


class Pace:
    """Allow `rate` bytes per second on average, and a tenth of a second's worth at once."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = float("-inf")

    def wait(self, size: int, now: float) -> float:
        """Count `size` bytes read at `now`, in seconds of any clock; return how many seconds to wait."""
        self._free_at = max(self._free_at, now - _BURST_S) + size / self._rate
        return max(0.0, self._free_at - now)


_BLOCK: Final = 256 * 1024
"""How many bytes to pass on at once. From 64 KiB to 1 MiB the speed is the same."""


class SourceFailed(Exception):
    """The source refused to send rows, or went away. `error` is the reason."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Transferred:
    """What one COPY moved."""

    rows: int
    bytes: int


def transfer(
    source: psycopg.Connection[Any], target: psycopg.Connection[Any], read: str, write: str, pace: Pace
) -> Transferred:
    """Send what the COPY statement `read` returns to the COPY statement `write`.

    At most one block is in memory, plus one row. If the source fails, the copy keeps none of the rows.
    Raises SourceFailed if the source refuses or fails; psycopg.Error if the copy refuses or fails.
    """
    size = 0
    with target.cursor() as cursor:
        with cursor.copy(write.encode()) as out, closing(_blocks(source, read)) as blocks:
            for block in blocks:
                size += len(block)
                if (pause := pace.wait(len(block), time.monotonic())) > 0:
                    time.sleep(pause)
                out.write(block)
        return Transferred(max(cursor.rowcount, 0), size)


def _blocks(source: psycopg.Connection[Any], query: str) -> Generator[bytes, None, None]:
    """Yield the data of a COPY TO STDOUT in blocks.

    psycopg's own reader makes a Python object of each row and waits for each; this is several times faster.
    """
    link = source.pgconn
    try:
        link.send_query(query.encode())
        _wait_result(link)
        result = link.get_result()
        if result is None or result.status != pq.ExecStatus.COPY_OUT:
            raise _failure(source, result)
        parts: list[bytes | memoryview] = []
        size = 0
        while True:
            length, data = link.get_copy_data(1)
            if length > 0:
                parts.append(data)
                size += length
                if size >= _BLOCK:
                    yield b"".join(parts)
                    parts, size = [], 0
            elif length == 0:
                _wait(link)
            else:
                break
        if parts:
            yield b"".join(parts)
        _wait_result(link)
        result = link.get_result()
        if result is None or result.status != pq.ExecStatus.COMMAND_OK:
            raise _failure(source, result)
        while link.get_result() is not None:
            pass
    except psycopg.Error as error:
        raise SourceFailed(error) from error
    except GeneratorExit:
        _cancel(link)
        raise


def _failure(source: psycopg.Connection[Any], result: Any) -> psycopg.Error:
    """Return the server's error, after reading whatever else it sent."""
    if result is None or not result.error_message:
        return psycopg.OperationalError(source.pgconn.error_message.decode(errors="replace") or "no answer")
    while source.pgconn.status == pq.ConnStatus.OK and source.pgconn.get_result() is not None:
        pass
    return psycopg.errors.error_from_result(result)


def _cancel(link: Any) -> None:
    """Ask the server to stop sending, so that its transaction can be continued from a savepoint."""
    with suppress(psycopg.Error):
        link.get_cancel().cancel()
        while link.get_copy_data(0)[0] > 0:
            pass
        while link.get_result() is not None:
            pass


def _wait_result(link: Any) -> None:
    while link.flush():
        _poll(link, select.POLLOUT)
    while link.is_busy():
        _wait(link)


def _wait(link: Any) -> None:
    _poll(link, select.POLLIN)
    link.consume_input()


def _poll(link: Any, event: int) -> None:
    ready = select.poll()
    ready.register(link.socket, event)
    ready.poll()
