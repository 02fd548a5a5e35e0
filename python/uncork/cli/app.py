"""The `uncork` command, and the one place where errors become messages and exit statuses."""

from __future__ import annotations

import gc
import signal
import sys
from types import FrameType
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from uncork import __version__
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.places import send_written
from uncork.cli.profile.hidden import hide_pandas
from uncork.cli.streams import open_streams
from uncork.cli.verbs import LazyGroup
from uncork.errors import UncorkError

_COLLECT: Final = (50_000, 20, 20)
"""Thresholds of garbage collection. A command keeps what it reads: with Python's defaults, collection took a
quarter of the time of a query over ten thousand runs."""

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
