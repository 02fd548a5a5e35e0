"""Copy a whole database: as a template on its own server, or by pg_dump and pg_restore.

A template is the faster and the more exact way, with the same pages. PostgreSQL allows it on the same server,
while no session is connected to the source. A dump reads the source in one transaction beside its sessions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from uncork.engines.connecting import connect_errors, connect_to_watch
from uncork.engines.conninfo import Address, resolve
from uncork.errors import SetupError
from uncork.model.database.role_settings import LIST_SETTINGS, decides_plans
from uncork.model.server import WATCH_APPLICATION
from uncork.spawn.child import run, scratch_folder

AS_TEMPLATE: Final = "as a template"
"""How a database was copied that has the same pages and statistics."""

_FOLDERS: Final = ("/usr/lib/postgresql", "/usr/local", "/opt/homebrew/opt")
_SHOWN: Final = 300

_SOURCE: Final = """
SELECT current_database(), current_setting('server_version_num')::int, pg_postmaster_start_time()::text,
       pg_database_size(current_database()),
       (SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
           AND application_name <> %s),
       (SELECT datistemplate OR pg_has_role(datdba, 'USAGE') FROM pg_database
         WHERE datname = current_database()),
       (SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user)
"""

_CHOSEN: Final = """
SELECT name, current_setting(name) FROM pg_settings
 WHERE name = ANY(%s) AND source NOT IN ('default', 'override', 'client', 'session')
 ORDER BY name
"""
_SETTINGS: Final = (
    *("shared_buffers", "work_mem", "hash_mem_multiplier", "maintenance_work_mem", "effective_cache_size"),
    *("random_page_cost", "seq_page_cost", "effective_io_concurrency", "jit", "default_statistics_target"),
    *("max_parallel_workers_per_gather", "max_parallel_workers", "synchronous_commit"),
)


_OWN: Final = """
SELECT split_part(entry, '=', 1), substr(entry, strpos(entry, '=') + 1)
  FROM pg_db_role_setting CROSS JOIN unnest(setconfig) AS entry
 WHERE setrole = 0 AND setdatabase = (SELECT oid FROM pg_database WHERE datname = %s)
