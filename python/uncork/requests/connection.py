"""The running server that a verb's options name, by psql's -h, -p, -U and -d or a connection string. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from uncork.engines.conninfo import composed, is_conninfo
from uncork.errors import UsageError
from uncork.model.records import build_from
from uncork.model.redaction import redact
from uncork.requests.jobs import ServerOptions
from uncork.requests.shared_options import MeasuredServer, ServerNames

if TYPE_CHECKING:
    from uncork.requests.experiment_options import NewOptions


Options = TypeVar("Options", bound="MeasuredServer | NewOptions")
AskPassword = Callable[[ServerNames], str | None]
"""Returns the password that a person has typed; None if the options do not ask for it."""


def named(options: ServerNames) -> bool:
    """Say whether any of -h, -p, -U and -d is given."""
    return any(
        option is not None for option in (options.host, options.port, options.user, options.database_name)
    )


def database_of(given: str | None, option: str | None) -> str | None:
    """Return the database, or connection string, of an argument or of -d.

    Raises UsageError if they differ.
    """
    if given and option not in (None, given):
        raise UsageError(
            f'two databases are named: "{redact(given)}" and -d "{redact(str(option))}"; leave one out'
        )
    return given or option


def refuse_asking(options: ServerNames, *, connects: bool = True) -> None:
    """Refuse -W with -w, and -W of a verb that does not connect: raise UsageError."""
    if options.password and options.no_password:
        raise UsageError("-W/--password asks for a password, and -w/--no-password never does: leave one out")
    if options.password and not connects:
        raise UsageError(
            "-W/--password asks for the password of a running server, but none is named: name it, or leave "
            "out -W"
        )


def watched_server(options: ServerNames, given: str | None, ask: AskPassword) -> ServerOptions:
    """Return the server that a verb connects to; `given` is its argument, or the option that is like one.

    Raises UsageError if the options contradict each other, or a password cannot be asked for.
    """
    database = database_of(given, options.database_name)
    refuse_asking(options)
    return build_from(ServerOptions, options, database=database, password=ask(options))


def measured_server(options: Options, ask: AskPassword, *, starts: bool = True) -> Options:
    """Return the options of a verb with --dsn, with the running server that they name as `dsn`.

    If the verb `starts` a server unless one is named, `port` alone is the port of the server to start.

    Raises:
        UsageError: if the options contradict each other, or a password cannot be asked for.
        ConnectError: if a connection string is invalid.
    """
    given: dict[str, object] = {
        "-h/--host": options.host,
        "-U/--username": options.user,
        "-d/--dbname": options.database_name,
        **({} if starts else {"-p/--port": options.port}),
    }
    names = [name for name, value in given.items() if value is not None]
    refuse_asking(options, connects=bool(names) or options.dsn is not None)
    if options.dsn is not None and names:
        raise UsageError(f"--dsn already gives the connection: put {names[0]} into it")
    if names and isinstance(options, MeasuredServer) and options.pg_bin is not None:
        raise UsageError(f"{names[0]} names a running server: leave out --pg-bin")
    changes: dict[str, Any] = {}
    dsn = options.dsn
    if names:
        text = options.database_name or ""
        dsn = composed(
            text if is_conninfo(text) else "",
            host=options.host,
            port=options.port,
            user=options.user,
            dbname=None if is_conninfo(text) or not text else text,
        )
        changes = {"port": None, "host": None, "user": None, "database_name": None}
    if dsn is not None:
        password = ask(options)
        changes["dsn"] = dsn if password is None else composed(dsn, password=password)
    return replace(options, **changes)
