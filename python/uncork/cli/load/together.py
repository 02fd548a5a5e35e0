"""Load-test a server and a service at once: `uncork load together`."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer
from typer.exceptions import TyperException
from typer.main import get_command_from_info
from typer.models import CommandInfo

from uncork.analysis.load.result import went_wrong
from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import check_page, report
from uncork.cli.places import redacted_command
from uncork.cli.signature import command_of
from uncork.errors import UsageError
from uncork.model.load import LoadProgress
from uncork.model.redaction import shell_command, without_secrets
from uncork.model.results.load import TogetherResult
from uncork.requests.http import read_http
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import AnyLoad, HttpJob, LoadJob, TablesJob
from uncork.requests.sql import read_request
from uncork.requests.sql_options import SqlOptions
from uncork.requests.together_options import TogetherOptions, check_together, named_loads, together_job
from uncork.workbench.documents.kinds import Kind, kind_named
from uncork.workbench.event_words import progress_line
from uncork.workbench.load.sessions import sql_files
from uncork.workbench.load.together import new_together

Options = TypeVar("Options", SqlOptions, HttpOptions)


def load_together(options: TogetherOptions) -> None:
    """Send several loads that start at the same instant, and show the result."""
    jobs: list[AnyLoad] = [_sql_job(words, number, options) for number, words in enumerate(options.sql or ())]
    jobs += [_http_job(words, options) for words in options.http or ()]
    loads = named_loads(jobs)
    check_page(options.html)
    session = new_together(options.runs, loads, _command())
    console.note(f"run {session.folder.name}")

    def show(name: str, progress: LoadProgress) -> None:
        spec, http = loads[name].spec, isinstance(loads[name], HttpJob)
        line = progress_line(progress, open_loop=spec.arrivals is not None, http=http)
        typer.echo(f"{name}: {line}", err=True)

    status = session.run(
        None if options.progress is None else show, lambda name, text: console.note(f"{name}: {text}")
    )
    if not session.folder.is_dir():
        console.note("interrupted before anything was measured")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    kind: Kind[TogetherResult] = kind_named("together")
    result = kind.read(session.folder)
    report(kind, session.folder, result, "json" if options.as_json else "terminal", options.html)
    console.end_early(status, "", "what was measured until then is kept")
    if len(result.loads) < len(loads) or any(went_wrong(load.load) for load in result.loads):
        raise typer.Exit(ExitStatus.RUN_ERROR)


def itself(options: object) -> object:
    """Return the options that were read: what runs when the words of one load are parsed."""
    return options


def _parsed(kind: type[Options], words: str, verb: str) -> Options:
    """Parse the options of one load, written as on its own command line.

    Raises UsageError if they are wrong.
    """
    try:
        split = shlex.split(words)
    except ValueError as error:
        raise UsageError(f"{verb} {words!r}: {str(error).lower()}; check its quotes") from error
    if any(word.partition("=")[0] == "--runs" for word in split):
        raise UsageError(f"{verb}: --runs is where the whole run is stored; give it before {verb}")
    info = CommandInfo(name=f"load {verb.strip('-')}", callback=command_of(kind, f"{__name__}:itself"))
    command: Any = get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)
    try:
        with _named(verb):
            found = command.main(split, f"uncork load {verb.strip('-')}", standalone_mode=False)
    except TyperException as error:
        message = error.format_message().strip().rstrip(".").replace("'", '"')
        raise UsageError(
            f"{verb}: {message[:1].lower()}{message[1:]}; try `uncork load {verb.strip('-')} --help`"
        ) from error
    if not isinstance(found, kind):  # --help was among the words
        raise typer.Exit
    return found


@contextmanager
def _named(verb: str) -> Iterator[None]:
    """Begin the messages of wrong options with the option that holds them."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{verb}: {error}") from error


def _sql_job(words: str, number: int, options: TogetherOptions) -> LoadJob:
    read = _parsed(SqlOptions, words, "--sql")
    check_together(read, "--sql")
    with _named("--sql"):
        job = read_request(
            read,
            read=lambda name: _read(name).decode("utf-8", "replace"),
            files=sql_files,
            draw_seed=lambda: secrets.randbits(63),
            now_seed=time.time_ns() // 1000,
            log_id=f"{os.getpid()}.{number}" if number else str(os.getpid()),
            command=_alone("sql", words),
        )
    if isinstance(job, TablesJob):
        raise UsageError("--sql: -i/--initialize creates tables and sends nothing; create them before")
    return together_job(job, options.progress)


def _http_job(words: str, options: TogetherOptions) -> HttpJob:
    read = _parsed(HttpOptions, words, "--http")
    check_together(read, "--http")
    with _named("--http"):
        spec = read_http(read, read=_read, seed=secrets.randbits(63), environment=os.environ)
    pids = tuple(dict.fromkeys(read.service_pid or ()))
    return together_job(HttpJob(spec, _alone("http", words), pids, read.postgres), options.progress)


def _alone(verb: str, words: str) -> str:
    """Return the command that sends one of the loads alone, without secrets."""
    return shell_command(["uncork", "load", verb, *map(without_secrets, shlex.split(words))])


def _command() -> str:
    """Return the command that repeats the run, without secrets, also in the words of its loads."""
    words = [
        shell_command([*map(without_secrets, shlex.split(word))]) if _holds_words(sys.argv, place) else word
        for place, word in enumerate(sys.argv)
    ]
    return redacted_command(words[1:])


def _holds_words(words: list[str], place: int) -> bool:
    return place > 0 and words[place - 1] in ("--sql", "--http")


def _read(name: str) -> bytes:
    if name == "-":
        raise UsageError("loads that start together cannot share standard input: name a file")
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f'could not open file "{name}": {error.strerror}') from error
