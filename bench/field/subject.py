"""Start and stop a real service with a PostgreSQL of its own, for checks of what uncork reports about it.

A subject is a service with its database. `main` gives every subject the same commands:

    python bench/field/NAME.py start --folder DIR [--plant BOTTLENECK] [--log-statements]
    python bench/field/NAME.py stop --folder DIR
    python bench/field/NAME.py plants

``start`` installs what is missing into DIR, creates and fills the database once, starts the service, and
prints a JSON object with its URLs, connection string and process ids. ``stop`` ends exactly these processes.
Everything listens on loopback only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from processes import STATE, Process, answers, free_port, record, spawn, start_time, stop, wait

HERE = Path(__file__).resolve().parent
PINS = HERE / "pins"
_SERVER_SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "compute_query_id": "on",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
}
"""Everything else keeps PostgreSQL's default."""


@dataclass(frozen=True, slots=True)
class Database:
    """A running PostgreSQL server and the database of the subject in it."""

    binaries: Path
    port: int
    name: str

    @property
    def dsn(self) -> str:
        """Return the connection string, as a URI."""
        return f"postgresql://field:field@127.0.0.1:{self.port}/{self.name}"

    def run(self, sql: str, *, database: str = "") -> str:
        """Execute SQL with psql and return its unaligned output; raise SystemExit if a statement fails."""
        command = [str(self.binaries / "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1"]
        command += ["-h", "127.0.0.1", "-p", str(self.port), "-U", "field", "-d", database or self.name]
        done = subprocess.run(command, input=sql, text=True, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"psql failed: {done.stderr.strip()}")
        return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a subject lives: its folder, its database, and the port of its service."""

    folder: Path
    database: Database
    port: int
    rows: int
    plants: frozenset[str]
    server: str = ""
    """Which HTTP server runs the service, if the subject offers a choice; empty for its default."""


@dataclass(frozen=True, slots=True)
class Service:
    """How to start a service: its command, its environment, and a path that answers once it is ready."""

    command: Sequence[str]
    ready: str
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


class Subject(ABC):
    """A service with its database: what to install, what to fill, what to start."""

    name: str
    plants: ClassVar[dict[str, str]]
    """Bottlenecks that `start --plant` adds, with what each one changes."""

    servers: ClassVar[Sequence[str]] = ()
    """HTTP servers to choose from with `start --server`; the first is the default."""

    @abstractmethod
    def install(self, folder: Path) -> None:
        """Install the service into the folder, unless it is there."""

    @abstractmethod
    def fill(self, place: Place) -> None:
        """Create and fill the tables. Called once in a folder's life."""

    def prepare(self, place: Place) -> None:  # noqa: B027
        """Add and remove planted bottlenecks in the database. Called at every start."""

    @abstractmethod
    def service(self, place: Place) -> Service:
        """Return how to start the service."""

    @abstractmethod
    def urls(self, place: Place) -> dict[str, str]:
        """Return the paths to load, by a short name."""

    def headers(self, place: Place) -> dict[str, str]:
        """Return the headers that each request must have."""
        del place
        return {}


def main(subject: Subject) -> None:
    """Run the command line of one subject."""
    parser = argparse.ArgumentParser(description=(sys.modules["__main__"].__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    start_verb = verbs.add_parser("start", help="install, fill and start")
    start_verb.add_argument("--folder", type=Path, required=True)
    start_verb.add_argument("--rows", type=int, default=200_000, help="rows of the main table")
    start_verb.add_argument("--plant", action="append", default=[], choices=sorted(subject.plants))
    start_verb.add_argument("--server", default="", choices=["", *subject.servers])
    start_verb.add_argument("--log-statements", action="store_true", help="log every statement's duration")
    stop_verb = verbs.add_parser("stop", help="end what start started")
    stop_verb.add_argument("--folder", type=Path, required=True)
    verbs.add_parser("plants", help="list the bottlenecks that start --plant adds")
    options = parser.parse_args()
    if options.verb == "plants":
        print(json.dumps(dict(subject.plants), indent=2))
    elif options.verb == "stop":
        stop(options.folder.resolve())
    else:
        plants, folder = frozenset(options.plant), options.folder.resolve()
        try:
            started = _start(subject, folder, options.rows, plants, options.server, options.log_statements)
        except BaseException:
            stop(folder)
            raise
        print(json.dumps(started, indent=2))


def install_python(folder: Path, pins: Path) -> Path:
    """Install a pinned set of packages into a virtual environment in the folder; return its bin folder."""
    binaries, stamp = folder / "venv" / "bin", folder / "venv" / "installed"
    wanted = pins.read_bytes()
    digest = hashlib.sha256(wanted).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        pip = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", str(pins)], check=True, stdout=sys.stderr)
        stamp.write_text(digest)
    return binaries


def _start(
    subject: Subject, folder: Path, rows: int, plants: frozenset[str], server: str, log_statements: bool
) -> dict[str, object]:
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / STATE).exists():
        raise SystemExit(f'"{folder}" has a running service; end it with: stop --folder {folder}')
    seconds, processes = {}, []
    begun = time.monotonic()
    subject.install(folder)
    seconds["install"] = time.monotonic() - begun
    begun = time.monotonic()
    binaries = _server_binaries()
    database = Database(binaries, free_port(), subject.name)
    processes.append(_start_database(folder, database, log_statements))
    record(folder, processes)
    wait(lambda: _accepts(database), 30, folder / "postgres.log")
    place = Place(folder, database, free_port(), rows, plants, server or next(iter(subject.servers), ""))
    filled = folder / "filled"
    if not filled.exists():
        database.run(f'DROP DATABASE IF EXISTS "{subject.name}"', database="postgres")
        database.run(f'CREATE DATABASE "{subject.name}"', database="postgres")
        database.run("CREATE EXTENSION pg_stat_statements")
        subject.fill(place)
        database.run("VACUUM ANALYZE")
        filled.write_text(str(rows))
    subject.prepare(place)
    seconds["fill"] = time.monotonic() - begun
    begun = time.monotonic()
    service = subject.service(place)
    log = folder / "service.log"
    processes.append(spawn(service.command, log, service.environment, service.folder or folder))
    record(folder, processes)
    base = f"http://127.0.0.1:{place.port}"
    wait(lambda: answers(base + service.ready, subject.headers(place)), 60, log)
    seconds["start"] = time.monotonic() - begun
    database.run("SELECT pg_stat_statements_reset()")
    return {
        "urls": {name: base + path for name, path in subject.urls(place).items()},
        "headers": subject.headers(place),
        "dsn": database.dsn,
        "service_pid": processes[1].pid,
        "postgres_pid": processes[0].pid,
        "log": str(folder / "postgres.log"),
        "plants": sorted(plants),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
    }


def _start_database(folder: Path, database: Database, log_statements: bool) -> Process:
    data = folder / "postgres"
    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    if not (data / "PG_VERSION").exists():
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(mode=0o700)
        if user:
            shutil.chown(data, user)
        command = [str(database.binaries / "initdb"), "-D", str(data), "-U", "field", "-A", "trust"]
        command += ["-E", "UTF8", "--no-locale"]
        done = spawn(command, folder / "initdb.log", {}, Path("/"), user)
        wait(lambda: not start_time(done.pid), 60)
    settings = dict(_SERVER_SETTINGS, port=str(database.port))
    if log_statements:
        settings |= {"log_min_duration_statement": "0", "log_line_prefix": "%m [%p] %q%u@%d %a "}
    command = [str(database.binaries / "postgres"), "-D", str(data)]
    command += [f"--{name}={value}" for name, value in settings.items()]
    return spawn(command, folder / "postgres.log", {}, Path("/"), user)


def _server_binaries() -> Path:
    chosen = os.environ.get("FIELD_POSTGRES_BIN")
    found = [Path(chosen)] if chosen else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found or not (found[-1] / "initdb").exists():
        raise SystemExit("no PostgreSQL found; set FIELD_POSTGRES_BIN to the folder of initdb and psql")
    return found[-1]


def _accepts(database: Database) -> bool:
    ask = [str(database.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(database.port)]
    ask += ["-U", "field", "-d", "postgres"]
    return subprocess.run(ask, check=False).returncode == 0
