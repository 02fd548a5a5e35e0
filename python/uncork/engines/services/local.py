"""Services beside the database on this machine: equal jobs share one process, and all end with uncork.

Each run has one folder under `servers_folder()`::

    svc-<random>/owner.json     the owning process, and the services
    svc-<random>/<name>-…/      each service's own folder

Services end with the process that started them, even if it is killed (ADR-0020), and the folder is removed.
If the reaper was killed too, the next start finds that the owner is dead and cleans up.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncork.engines import process
from uncork.engines.conninfo import Address
from uncork.engines.places import servers_folder
from uncork.engines.services.process import (
    ServiceProcess,
    end_together,
    of_folder,
    session_cpu_ns,
    session_of,
)
from uncork.errors import ServiceCrash
from uncork.model.extras import install_modules
from uncork.model.redaction import is_secret
from uncork.model.server import Target
from uncork.model.service import Served, ServiceJob
from uncork.model.units import series_words
from uncork.spawn.child import remove_at_death

_LEAST_SECRET = 4
_OWN = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable of uncork's own environment."""

Key = tuple[ServiceJob, str, str, tuple[Any, ...]]
"""Services with equal keys share one process: job, database, connection options, services it depends on."""


class LocalServices:
    """The runner's `Services` port.

    Args:
        logs: the folder for the output of services.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._base: Path | None = None
        self._running: dict[Key, ServiceProcess] = {}
        self._unready: set[Key] = set()

    def lacking(self, jobs: Sequence[ServiceJob], requires: Sequence[str]) -> str | None:
        """Return what these services require and this machine lacks, with a remedy; None if nothing."""
        kinds = [(kind, name) for kind, _, name in (wanted.rpartition(":") for wanted in requires)]
        modules = [name for kind, name in kinds if kind == "python" and not _has_module(name)]
        found = [_without_modules(list(dict.fromkeys(modules)))] if modules else []
        found += [
            f"the program {wanted} is not on the PATH"
            for wanted, (kind, _) in zip(requires, kinds, strict=True)
            if kind != "python" and shutil.which(wanted) is None
        ]
        for job in jobs:
            found += [
                f"the variable {variable}, which service {job.name} needs, is not set: export it"
                for variable in (name for _, text in job.environment for name in _OWN.findall(text))
                if variable not in os.environ
            ]
            program = job.command[0]
            if program != "{python}" and program not in job.files and shutil.which(program) is None:
                found.append(f"the program {program}, which service {job.name} starts, is not on the PATH")
        return "; ".join(dict.fromkeys(found)) or None

    def begin(
        self, label: str, jobs: Sequence[ServiceJob], database: Target, beside: Mapping[str, Target]
    ) -> None:
        """Start the services that depend on no other service, without waiting for them; `serve` waits."""
        for job in jobs:
            key = _key(job, database, ())
            if not job.after and key not in self._running:
                self._start(key, label, _environment(job, database, beside, {}), database)

    def serve(
        self, label: str, jobs: Sequence[ServiceJob], database: Target, beside: Mapping[str, Target]
    ) -> Served:
        """Start the services that do not run yet, in order, and return the last one.

        Raises:
            ServiceCrash: if one has ended, or is not ready in time.
        """
        keys: dict[str, Key] = {}
        pids: dict[str, tuple[int, ...]] = {}
        served: Served | None = None
        for job in jobs:
            keys[job.name] = key = _key(job, database, tuple(keys[name] for name in job.after))
            known = {name: self._running[keys[name]].url for name in job.after}
            running = self._running.get(key)
            if running is None:
                running = self._start(key, label, _environment(job, database, beside, known), database)
            if key in self._unready:
                self._unready.discard(key)
                running.wait_ready()
            if (ended := running.ended) is not None:
                end_together([self._running.pop(key)])
                raise ServiceCrash(ended)
            pids[job.name] = tuple(
                dict.fromkeys((running.pid, *(pid for name in job.after for pid in pids[name])))
            )
            served = Served(job.name, running.port, pids[job.name], tls=job.tls)
        if served is None:
            raise ServiceCrash(f"{label} has no service")
        return served

    def cpu_ns(self, served: Served) -> tuple[int, int] | None:
        """Return the processor time of a service and those it depends on, in user mode and in the kernel."""
        found = [one for pid in served.pids if (one := session_cpu_ns(pid)) is not None]
        return (sum(usage[0] for usage in found), sum(usage[1] for usage in found)) if found else None

    def exit_reason(self, served: Served) -> str | None:
        """Return how a service ended that should still run; None if all of them run."""
        for running in self._running.values():
            if running.pid in served.pids and running.ended is not None:
                return running.ended
        return None

    def release(self, database: str | None = None) -> None:
        """End the services that use a database; without a database, end all services."""
        chosen = [key for key in self._running if database in (None, key[1])]
        end_together(self._running[key] for key in chosen)
        for key in chosen:
            del self._running[key]
            self._unready.discard(key)
        self._note()

    def stop(self) -> None:
        """End all services, and remove their folders."""
        self.release()
        if self._base is not None:
            shutil.rmtree(self._base, ignore_errors=True)
            self._base = None

    # ---- steps ----

    def _start(
        self, key: Key, label: str, environment: Mapping[str, str], database: Target
    ) -> ServiceProcess:
        job = key[0]
        started = ServiceProcess(
            job,
            label=label,
            environment=environment,
            words=database_words(database),
            base=self._folder(),
            log=self._logs / f"{re.sub(r'[^A-Za-z0-9_-]', '_', label)}.{job.name}.log",
            secrets=_secrets(job, environment, database),
        )
        self._running[key] = started
        self._unready.add(key)
        self._note()
        return started

    def _folder(self) -> Path:
        if self._base is None:
            remove_leftover_services()
            self._base = Path(tempfile.mkdtemp(prefix="svc-", dir=servers_folder()))
            remove_at_death(self._base)
            self._base.chmod(0o711)
            self._note()
        return self._base

    def _note(self) -> None:
        """Record the owner of the services, so that a later run can clean up if we are killed."""
        if self._base is None:
            return
        facts = {
            "owner": process.identity(os.getpid()),
            "services": [service.identity for service in self._running.values()],
        }
        draft = self._base / "owner.new"
        draft.write_text(json.dumps(facts))
        draft.replace(self._base / "owner.json")


def remove_leftover_services() -> None:
    """End services whose owner was killed, and remove their folders."""
    for folder in servers_folder().glob("svc-*"):
        try:
            facts = json.loads((folder / "owner.json").read_text())
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime >= 60:
                    shutil.rmtree(folder, ignore_errors=True)
            continue
        if process.is_same(facts.get("owner")):
            continue
        # If another process has this pid by now, leave that process and its session alone.
        alive = [known["pid"] for known in facts.get("services", ()) if known and process.is_here(known)]
        left = {pid for leader in alive for pid in session_of(leader)}
        left |= {pid for inner in folder.iterdir() for pid in of_folder(inner)}
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _key(job: ServiceJob, database: Target, needed: tuple[Key, ...]) -> Key:
    return job, database.database, str(database.connection.get("options", "")), needed


def _environment(
    job: ServiceJob, database: Target, beside: Mapping[str, Target], known: Mapping[str, str]
) -> dict[str, str]:
    given = {name: _own_variables(text) for name, text in job.environment}
    given["DATABASE_URL"] = database_url(database)
    given |= {_variable("DATABASE_URL", name): database_url(target) for name, target in beside.items()}
    return given | {_variable("SERVICE", name): url for name, url in known.items()}


def database_url(target: Target) -> str:
    """Return the address of a database, with its password."""
    connection: dict[str, Any] = {**target.connection}
    return Address(**connection).uri(target.database)


def _variable(prefix: str, name: str) -> str:
    return f"{prefix}_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"


def database_words(database: Target) -> dict[str, str]:
    """Return what the names of the database's parts stand for, in a command and in variables."""
    known = database.connection
    parts = {"host": known["host"], "port": known.get("port"), "user": known.get("user")}
    parts |= {"password": known.get("password"), "name": database.database, "url": database_url(database)}
    return {f"{{database_{name}}}": "" if text is None else str(text) for name, text in parts.items()}


def _own_variables(text: str) -> str:
    """Replace ``${NAME}`` by the variable of uncork's own environment; `lacking` checks that it is set."""
    return _OWN.sub(lambda name: os.environ.get(name[1], ""), text)


def _secrets(job: ServiceJob, environment: Mapping[str, str], database: Target) -> list[str]:
    """Return texts that must not appear in a log: passwords, and variables whose names suggest a secret."""
    password = database.connection.get("password")
    found = [str(password)] if password else []
    found += [text for name, text in environment.items() if is_secret(name)]
    found += [environment[name] for name, text in job.environment if _OWN.search(text)]
    found += [text for name, text in environment.items() if name.startswith("DATABASE_URL") and password]
    return sorted((text for text in found if len(text) >= _LEAST_SECRET), key=len, reverse=True)


def _without_modules(modules: Sequence[str]) -> str:
    """Return which modules are missing, and how to install all of them."""
    names = series_words(modules)
    if len(modules) == 1:
        remedy = f"install the package that provides it into {sys.executable}"
        return f"the Python module {names} is not installed: {install_modules(modules) or remedy}"
    remedy = f"install the packages that provide them into {sys.executable}"
    return f"the Python modules {names} are not installed: {install_modules(modules) or remedy}"


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
