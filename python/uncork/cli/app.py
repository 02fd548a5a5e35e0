"""The `uncork` command: its verbs, and one place where errors become messages and exit statuses."""

from __future__ import annotations

import gc
import signal
import sys
from types import FrameType
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from uncork import __version__
from uncork.cli import (
    acknowledge,
    case,
    compare,
    doctor,
    guard,
    observe_cost,
    report,
    run,
    serve,
    sql,
)
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.load import sql as load_sql
from uncork.cli.places import send_written
from uncork.cli.profile import logs as profile_logs
from uncork.cli.runs import export, history, imports, listing
from uncork.cli.streams import open_streams
from uncork.errors import UncorkError

__all__ = ["app", "main"]

_COLLECT: Final = (50_000, 20, 20)
"""How seldom garbage is looked for. A command keeps what it reads: with Python's own thresholds a quarter of
the time of a query over ten thousand runs went into looking."""

_PANELS: Final = {
    "Find the bottleneck": ("profile", "load", "observe-cost"),
    "Prove the fix": ("new", "plan", "run", "rerun", "doctor", "case"),
    "Keep it fixed": ("guard", "acknowledge", "compare", "history"),
    "Stored runs": ("runs", "report", "serve", "sql", "import", "export"),
}
"""The verbs as the help lists them."""


class _Verbs(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """Name the verbs in the order of the panels."""
        return [verb for verbs in _PANELS.values() for verb in verbs]


app = typer.Typer(
    name="uncork",
    cls=_Verbs,
    help="Find the bottleneck in a database-backed service, prove the fix, and keep it fixed.",
    epilog="Exit status: 0 ok; 1 wrong input or set-up; 2 error while measuring (what was measured is kept); "
    "3 an expectation or a gate is broken; 4 one is not decided; 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-?"]},
)
run.register(app)
profile_logs.register(app)
load_sql.register(app)
report.register(app)
compare.register(app)
history.register(app)
listing.register(app)
imports.register(app)
export.register(app)
sql.register(app)
serve.register(app)
case.register(app)
guard.register(app)
acknowledge.register(app)
doctor.register(app)
observe_cost.register(app)


_panel_of = {verb: panel for panel, verbs in _PANELS.items() for verb in verbs}
for _command in app.registered_commands:
    _command.rich_help_panel = _panel_of[str(_command.name)]
for _group in app.registered_groups:
    _group.rich_help_panel = _panel_of[str(_group.name)]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"uncork {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; never returns."""
    gc.set_threshold(*_COLLECT)
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
        from uncork.cli.misuse import misuse_words  # noqa: PLC0415 -- keeps `uncork --help` fast

        told = misuse_words(error)
        if told:
            typer.echo(f"uncork: {told}", err=True)
        return ExitStatus.USAGE
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("uncork: interrupted", err=True)
        return ExitStatus.INTERRUPTED
    except UncorkError as error:
        typer.echo(f"uncork: {error}", err=True)
        return error.exit_status
    if status == ExitStatus.INTERRUPTED and not isinstance(status, ExitStatus):
        # typer's own answer to a KeyboardInterrupt; a verb that ends so by itself has said it
        typer.echo("uncork: interrupted", err=True)
    return int(status or 0)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
