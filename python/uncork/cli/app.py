"""The `uncork` command, and the one place where errors become messages and exit statuses."""

from __future__ import annotations

import gc
import io
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer
from typer.exceptions import TyperException

from uncork import __version__
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.places import send_written
from uncork.cli.profile.hidden import hide_pandas
from uncork.cli.verbs import LazyGroup
from uncork.errors import StoreError, UncorkError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_COLLECT: Final = (50_000, 20, 20)
"""Thresholds of garbage collection. A command keeps what it reads: with Python's defaults,
collection took a quarter of the time of a query over ten thousand runs."""

app = typer.Typer(
    name="uncork",
    cls=LazyGroup,
    help="Find the bottleneck in a database-backed service, prove the fix, and keep it fixed.",
    epilog=f"Exit status: {'; '.join(f'{status.value} {status.meaning}' for status in ExitStatus)}.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # `help.page` lays out help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-?"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"uncork {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; never returns."""
    gc.set_threshold(*_COLLECT)
    hide_pandas()
    open_streams()
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    status = _run()
    send_written()
    sys.exit(status)


def _run() -> int:
    try:
        status = app(standalone_mode=False)
    except typer.Exit as ended:
        return int(ended.exit_code)
    except TyperException as error:
        from uncork.cli.misuse import misuse_message  # noqa: PLC0415 -- keeps `uncork --help` fast

        message = misuse_message(error)
        if message:
            _note(message)
        return ExitStatus.USAGE
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("uncork: interrupted", err=True)
        return ExitStatus.INTERRUPTED
    except UncorkError as error:
        _note(str(error))
        return error.exit_status
    if status == ExitStatus.INTERRUPTED and not isinstance(status, ExitStatus):
        # typer's own answer to a KeyboardInterrupt; a verb that returns this status has printed its message
        typer.echo("uncork: interrupted", err=True)
    return int(status or 0)


def _note(message: str) -> None:
    from uncork.cli.console import note  # noqa: PLC0415 -- keeps `uncork --help` fast

    note(message)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


_UTF: Final = "utf"


class _Output(io.FileIO):
    """Standard output. Once its reader is gone (``| head -1``), further output is discarded.

    The verb completes as usual: it writes its files, and a broken gate keeps its exit status. A
    full disk is reported once.
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
