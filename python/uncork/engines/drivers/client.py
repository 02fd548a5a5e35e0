"""The client process of an engine that has a Python driver. It takes jobs as JSON and answers in JSON.

An embedded engine runs inside the client process, which separates its crashes, memory and processor time from
uncork's own. A job is one line on standard input. Answers are lines of JSON::

    facts    -> {"version"}
    script   -> {} after the last statement, or {"error", "line"}
    answers  -> {"answers": [[operation, statement, rows]]}, values as `model.answer` writes them
    plan     -> {"text"}
    load     -> {"ready": true}; then, after one more line of input, the measurements

If anything fails, the answer is {"error": text} and the process ends. After a load, the process
keeps the engine open and waits for the next load; it closes the engine and exits when its standard
input ends. After any other job it exits. Whatever the engine prints goes to standard error.

A load is a closed loop: each client starts its next operation when the previous one has ended. The end of an
operation is the intended start of the next, so any time the client spends in between counts as latency. An
operation includes fetching all rows. Python's garbage collector is off while the clock runs.
"""

from __future__ import annotations

import array
import base64
import contextlib
import gc
import importlib
import importlib.metadata
import itertools
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from uncork.engines.drivers.dialect import place, returns_rows
from uncork.model.answer import canonical

_Joined = tuple[Any, Callable[[], object] | None, Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement in its driver's style: text, order or names of its parameters, whether it returns rows."""

    text: str
    order: tuple[int, ...]
    names: tuple[str, ...]
    rows: bool


@dataclass(frozen=True, slots=True)
class Session:
    """One client's cursor. `commit` ends each operation if the driver has no autocommit, else it is None.

    Close a session in the thread that opened it, because some drivers require this.
    """

    cursor: Any
    commit: Callable[[], object] | None
    close: Callable[[], object]

    def execute(self, statement: Prepared, values: Sequence[object]) -> list[Any] | int:
        """Execute a statement; return all rows, or the number of changed rows (0 if the driver has none)."""
        cursor = self.cursor
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


@dataclass(frozen=True, slots=True)
class Driver:
    """An open engine that gives each client a session.

    `style` is the parameter style (see `dialect.place`). `join` opens a cursor for another client; it returns
    it with a function that commits, or None if the driver commits itself, and a function that closes it.
    `setting` writes a setting as a statement. `version` is the engine's name and version.
    """

    style: str
    join: Callable[[], _Joined]
    setting: Callable[[str, object], str]
    close: Callable[[], object]
    version: str

    def session(self, settings: Mapping[str, object]) -> Session:
        """Open a client's session with these settings."""
        session = Session(*self.join())
        for name, value in settings.items():
            session.execute(self.prepare(self.setting(name, value), 0), ())
        return session

    def prepare(self, sql: str, count: int) -> Prepared:
        """Rewrite a statement with ``$1`` ... ``$count`` in the driver's style."""
        text, order = place(sql, self.style, count)
        named = self.style in ("named", "pyformat")
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


NOTHING = "SELECT 1"
"""A statement that every engine understands and that costs next to nothing."""


def main() -> None:
    """Run one job, or a sequence of loads, and exit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends its clients
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.loads(sys.stdin.readline())
    try:
        driver = open_driver(job["engine"], job["module"], job["path"], job["options"])
        if job["kind"] == "load":
            _loads(answers, driver, job)
        else:
            jobs = {"script": _script, "answers": _answers, "plan": _plan, "facts": _facts}
            found = next(jobs[job["kind"]](driver, job))
            driver.close()
            _send(answers, found)  # the engine's files are complete now
    except Exception as error:  # noqa: BLE001 -- each driver has its own errors; all are reported to the run
        _send(answers, {"error": _message(error)})
        os._exit(1)
    os._exit(0)  # do not wait for threads that an engine keeps


def _send(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _facts(driver: Driver, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    driver.session(job["settings"])
    yield {"version": driver.version}


def _script(driver: Driver, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    session = driver.session(job["settings"])
    for line, text in job["pieces"]:
        try:
            session.execute(driver.prepare(text, 0), ())
            if session.commit is not None:
                session.commit()
        except Exception as error:  # noqa: BLE001 -- see main
            yield {"error": _message(error), "line": line}
            return
    yield {}


def _answers(driver: Driver, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    work = _Work(driver, job)
    session = driver.session(job["settings"])
    found: list[tuple[int, str, list[list[str | None]]]] = []
    for number in range(job["operations"]):
        values = work.values(number)
        for name, statement, columns in work.statements:
            answer = session.execute(statement, [values[column] for column in columns])
            if not isinstance(answer, int):
                rows = [[canonical(value) for value in row] for row in answer]
                found.append((number + 1, name, rows))
        if session.commit is not None:
            session.commit()
    yield {"answers": found}


def _plan(driver: Driver, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    session = driver.session(job["settings"])
    rows = session.execute(driver.prepare(job["sql"], len(job["values"])), job["values"])
    lines = [] if isinstance(rows, int) else [str(row[-1]) for row in rows]
    yield {"text": "\n".join(lines)}


class _Work:
    """The prepared statements of an operation, and its parameters."""

    def __init__(self, driver: Driver, job: dict[str, Any]) -> None:
        self._columns: list[list[object]] = [
            [None if text is None else int(text) for text in column] if number in job["numbers"] else column
            for number, column in enumerate(job["parameters"])
        ]
        self._rows = len(self._columns[0]) if self._columns else 1
        self.statements: list[tuple[str, Prepared, list[int]]] = [
            (
                statement["name"],
                driver.prepare(statement["sql"], len(statement["columns"])),
                statement["columns"],
            )
            for statement in job["statements"]
        ]
        self.transaction = (
            (driver.prepare("BEGIN", 0), driver.prepare("COMMIT", 0), driver.prepare("ROLLBACK", 0))
            if job.get("transaction")
            else None
        )

    def values(self, number: int) -> list[object]:
        """Return the parameters of one operation."""
        row = number % self._rows
        return [column[row] for column in self._columns]


@dataclass(slots=True)
class _Tally:
    """The counts of one client. ``started = len(operation) + sum(errors.values())`` once it has stopped."""

    started: int = 0
    rows: int = 0
    end_ns: int = 0
    operation: array.array[int] = field(default_factory=lambda: array.array("Q"))
    statements: list[array.array[int]] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    message: str | None = None
    lost: bool = False


def _loads(answers: TextIO, driver: Driver, job: dict[str, Any]) -> None:
    """Run loads until standard input ends."""
    while True:
        load = _Load(driver, job)
        load.warm_up()
        _send(answers, {"ready": True})
        sys.stdin.readline()
        found = load.measure()
        _send(answers, found)
        if found["outcome"] == "deadline":  # operations that still run would delay the next load
            return
        line = sys.stdin.readline()
        if not line:
            driver.close()
            return
        job = json.loads(line)


class _Load:
    """One trial: `clients` threads, each with its own session."""

    def __init__(self, driver: Driver, job: dict[str, Any]) -> None:
        self._driver = driver
        self._work = _Work(driver, job)
        self._job = job
        self._tallies = [
            _Tally(statements=[array.array("Q") for _ in self._work.statements])
            for _ in range(job["clients"])
        ]
        self._next = itertools.count()
        self._go = threading.Event()
        self._ended = threading.Semaphore(0)
        self._over = threading.Event()
        self._ready = threading.Barrier(job["clients"] + 1)
        self._until_ns: int | None = None
        self._failed: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._client, args=(number,), daemon=True)
            for number in range(job["clients"])
        ]

    def warm_up(self) -> None:
        """Open every session and run the operations that are not measured."""
        for thread in self._threads:
            thread.start()
        self._ready.wait()
        if self._failed:
            raise self._failed[0]

    def measure(self) -> dict[str, Any]:
        """Run the clients until they end or the trial's deadline passes; return their counts and times.

        Each session is closed when its client has ended.
        """
        gc.collect()
        gc.freeze()
        gc.disable()
        before = resource.getrusage(resource.RUSAGE_SELF)
        start_ns = time.perf_counter_ns()
        if self._job["duration_ns"] is not None:
            self._until_ns = start_ns + self._job["duration_ns"]
        deadline_ns = start_ns + self._job["deadline_ns"]
        self._go.set()
        cut = False
        for _ in self._threads:
            left_s = max(0.0, (deadline_ns - time.perf_counter_ns()) / 1e9)
            cut = not self._ended.acquire(timeout=left_s) or cut
        now_ns = time.perf_counter_ns()
        after = resource.getrusage(resource.RUSAGE_SELF)
        gc.enable()
        if not cut:
            self._over.set()
            for thread in self._threads:
                thread.join()
        lost = any(tally.lost for tally in self._tallies)
        return {
            "outcome": "deadline" if cut else "connection lost" if lost else "complete",
            "message": next((tally.message for tally in self._tallies if tally.message), None),
            "start_ns": start_ns,
            "end_ns": now_ns if cut else max(tally.end_ns for tally in self._tallies),
            "user_ns": round((after.ru_utime - before.ru_utime) * 1e9),
            "system_ns": round((after.ru_stime - before.ru_stime) * 1e9),
            "clients": [self._report(tally) for tally in self._tallies],
        }

    def _report(self, tally: _Tally) -> dict[str, Any]:
        """Return the counts of a client; operations that had not ended at the deadline count as failed."""
        started, succeeded = tally.started, len(tally.operation)
        errors = dict(tally.errors)
        if unfinished := started - succeeded - sum(errors.values()):
            errors["unfinished"] = unfinished
        return {
            "started": started,
            "succeeded": succeeded,
            "rows": tally.rows,
            "errors": errors,
            "operation": _packed(tally.operation[:succeeded]),
            "statements": [_packed(statement) for statement in tally.statements],
        }

    # ---- one client ----

    def _client(self, number: int) -> None:
        session: Session | None = None
        try:
            session = self._driver.session(self._job["settings"])
            for place in range(number, self._job["warmup"], self._job["clients"]):
                self._operation(session, place, None)
        except Exception as error:  # noqa: BLE001 -- raised again by the main thread
            self._failed.append(error)
        self._ready.wait()
        self._go.wait()
        if session is None or self._failed:
            return
        try:
            self._closed_loop(session, self._tallies[number])
        finally:
            self._ended.release()
        self._over.wait()  # close only after the clocks were read: closing is not part of the load
        session.close()

    def _closed_loop(self, session: Session, tally: _Tally) -> None:
        most, until_ns = self._job["operations"], self._until_ns
        first = self._job["warmup_all"] + self._job["first"]
        stride = self._job["stride"]
        now_ns = time.perf_counter_ns()
        while until_ns is None or now_ns < until_ns:
            place = next(self._next)
            if most is not None and place >= most:
                break
            tally.started += 1
            start_ns = now_ns
            try:
                rows = self._operation(session, first + place * stride, tally)
            except Exception as error:  # noqa: BLE001 -- counted by its name; the first one is reported
                now_ns = time.perf_counter_ns()
                self._count(session, tally, error)
                if tally.lost:
                    break
                continue
            now_ns = time.perf_counter_ns()
            tally.operation.append(now_ns - start_ns)
            tally.rows += rows
        tally.end_ns = now_ns

    def _operation(self, session: Session, place: int, tally: _Tally | None) -> int:
        work = self._work
        values = work.values(place)
        if work.transaction is not None:
            session.execute(work.transaction[0], ())
        rows = 0
        single = len(work.statements) == 1
        for number, (_, statement, columns) in enumerate(work.statements):
            start_ns = 0 if single or tally is None else time.perf_counter_ns()
            found = session.execute(statement, [values[column] for column in columns])
            if not single and tally is not None:
                tally.statements[number].append(time.perf_counter_ns() - start_ns)
            rows += found if isinstance(found, int) else len(found)
        if work.transaction is not None:
            session.execute(work.transaction[1], ())
        elif session.commit is not None:
            session.commit()
        return rows

    def _count(self, session: Session, tally: _Tally, error: Exception) -> None:
        """Count an error. If the engine does not answer the simplest statement, the connection is lost."""
        name = type(error).__name__
        tally.errors[name] = tally.errors.get(name, 0) + 1
        tally.message = tally.message or _message(error)
        try:
            if self._work.transaction is not None:
                session.execute(self._work.transaction[2], ())
            session.execute(self._driver.prepare(NOTHING, 0), ())
        except Exception:  # noqa: BLE001 -- the first error is the one to report
            tally.lost = True


def _packed(values: array.array[int]) -> str:
    return base64.b64encode(values.tobytes()).decode()


def _message(error: Exception) -> str:
    """Return an error's message in one line, without the traceback that some drivers include."""
    text = " ".join(str(error).partition("Traceback (most recent call last)")[0].split())
    return text or type(error).__name__


if __name__ == "__main__":
    main()
