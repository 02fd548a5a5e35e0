"""Write the files that a cure hands over: the change, its reversal, the workload, and the experiment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from uncork.engines.conninfo import resolve
from uncork.experiment.cure.handed import down_sql, up_sql
from uncork.experiment.cure.text import guard_toml
from uncork.model.database.workload import CapturedWorkload
from uncork.model.results.cure import Change, CureResult, Handed, Tried, application_changes
from uncork.model.units import count_words
from uncork.report.cure.answer import (
    gain_sentence,
    less_time,
    operation_times,
    operation_word,
    reason_sentence,
    saved_words,
)
from uncork.report.cure.document import pull_request_markdown
from uncork.report.findings import server_conninfo
from uncork.report.write.json_document import json_text
from uncork.store.layout import write_atomically
from uncork.store.run_documents import CURE_FILE
from uncork.workbench.cure.files import write_workload

HANDED: Final = "handed"
"""The folder of the files within the run's folder."""
_REQUEST: Final = "pull-request.md"


def hand_over(
    folder: Path, result: CureResult, workload: CapturedWorkload, source: str
) -> tuple[Handed, ...]:
    """Write the files of a cure into its run's folder, and return what they are for.

    `source` is the connection string of the source.

    Without a proven change, only the captured workload is handed over. Raises StoreError if they
    cannot be written.
    """
    place = folder / HANDED
    place.mkdir(exist_ok=True)
    return tuple(_files(place, result, workload, source))


def write_pull_request(folder: Path, result: CureResult) -> None:
    """Write the description for a pull request, which needs the answer, if a change was proven.

    Raises StoreError if it cannot be written.
    """
    if _proven(result) is not None:
        write_atomically(folder / HANDED / _REQUEST, pull_request_markdown(result))


def _files(place: Path, result: CureResult, workload: CapturedWorkload, source: str) -> Iterator[Handed]:
    chosen, dsn = _proven(result), server_conninfo(result.server)
    if chosen is not None:
        database = resolve(source).database
        members = _members(result, chosen)
        changes = [change for _, change in members]
        headlines = {change.name: tried.finding.headline for tried, change in members if tried is not None}
        write_atomically(place / "up.sql", up_sql(changes, database, headlines))
        yield Handed(f"{HANDED}/up.sql", "the change")
        write_atomically(place / "down.sql", down_sql(changes, database))
        yield Handed(f"{HANDED}/down.sql", "its reversal")
        yield Handed(f"{HANDED}/{_REQUEST}", "a description for a pull request")
        measured = {effect.template for effect in chosen.effects}
        statements = [statement for statement in workload.statements if statement.template in measured]
        if statements:
            guard = guard_toml("cure", "Are the statements of the cure still fast?", dsn, statements)
            write_atomically(place / "guard.toml", guard)
            yield Handed(f"{HANDED}/guard.toml", "for `uncork guard`, which keeps it fixed")
        experiment = Path(chosen.runs[0]) / "experiment.toml" if chosen.runs else None
        if experiment is not None and experiment.is_file():
            write_atomically(place / "experiment.toml", of_source(experiment.read_text(), dsn))
            yield Handed(f"{HANDED}/experiment.toml", "the experiment that measured it")
    yield from hand_over_application(place, result, dsn)
    if workload.statements:
        write_workload(workload, place / "workload")
        yield Handed(f"{HANDED}/workload", "the captured statements, for `uncork load sql -f`")


def _members(result: CureResult, chosen: Change) -> list[tuple[Tried | None, Change]]:
    found: list[tuple[Tried | None, Change]] = [
        (tried, change)
        for tried in result.tried
        for change in tried.changes
        if change.name == tried.best and change.state == "cured" and change.sql in chosen.sql
    ]
    return found or [(None, chosen)]


def _proven(result: CureResult) -> Change | None:
    return result.chosen if result.chosen is not None and result.chosen.state == "cured" else None


APPLICATION: Final = "application"
"""The folder with the changes of the application, within the folder that is handed over."""
_COPY_OF: Final = re.compile(r"^copy_of = .*$", re.MULTILINE)
_LEAST_POOL: Final = 5
"""Connections of a proposed pool at least."""
_IN_THE_APPLICATION: Final = """\
## In the application

Create one pool when the application starts, and take a connection from it for each request. Most libraries
have a pool: psycopg_pool for psycopg, `pool_size` in SQLAlchemy, `CONN_MAX_AGE` in Django, HikariCP for JDBC,
`Pool` in node-postgres, pgxpool for pgx.

The pool was measured with {sessions} at once, as many as were busy on average during the watch. Peaks need
more: begin with {size} connections, and add more if requests wait for one. If several processes have a pool
each, their sizes add up."""
_PGBOUNCER: Final = """\
## Without a change of the code

Put PgBouncer between the application and the server, and let the application connect to port 6432:

```ini
[databases]
{database} = host={host} port={port} dbname={database}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = 6432
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 1000
; auth_type and auth_file: see https://www.pgbouncer.org/config.html
```

Each request then still opens a connection, but to PgBouncer, which starts no process for it. This was not
measured. In transaction mode, SET, LISTEN, temporary tables and advisory locks of a session do not work
beyond a transaction."""


