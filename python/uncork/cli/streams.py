"""Standard output and error that handle closed pipes, full disks and encodings other than UTF-8."""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING, Final, TextIO

from uncork.errors import StoreError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_UTF: Final = "utf"


class _Output(io.FileIO):
    """Standard output. Once its reader is gone (``| head -1``), further output is discarded.

    The verb completes as usual: it writes its files, and a broken gate keeps its exit status. A full disk is
    reported once.
    """

    _lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes; raise StoreError the first time that they cannot be written."""
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
    """Standard error. Once its reader is gone (``2>&1 | head -1``), the verb is interrupted, as by Ctrl-C.

    Otherwise a run would continue unnoticed until its budget ends.
    """

    _ended = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes; raise KeyboardInterrupt the first time that there is no reader."""
        try:
            return super().write(data)
        except OSError as error:
            main = threading.current_thread() is threading.main_thread()
            if main and not self._ended and isinstance(error, BrokenPipeError):
                self._ended = True
                raise KeyboardInterrupt from error
            return memoryview(data).nbytes


def open_streams() -> None:
    """Replace Python's streams, which fail with a traceback; a closed stream stays closed."""
    if sys.stdout is not None:
        sys.stdout = _opened(sys.stdout, _Output)
    if sys.stderr is not None:
        sys.stderr = _opened(sys.stderr, _Talk)


def _opened(stream: TextIO, kind: type[io.FileIO]) -> io.TextIOWrapper:
    """Return a text stream to the same file; characters missing from its encoding become question marks."""
    encoding = stream.encoding or "utf-8"
    errors = stream.errors if encoding.lower().startswith(_UTF) else "replace"
    return io.TextIOWrapper(
        io.BufferedWriter(kind(stream.fileno(), "w", closefd=False)),
        encoding=encoding,
        errors=errors,
        line_buffering=stream.isatty() or kind is _Talk,
    )
