"""Standard output and error whose reader may go away, whose disk may be full, or which are not in UTF-8."""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING, Final, TextIO

from uncork.errors import StoreError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["open_streams"]

_UTF: Final = "utf"


class _Output(io.FileIO):
    """Standard output. Once nobody reads it (``| head -1``) the rest goes nowhere.

    The verb goes on and ends as it would have: what it writes elsewhere is written, and a broken gate keeps
    its exit status. A disk that is full is told once.
    """

    _lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some bytes; raises StoreError the first time that they cannot be written."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes
        except OSError as error:
            if self._lost:
                return memoryview(data).nbytes
            self._lost = True
            raise StoreError(f"cannot write to standard output: {error.strerror}") from error


class _Talk(io.FileIO):
    """Standard error. Once nobody reads it (``2>&1 | head -1``) the verb is interrupted, as by Ctrl-C.

    Otherwise a run would go on for as long as its budget, and nobody would know.
    """

    _ended = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some bytes; raises KeyboardInterrupt the first time that nobody reads them."""
        try:
            return super().write(data)
        except OSError as error:
            main = threading.current_thread() is threading.main_thread()
            if main and not self._ended and isinstance(error, BrokenPipeError):
                self._ended = True
                raise KeyboardInterrupt from error
            return memoryview(data).nbytes


def open_streams() -> None:
    """Put these in the place of Python's own, which end in a traceback; a stream that is closed stays so."""
    if sys.stdout is not None:
        sys.stdout = _opened(sys.stdout, _Output)
    if sys.stderr is not None:
        sys.stderr = _opened(sys.stderr, _Talk)


def _opened(stream: TextIO, kind: type[io.FileIO]) -> io.TextIOWrapper:
    """Return a stream of text to the same place. What its encoding lacks becomes a question mark."""
    encoding = stream.encoding or "utf-8"
    errors = stream.errors if encoding.lower().startswith(_UTF) else "replace"
    return io.TextIOWrapper(
        io.BufferedWriter(kind(stream.fileno(), "w", closefd=False)),
        encoding=encoding,
        errors=errors,
        line_buffering=stream.isatty() or kind is _Talk,
    )