def hand_over_application(place: Path, result: CureResult, dsn: str) -> Iterator[Handed]:
    """Write a folder for each proven change of the application, and yield what the folders are for.

    `dsn` is the connection string of the source, which the experiment copies. Raises StoreError if
    a file cannot be written.
    """
    for change in application_changes(result):
        folder = place / APPLICATION / change.name
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "before.sql", f"{change.undo}\n")
        write_atomically(folder / "after.sql", f"{change.sql}\n")
        experiment = Path(change.runs[0]) / "experiment.toml" if change.runs else None
        measured = experiment is not None and experiment.is_file()
        if experiment is not None and measured:
            write_atomically(folder / "experiment.toml", of_source(experiment.read_text(), dsn))
        word = operation_word(change)
        if word == "request":
            readme = pool_readme(change, dsn, measured=measured)
        elif word:
            readme = transaction_readme(change, measured=measured)
        else:
            readme = application_readme(change, measured=measured)
        write_atomically(folder / "README.md", readme)
        path = f"{place.name}/{APPLICATION}/{change.name}"
        does = "does" if word else "sends"
        yield Handed(path, f"what the application {does} before and after, and the experiment")


def of_source(experiment: str, dsn: str) -> str:
    """Return an experiment file about the source, because the copy exists no more."""
    return _COPY_OF.sub(lambda _: f"copy_of = {json.dumps(dsn)}", experiment, count=1)


def application_readme(change: Change, *, measured: bool) -> str:
    """Return the page about a change of the application: what it brings, and both statements."""
    gain = ""
    if change.net is not None:
        gain = (
            f"The measured statements take {less_time(change.net)}, which {saved_words(change.net)} "
            f"({gain_sentence(change.net)})."
        )
    lines = _before_and_after(change, gain, "send")
    if change.sql != change.undo:
        lines += ["Each `$n` is an array with one value for each row, in the same order.", ""]
    else:
        lines += ["The statement stays the same; only how it is sent differs.", ""]
    return "\n".join([*lines, *_basis(change, measured=measured)])


def _before_and_after(change: Change, gain: str, verb: Literal["send", "do"]) -> list[str]:
    """Return how both pages begin: with the gain, and what the application does before and after."""
    lines = [f"# {change.text.rstrip('. ')}", ""]
    if gain:
        lines += [f"{gain} It was measured on a copy, twice.", ""]
    now = "sends" if verb == "send" else "does"
    lines += [f"The application {now} now:", "", "```sql", change.undo, "```", ""]
    return [*lines, f"Let it {verb} instead:", "", "```sql", change.sql, "```", ""]


def pool_readme(change: Change, dsn: str, *, measured: bool) -> str:
    """Return the page about a pool: what it brings, how to add it to an application, and PgBouncer's file.

    `dsn` is the connection string of the source.
    """
    lines = _before_and_after(change, _operation_gain(change), "do")
    clients = max((effect.clients for effect in change.effects), default=1)
    size = max(_LEAST_POOL, 2 * clients)
    lines += [_IN_THE_APPLICATION.format(sessions=count_words(clients, "session"), size=size), ""]
    lines += [_PGBOUNCER.format(**_address(dsn), size=size), ""]
    return "\n".join([*lines, *_basis(change, measured=measured)])


def transaction_readme(change: Change, *, measured: bool) -> str:
    """Return the page about another way to send a transaction: what it brings, and both ways."""
    lines = _before_and_after(change, _operation_gain(change), "do")
    return "\n".join([*lines, *_basis(change, measured=measured)])


def _operation_gain(change: Change) -> str:
    """Return what a change of requests or transactions brings; empty if it was not measured."""
    if change.net is None:
        return ""
    return (
        f"Each {operation_word(change)} takes {less_time(change.net)}, which "
        f"{saved_words(change.net)}. {reason_sentence(operation_times(change))}"
    )


def _address(dsn: str) -> dict[str, object]:
    found = resolve(dsn)
    return {"database": found.database, "host": found.host, "port": found.port}


def _basis(change: Change, *, measured: bool) -> Iterator[str]:
    yield from ("What the measurement rests on:", "", *(f"- {text}" for text in change.assumed), "")
    if change.against:
        yield from ("What speaks against it:", "", *(f"- {text}" for text in change.against), "")
    if measured:
        yield from ("To measure it again:", "", "    uncork run experiment.toml", "")


def write_cure(folder: Path, result: CureResult) -> None:
    """Write the result of a cure, atomically. Raises StoreError if the file cannot be written."""
    write_atomically(folder / CURE_FILE, json_text(result))