"""


@dataclass(frozen=True, slots=True)
class SourceDatabase:
    """A database to copy. `started` identifies its server's process.

    `sessions` counts the other clients that are connected to it. Sessions with which uncork watched it do not
    count: they are ending, and PostgreSQL waits five seconds for that before it copies. `template` is true if
    the role may copy it as a template, `creates` if it may create databases. `settings` are those of its
    server that plans and caches depend on, unless they have their default. `own_settings` are those of the
    database itself, which a copy as a template lacks.
    """

    name: str
    major: int
    started: str
    bytes: int
    sessions: int
    template: bool
    creates: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    own_settings: Mapping[str, str] = field(default_factory=dict)


def read_source(conninfo: str) -> SourceDatabase:
    """Return the facts of a database; the connection only reads.

    Raises ConnectError if the server cannot be reached.
    """
    with connect_errors(), connect_to_watch(conninfo) as connection:
        row = connection.execute(_SOURCE, [WATCH_APPLICATION]).fetchone()
        assert row is not None  # noqa: S101 -- a SELECT without FROM returns one row
        name, version, started, size, sessions, template, creates = row
        settings: dict[str, str] = dict(connection.execute(_CHOSEN, [list(_SETTINGS)]).fetchall())
        own = read_own_settings(connection, name)
    return SourceDatabase(name, version // 10000, started, size, sessions, template, creates, settings, own)


def copy_database(
    conninfo: str,
    control: psycopg.Connection,
    target: Address,
    create: Callable[[str | None], None],
    name: str,
) -> str:
    """Copy a database to `name` on the server of `control`; return how.

    `create` creates the target from a template, or empty. `target` is the server's address. Raises
    ConnectError if the source cannot be reached; SetupError if the database cannot be copied.
    """
    source = read_source(conninfo)
    here = "SELECT pg_postmaster_start_time()::text FROM pg_database WHERE datname = %s"
    same = control.execute(here, [source.name]).fetchone() == (source.started,)
    refused = ""
    if same and source.template and not source.sessions:
        try:
            create(source.name)
            return AS_TEMPLATE
        except (psycopg.errors.ObjectInUse, psycopg.errors.InsufficientPrivilege) as error:
            refused = f" ({error.diag.message_primary})"
    programs = dump_programs(source.major)
    if programs is None:
        raise SetupError(_neither(source, same=same, refused=refused))
    create(None)
    _dump(programs, conninfo, replace(target, database=name), source.name)
    return f"by pg_dump and pg_restore {version_of(programs)}"


def read_own_settings(connection: psycopg.Connection[Any], database: str) -> dict[str, str]:
    """Return the settings of a database that plans, caches or answers depend on.

    Raises psycopg.Error if the connection fails.
    """
    rows = connection.execute(_OWN, [database]).fetchall()
    return {name: value for name, value in rows if decides_plans(name)}


def give_settings(connection: psycopg.Connection[Any], database: str, settings: Mapping[str, str]) -> None:
    """Apply settings to all later sessions of a database. Skip a setting that needs a superuser.

    Raises psycopg.Error if the connection fails, or a value is not valid.
    """
    for name, value in settings.items():
        command = sql.SQL("ALTER DATABASE {} SET {} = {}").format(
            sql.Identifier(database),
            sql.Identifier(name),
            sql.SQL(value) if name in LIST_SETTINGS and value else sql.Literal(value),
        )
        with suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute(command)


def dump_programs(major: int) -> Path | None:
    """Return the folder of the oldest pg_dump that can read servers of this version, or None."""
    found = []
    for folder in _folders():
        if (
            (folder / "pg_restore").exists()
            and (version := version_of(folder)) is not None
            and version >= major
        ):
            found.append((version, folder))
    return min(found)[1] if found else None


def _neither(source: SourceDatabase, *, same: bool, refused: str) -> str:
    many = source.sessions
    if not same:
        why = f"it is not on the server of this run, and no pg_dump of PostgreSQL {source.major} is installed"
        remedy = f"install the client programs of PostgreSQL {source.major}, or add --dsn with its server"
    elif many:
        sessions = "1 other session is" if many == 1 else f"{many} other sessions are"
        why = f"{sessions} connected to it, and no pg_dump of PostgreSQL {source.major} is installed"
        remedy = f"stop the service, or install the client programs of PostgreSQL {source.major}"
    else:
        why = f"the role may not use it as a template{refused}, and no pg_dump of PostgreSQL "
        why += f"{source.major} is installed"
        remedy = f"connect as its owner, or install the client programs of PostgreSQL {source.major}"
    return f"cannot copy database {source.name}: {why}; {remedy}"


def _dump(programs: Path, conninfo: str, target: Address, name: str) -> None:
    with scratch_folder("uncork-dump-") as folder:
        file = str(folder / "dump")
        common = ("--no-owner", "--no-privileges", "--no-publications", "--no-subscriptions")
        source = resolve(conninfo)
        _run(
            [str(programs / "pg_dump"), "--format=custom", "--compress=1", *common, f"--file={file}"],
            source,
            name,
        )
        _run([str(programs / "pg_restore"), "--exit-on-error", *common, file], target, name)


def _run(command: list[str], address: Address, name: str) -> None:
    """Run a program on a database. The password goes through the environment, which others cannot read."""
    environment = {**os.environ, "PGCONNECT_TIMEOUT": "10"}
    if address.password is not None:
        environment["PGPASSWORD"] = address.password
    database = replace(address, password=None).conninfo()
    try:
        done = run([*command[:1], f"--dbname={database}", *command[1:]], env=environment, **_OUTPUT)
    except OSError as error:
        raise SetupError(f"cannot start {command[0]}: {error.strerror}") from error
    if done.returncode:
        complaint = " ".join(done.stderr.split())
        raise SetupError(
            f"cannot copy database {name}: {Path(command[0]).name} ended with status {done.returncode}: "
            f"{complaint[:_SHOWN]}"
        )


_OUTPUT: Final[dict[str, Any]] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.DEVNULL,
    "stderr": subprocess.PIPE,
    "text": True,
}


def _folders() -> Iterable[Path]:
    program = shutil.which("pg_dump")
    if program is not None and Path(program).resolve().name == "pg_dump":  # not a wrapper of Debian
        yield Path(program).parent
    for parent in _FOLDERS:
        yield from (path.parent for path in Path(parent).glob("*/bin/pg_dump"))
    yield from (path.parent for path in Path("/usr").glob("pgsql-*/bin/pg_dump"))


def version_of(folder: Path) -> int | None:
    """Return the major version of a folder's pg_dump; None if it does not start."""
    try:
        done = run([str(folder / "pg_dump"), "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"(\d+)(\.\d+|devel|beta\d+|rc\d+)", done.stdout)
    return int(found[1]) if found else None
