"""An engine with a Python driver, as the runner uses it: data, answers and load, each in a client process.

An embedded engine has one folder per run. The set-up fills a template once, which is then copied
for every arm. The trials of a round open their arm's files in one process. The next round starts a
new process, which restarts the engine. On a MySQL server, each arm has its own database, filled by
its set-up. On any other server, the set-up simply runs in the database that `connect` leads to.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from uncork.engines import process
from uncork.engines.drivers.dbapi_load import Crew, ask, run_driven, work_of
from uncork.engines.drivers.dialect import may_write, split_script
from uncork.errors import ServerCrash, SetupError
from uncork.model.answer import Answer, digest, plain
from uncork.model.engine import EngineKind
from uncork.model.extras import install_extra
from uncork.model.measurement import Measurement
from uncork.model.request import LoadRequest
from uncork.model.server import ExecutedPlan, Relation, Snapshot, Target
from uncork.model.trial import Arm, Cell

MYSQL_DSN = "UNCORK_MYSQL_DSN"
"""Environment variable with the address of the MySQL or MariaDB server, ``mysql://user:password@host:port``.
"""

_FOLDER = "{folder}"
_ASK_S = 600.0
_DIGITS = re.compile(r"\d+(?:\.\d+)?")

Placement = tuple[Cell, Arm]


class DbapiEngine:
    """One engine, with the data of the variants that use it.

    `options` are arguments of its driver's `connect`; ``{folder}`` in a text stands for the arm's own folder.
    """

    def __init__(self, kind: EngineKind, options: Mapping[str, Any]) -> None:
        self.kind = kind
        self.version = kind.title
        self._options = dict(options)
        self._folder: Path | None = None
        self._templates: dict[tuple[Cell, str], Path] = {}
        self._scripts: dict[tuple[Cell, str], tuple[str, int]] = {}
        self._settings: dict[tuple[Cell, str], Mapping[str, object]] = {}
        self._places: dict[Placement, str] = {}
        self._written: set[Placement] = set()
        self._crew = Crew()

    @property
    def embedded(self) -> bool:
        """Whether the engine runs inside the client process, on files that can be copied."""
        return self.kind.embedded or any(_FOLDER in str(value) for value in self._options.values())

    # ---- life ----

    def start(self) -> str | None:
        """Check that the engine can be used. Return why it cannot, or None."""
        try:
            found = importlib.util.find_spec(self.kind.module) is not None
        except (ImportError, ValueError):
            found = False
        if not found:
            remedy = f"install the package that provides it into {sys.executable}"
            remedy = install_extra(self.kind.extra) if self.kind.extra else remedy
            return f"its driver {self.kind.module} is not installed for this Python: {remedy}"
        if self.kind.name == "mysql":
            try:
                self._options = {**_mysql_options(os.environ.get(MYSQL_DSN)), **self._options}
            except SetupError as error:
                return str(error)
        self._folder = process.owned_folder("db-")
        probe = self._root / "probe"
        probe.mkdir()
        try:
            self.version = ask(self._job("facts", {}, probe), 30.0)["version"]
        except (SetupError, ServerCrash) as error:
            return f"it cannot be used: {self._redacted(str(error))}"
        finally:
            shutil.rmtree(probe, ignore_errors=True)
        return None

    def stop(self) -> None:
        """Remove everything that the run created on the engine. Safe to call twice."""
        self._crew.end()
        if self.kind.name == "mysql" and self._places:
            with contextlib.suppress(SetupError, ServerCrash):
                self._execute([f"DROP DATABASE IF EXISTS `{name}`" for name in set(self._places.values())])
        self._places.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def restart(self) -> None:
        """End the client processes, and with them an embedded engine. The next trial starts new ones."""
        self._crew.leave()

    # ---- data ----

    def build(
        self, cell: Cell, variant: str, script: str, settings: Mapping[str, object], timeout_ns: int
    ) -> None:
        """Create a variant's data in a cell by running its set-up.

        Raises:
            SetupError: with the line and the engine's message.
        """
        key = (cell, variant)
        self._scripts[key] = (script, timeout_ns)
        self._settings[key] = settings
        where = f"set-up of variant {variant}{cell.at}"
        if not self.embedded:
            if self.kind.name != "mysql" and len(self._scripts) > 1:
                raise SetupError(
                    f"{where}: {self.kind.name} uses a single database, which already holds the data of "
                    "another set-up; use {folder} in connect, or one variant and one cell"
                )
            self._remake((cell, Arm(variant)), where)
            return
        template = self._root / f"t{len(self._templates)}"
        template.mkdir()
        self._templates[key] = template
        self._run_script(key, template, where)

    def restore(self, cell: Cell, arm: Arm) -> None:
        """Restore an arm's data to the state that `build` left. Does nothing if the arm has not written.

        Raises SetupError if there is no space for the copy.
        """
        placement = (cell, arm)
        if placement in self._places and placement not in self._written:
            return
        self._written.discard(placement)
        self._crew.leave(_database_name(cell, arm))
        if not self.embedded:
            self._remake(placement, f"set-up of variant {arm.variant}{cell.at}")
            return
        folder = self._root / self._places.setdefault(placement, f"l{len(self._places)}")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            shutil.copytree(self._templates[(cell, arm.variant)], folder, symlinks=True)
        except (OSError, shutil.Error) as error:
            raise SetupError(
                f"cannot copy the data of variant {arm.variant}: {error}; free some space, or set "
                "UNCORK_SERVERS to a folder on a larger disk"
            ) from error

    def undo(self, cell: Cell, arm: Arm, statements: Sequence[str]) -> None:
        """Execute statements that undo a trial. Raises SetupError."""
        job = self._arm_job("script", cell, arm)
        self._ask({**job, "pieces": [(1, text) for text in statements]}, _ASK_S)
        self._written.discard((cell, arm))

    # ---- load ----

    def target(self, cell: Cell, arm: Arm) -> Target:
        """Return the target of an arm's load."""
        job = self._arm_job("load", cell, arm)
        return Target(_database_name(cell, arm), job, engine=self.kind.name)

    def run(self, cell: Cell, arm: Arm, request: LoadRequest) -> Measurement:
        """Run one trial on an arm's data. Raises LoadError."""
        self.wrote(cell, arm, [statement.sql for statement in request.statements])
        return run_driven(request, embedded=self.embedded, crew=self._crew)

    def wrote(self, cell: Cell, arm: Arm, statements: Sequence[str]) -> None:
        """Record which statements an arm's load executes. If they may write, `restore` becomes necessary."""
        if may_write(statements):
            self._written.add((cell, arm))

    # ---- questions ----

    def column(self, cell: Cell, arm: Arm, query: str) -> list[str | None]:
        """Return a query's first column as text. Raises SetupError."""
        return [plain(row[0]) for row in self._query(cell, arm, query)]

    def answer_digest(self, cell: Cell, arm: Arm, query: str) -> str:
        """Return a digest of a query's rows that does not depend on their order. Raises SetupError."""
        return digest(self._query(cell, arm, query), ordered=False)

    def answers(self, cell: Cell, arm: Arm, request: LoadRequest) -> list[Answer]:
        """Execute a request's operations once, with one client; return the answers of its statements.

        Raises:
            SetupError: with the engine's message.
        """
        self.wrote(cell, arm, [statement.sql for statement in request.statements])
        job = self._arm_job("answers", cell, arm)
        job["settings"] |= request.settings
        job |= {**work_of(request), "operations": request.operations or 1}
        found = self._ask(job, request.deadline_ns / 1e9)["answers"]
        return [Answer(number, name, tuple(map(tuple, rows))) for number, name, rows in found]

    def explain(
        self,
        cell: Cell,
        arm: Arm,
        name: str,
        statement: str,
        values: Sequence[str | None],
        settings: Mapping[str, str],
    ) -> ExecutedPlan | None:
        """Return a statement's plan in the engine's format; None if it has none, or may write."""
        if not self.kind.explain or may_write([statement]):
            return None
        job = self._arm_job("plan", cell, arm)
        job["settings"] |= settings
        job |= {"sql": f"{self.kind.explain} {statement}", "values": list(values)}
        try:
            text = self._ask(job, _ASK_S)["text"]
        except SetupError:
            return None
        return ExecutedPlan(name, text, _DIGITS.sub("?", text), None, None)

    def relations(self, cell: Cell, arm: Arm) -> list[Relation]:
        """Return the total size of an embedded engine's files; an empty list for a server."""
        template = self._templates.get((cell, arm.variant))
        if template is None:
            return []
        size = sum(path.stat().st_size for path in template.rglob("*") if path.is_file())
        return [Relation("all files", "table", "all files", size, None, None)]

    def snapshot(self, cell: Cell, arm: Arm, *, updates: bool = False) -> Snapshot:
        """Return an empty snapshot: these engines have no counters."""
        return Snapshot("", 0)

    # ---- steps ----

    @property
    def _root(self) -> Path:
        if self._folder is None:
            raise SetupError(f"{self.kind.title} was not started")
        return self._folder

    def _database(self, cell: Cell, arm: Arm) -> dict[str, Any]:
        return {"database": self._places[(cell, arm)]} if self.kind.name == "mysql" else {}

    def _arm_job(self, kind: str, cell: Cell, arm: Arm) -> dict[str, Any]:
        """Return a job on an arm's data, with its settings.

        Only one process can have an embedded engine open. So the clients of earlier trials exit
        first, unless the job is another load.
        """
        if kind != "load":
            self._crew.leave(_database_name(cell, arm))
        folder = self._root / self._places[(cell, arm)] if self.embedded else None
        settings = self._settings[(cell, arm.variant)]
        return self._job(kind, settings, folder, **self._database(cell, arm))

    def _job(
        self, kind: str, settings: Mapping[str, object], folder: Path | None, **database: object
    ) -> dict[str, Any]:
        """Return a job; an embedded engine has its data, a file or a folder, in `folder`."""
        options = {
            name: value.replace(_FOLDER, str(folder)) if isinstance(value, str) else value
            for name, value in self._options.items()
        }
        return {
            "kind": kind,
            "engine": self.kind.name,
            "module": self.kind.module,
            "path": "" if folder is None else str(folder / "data"),
            "options": {**options, **database},
            "settings": dict(settings),
        }

    def _remake(self, placement: Placement, where: str) -> None:
        """Run an arm's set-up on a server; on MySQL, in a new database of its own."""
        cell, arm = placement
        key = (cell, arm.variant)
        if self.kind.name == "mysql":
            own = process.identity(os.getpid()) or {"pid": os.getpid(), "start": 0}
            name = self._places.setdefault(
                placement, f"uncork_{own['pid']}_{own['start']}_{id(self) % 9973}_{len(self._places)}"
            )
            self._execute([f"DROP DATABASE IF EXISTS `{name}`", f"CREATE DATABASE `{name}`"])
        else:
            self._places.setdefault(placement, "")
        self._run_script(key, None, where, **self._database(cell, arm))

    def _run_script(self, key: tuple[Cell, str], folder: Path | None, where: str, **database: object) -> None:
        script, timeout_ns = self._scripts[key]
        pieces = [(piece.line, piece.text) for piece in split_script(script)]
        try:
            job = self._job("script", self._settings[key], folder, **database)
            self._ask({**job, "pieces": pieces}, timeout_ns / 1e9)
        except SetupError as error:
            line = re.match(r"line (\d+): ", str(error))
            shown = f": {script.splitlines()[int(line[1]) - 1].strip()}" if line else ""
            raise SetupError(f"{where}: {error}{shown}") from error
        except ServerCrash as error:
            raise SetupError(f"{where}: {error}") from error

    def _execute(self, statements: Sequence[str]) -> None:
        """Execute statements on a server, in no database of an arm."""
        self._ask({**self._job("script", {}, None), "pieces": [(1, text) for text in statements]}, 60.0)

    def _query(self, cell: Cell, arm: Arm, query: str) -> tuple[tuple[str | None, ...], ...]:
        job = self._arm_job("answers", cell, arm)
        one = {"name": "query", "sql": query.strip().rstrip(";"), "columns": []}
        job |= {"statements": [one], "parameters": [], "numbers": [], "operations": 1}
        answers = self._ask(job, _ASK_S)["answers"]
        return tuple(map(tuple, answers[0][2])) if answers else ()

    def _ask(self, job: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        try:
            return ask(job, seconds)
        except SetupError as error:
            raise SetupError(self._redacted(str(error))) from error

    def _redacted(self, text: str) -> str:
        """Redact the values of options whose names suggest a secret."""
        for name, value in self._options.items():
            if re.search("pass|secret|token|dsn|conninfo|uri", name) and isinstance(value, str) and value:
                text = text.replace(value, "***")
        return text


def _database_name(cell: Cell, arm: Arm) -> str:
    return f"{cell.name}/{arm.name}"


def remove_folders() -> list[Path]:
    """Remove the folders of runs that were killed. Return the removed folders."""
    removed = []
    for folder, _ in process.leftover_folders("db-"):
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(folder)
    return removed


def _mysql_options(dsn: str | None) -> dict[str, Any]:
    """Parse ``mysql://user:password@host:port``.

    Raises SetupError if it is not set or not valid.
    """
    how = f"set {MYSQL_DSN} to mysql://user:password@host:port (a user that may create databases)"
    if not dsn:
        raise SetupError(how)
    parts = urlsplit(dsn)
    try:
        port = parts.port
    except ValueError:
        raise SetupError(f"the port in {MYSQL_DSN} is not a valid number; {how}") from None
    if parts.scheme not in ("mysql", "mariadb") or not parts.hostname:
        raise SetupError(f"{MYSQL_DSN} is not the address of a MySQL or MariaDB server; {how}")
    options: dict[str, Any] = {"host": parts.hostname, "port": port or 3306}
    if parts.username:
        options["user"] = unquote(parts.username)
    if parts.password:
        options["password"] = unquote(parts.password)
    return options
