"""Open an engine through its Python driver. Runs only in a client process (see `client`).

Drivers follow PEP 249: connect, cursor, execute, fetchall. They differ in how to connect, how to add another
client, and how to write a setting. This module has one function for each supported driver.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uncork.engines.drivers.dialect import place, returns_rows

_Joined = tuple[Any, Callable[[], object] | None, Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement in its driver's style: text, order or names of its parameters, whether it returns rows."""

    text: str
    order: tuple[int, ...]
    names: tuple[str, ...]
    rows: bool


class Session:
    """One client's cursor. `commit` ends each operation if the driver has no autocommit, else it is None.

    Close a session in the thread that opened it, because some drivers require this.
    """

    def __init__(self, cursor: Any, commit: Callable[[], object] | None, close: Callable[[], object]) -> None:
        self._cursor = cursor
        self.commit = commit
        self.close = close

    def execute(self, statement: Prepared, values: Sequence[object]) -> list[Any] | int:
        """Execute a statement; return all rows, or the number of changed rows (0 if the driver has none)."""
        cursor = self._cursor
        if not statement.order:
            cursor.execute(statement.text)
        elif statement.names:
            cursor.execute(statement.text, dict(zip(statement.names, values, strict=True)))
        else:
            cursor.execute(statement.text, [values[index] for index in statement.order])
        if statement.rows and cursor.description is not None:
            found: list[Any] = cursor.fetchall()
            return found
        return max(int(cursor.rowcount), 0)


class Driver:
    """An open engine that gives each client a session.

    Args:
        style: the parameter style (see `dialect.place`).
        join: opens a cursor for another client; returns it with a function that commits, or None if the
            driver commits itself, and a function that closes it.
        setting: writes a setting as a statement.
        close: closes the engine.
        version: the engine's name and version.
    """

    def __init__(
        self,
        style: str,
        join: Callable[[], _Joined],
        setting: Callable[[str, object], str],
        close: Callable[[], object],
        version: str,
    ) -> None:
        self._style = style
        self._join = join
        self._setting = setting
        self.close = close
        self.version = version

    def session(self, settings: Mapping[str, object]) -> Session:
        """Open a client's session with these settings."""
        session = Session(*self._join())
        for name, value in settings.items():
            session.execute(self.prepare(self._setting(name, value), 0), ())
        return session

    def prepare(self, sql: str, count: int) -> Prepared:
        """Rewrite a statement with ``$1`` ... ``$count`` in the driver's style."""
        text, order = place(sql, self._style, count)
        named = self._style in ("named", "pyformat")
        names = tuple(f"p{number + 1}" for number in range(count)) if named else ()
        return Prepared(text, tuple(order), names, returns_rows(sql))


def open_driver(engine: str, module: str, path: str, options: Mapping[str, Any]) -> Driver:
    """Open an embedded engine on the files at `path`, or connect to a server with `options`.

    Raises whatever the driver raises.
    """
    return _OPENERS.get(engine, _open_any)(importlib.import_module(module), path, options)


def _open_duckdb(module: Any, path: str, options: Mapping[str, Any]) -> Driver:
    main = module.connect(path)

    def join() -> _Joined:
        cursor = main.cursor()
        return cursor, None, cursor.close

    return Driver("dollar", join, _set, main.close, f"DuckDB {module.__version__}")


def _open_clickhouse(module: Any, path: str, options: Mapping[str, Any]) -> Driver:
    dbapi = importlib.import_module("chdb.dbapi")
    main = dbapi.connect(path)
    opened: list[Any] = [main]

    def join() -> _Joined:
        connection = dbapi.connect(path)
        opened.append(connection)

        def leave() -> None:
            opened.remove(connection)
            connection.close()

        return connection.cursor(), None, leave

    def close() -> None:
        for connection in reversed(opened):
            connection.close()

    version = f"ClickHouse {module.engine_version} (chdb {module.__version__})"
    return Driver("qmark", join, _set, close, version)


def _open_sqlite(module: Any, path: str, options: Mapping[str, Any]) -> Driver:
    def join() -> _Joined:
        connection = module.connect(path, isolation_level=None, timeout=60.0)
        return connection.cursor(), None, connection.close

    def pragma(name: str, value: object) -> str:
        return f"PRAGMA {_name(name)} = {_literal(value)}"

    return Driver("qmark", join, pragma, lambda: None, f"SQLite {module.sqlite_version}")


def _open_mysql(module: Any, path: str, options: Mapping[str, Any]) -> Driver:
    def join() -> _Joined:
        connection = module.connect(**options, autocommit=True, charset="utf8mb4")
        return connection.cursor(), None, connection.close

    main = module.connect(**options)
    version = str(main.get_server_info()).removeprefix(
        "5.5.5-"
    )  # MariaDB adds this prefix for clients that know only MySQL
    main.close()
    kind = "MariaDB" if "maria" in version.lower() else "MySQL"
    driver = importlib.metadata.version("pymysql")
    return Driver(
        "format",
        join,
        lambda name, value: f"SET SESSION {_name(name)} = {_literal(value)}",
        lambda: None,
        f"{kind} {version} (PyMySQL {driver})",
    )


def _open_any(module: Any, path: str, options: Mapping[str, Any]) -> Driver:
    """Open any other engine whose driver follows PEP 249."""

    def join() -> _Joined:
        connection = module.connect(**options)
        commit: Callable[[], object] | None = None
        if callable(getattr(connection, "autocommit", None)):
            connection.autocommit(True)
        elif hasattr(connection, "autocommit"):
            connection.autocommit = True
        else:
            commit = connection.commit
        return connection.cursor(), commit, connection.close

    with contextlib.closing(module.connect(**options)):
        pass
    version = f"{module.__name__} {getattr(module, '__version__', '')}".strip()
    return Driver(module.paramstyle, join, _set, lambda: None, version)


_OPENERS: dict[str, Callable[[Any, str, Mapping[str, Any]], Driver]] = {
    "duckdb": _open_duckdb,
    "clickhouse": _open_clickhouse,
    "sqlite": _open_sqlite,
    "mysql": _open_mysql,
}


def _set(name: str, value: object) -> str:
    return f"SET {_name(name)} = {_literal(value)}"


def _name(name: str) -> str:
    if not name.replace("_", "").replace(".", "").isalnum():
        raise ValueError(f'"{name}" is not a valid name of a setting')
    return name


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
