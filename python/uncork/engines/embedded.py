"""A PostgreSQL of our own: fetched once, started for a run, removed after it.

One folder a server, under `servers_folder()`::

    <name>/owner.json   who started it (process and its start time)
    <name>/data/        the cluster
    <name>/socket/      the Unix socket
    <name>/server.log

A server ends with the process that started it, even if that is killed (ADR-0020), and its folder is removed
then. If the reaper was killed too, the next start stops the server and removes the folder: its owner no
longer lives.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from uncork import _native
from uncork.engines import process
from uncork.engines.cluster import InitdbFailed, new_cluster
from uncork.engines.connecting import connect_to_watch
from uncork.engines.places import Account, cache_folder, server_account, servers_folder
from uncork.engines.settings import DEFAULT_SETTINGS, configuration_text
from uncork.errors import ServerCrash, SetupError
from uncork.spawn.child import Child, Done, remove_at_death, run, start

__all__ = ["EmbeddedServer", "other_runs", "remove_leftovers"]

_LOG_PREFIX = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ \[\d+\] ")
START_SECONDS = 60
STOP_SECONDS = 60


class EmbeddedServer:
    """One PostgreSQL cluster that lives as long as this object is open.

    Args:
        settings: server settings over the defaults; a value is written as postgresql.conf takes it.
        binaries: a folder with `initdb` and `postgres`, in place of the embedded ones.
        port: the TCP port on loopback (it names the socket too); a free one if None.
    """

    def __init__(
        self, settings: Mapping[str, object], *, binaries: Path | None = None, port: int | None = None
    ) -> None:
        self._settings = {**DEFAULT_SETTINGS, **settings}
        self._account: Account = server_account()
        self._binaries = binaries
        self._wanted_port = port
        self._postmaster: Child | None = None
        self._folder: Path | None = None
        self.port = 0

    # ---- life ----

    def start(self) -> None:
        """Make the cluster and start it.

        Raises:
            SetupError: if there is no space, the port is taken, a setting is wrong, or binaries are missing.
        """
        remove_leftovers()
        binaries = self._find_binaries()
        self.port = self._choose_port()
        base = servers_folder()
        self._folder = Path(tempfile.mkdtemp(prefix="pg-", dir=base))
        try:
            remove_at_death(self._folder)
            self._folder.chmod(0o711)
            process.write_owner(self._folder / "owner.json")
            for name in ("data", "socket"):
                self._make_folder(self._folder / name)
            self._initialise(binaries)
            self._launch(binaries)
        except PermissionError as error:
            self.stop()
            if not self._account.change:
                raise
            raise SetupError(
                "PostgreSQL does not run as root, and this root may not give it to user "
                f'"{self._account.name}" (a container without CAP_CHOWN, CAP_SETUID and CAP_SETGID): '
                "run uncork as another user than root"
            ) from error
        except BaseException:
            self.stop()
            raise

    def restart(self) -> None:
        """Stop the server in order and start it again on the same data: a new life, with empty caches."""
        self._end_postmaster(signal.SIGINT)
        self._launch(self._find_binaries())

    def load_libraries(self, names: Sequence[str]) -> None:
        """Load these libraries, too, whenever the server starts, and start it again."""
        loaded = str(self._settings.get("shared_preload_libraries", ""))
        self._settings["shared_preload_libraries"] = ", ".join(filter(None, [loaded, *names]))
        self._configure()
        self.restart()

    def recover(self) -> None:
        """Start the server again after a crash, ending what is left of it first.

        Raises:
            ServerCrash: if it does not come back.
        """
        self._end_postmaster(signal.SIGQUIT)
        try:
            self._launch(self._find_binaries())
        except SetupError as error:
            raise ServerCrash(f"the server did not come back after a crash: {error}") from error

    def stop(self) -> None:
        """End the server and remove its folder. Does nothing if there is none."""
        self._end_postmaster(signal.SIGQUIT)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def crash(self) -> None:
        """Kill the server at once, as a power cut would: for tests of what a run does then."""
        if self._postmaster is not None:
            self._postmaster.kill()
            self._postmaster.wait()

    # ---- what others need ----

    @property
    def pid(self) -> int | None:
        """The postmaster's process id, or None when it does not run."""
        if self._postmaster is None or self._postmaster.poll() is not None:
            return None
        return self._postmaster.pid

    @property
    def alive(self) -> bool:
        """Whether the postmaster runs."""
        return self.pid is not None

    @property
    def host(self) -> str:
        """The folder of the Unix socket."""
        return str(self._root / "socket")

    @property
    def logs(self) -> tuple[Path, ...]:
        """What the server has logged: its standard error, and what its collector wrote, if it has one."""
        return (self._root / "server.log", *sorted((self._root / "data" / "log").glob("*")))

    def take_log(self, path: Path) -> None:
        """Move what the server has logged to standard error so far to `path`; its log begins anew.

        A statement stands in the log before its client has its answer. What is logged while this runs may be
        lost: nothing should be sent meanwhile.

        Raises:
            SetupError: if it cannot be written there.
        """
        log = self._root / "server.log"
        try:
            shutil.copyfile(log, path)
        except OSError as error:
            raise SetupError(f"cannot write {path}: {error.strerror}") from error
        os.truncate(log, 0)  # the server appends, so that it goes on at the beginning

    @property
    def log_tail(self) -> str:
        """The last lines of the server's log, for error messages."""
        if self._folder is None:
            return ""
        try:
            return "\n".join((self._folder / "server.log").read_text(errors="replace").splitlines()[-5:])
        except OSError:
            return ""

    def conninfo(self, database: str = "postgres") -> str:
        """Return the libpq connection string of a database of this server, as its superuser."""
        return make_conninfo(host=self.host, port=self.port, user="uncork", dbname=database)

    # ---- steps ----

    @property
    def _root(self) -> Path:
        if self._folder is None:
            raise SetupError("the embedded server is not started")
        return self._folder

    def _find_binaries(self) -> Path:
        if self._binaries is None:
            cache = cache_folder()
            try:
                cache.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SetupError(f"cannot make {cache}: {error.strerror}; set UNCORK_CACHE") from error
            self._binaries = Path(_native.install_postgres(str(cache))) / "bin"
        for name in ("initdb", "postgres"):
            if not (self._binaries / name).is_file():
                raise SetupError(f"no {name} in {self._binaries}; --pg-bin names the folder that holds it")
        return self._binaries

    def _choose_port(self) -> int:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self._wanted_port or 0))
            except OSError as error:
                raise SetupError(
                    f"port {self._wanted_port} is taken ({error.strerror}); leave --port out for a free one"
                ) from error
            return int(probe.getsockname()[1])

    def _make_folder(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        if self._account.change:
            os.chown(path, self._account.uid, self._account.gid)

    def _initialise(self, binaries: Path) -> None:
        root = self._root
        try:
            new_cluster(root / "data", binaries, self._account, self._run)
        except InitdbFailed as failure:
            raise SetupError(_explain("initdb failed", str(failure))) from failure
        self._configure()

    def _configure(self) -> None:
        (self._root / "data" / "postgresql.conf").write_text(
            configuration_text(self._settings, port=self.port, socket_folder=self._root / "socket")
        )

    def _run(self, command: list[str]) -> Done:
        return run(
            command,
            capture_output=True,
            text=True,
            cwd="/",
            env=_environment(),
            **self._identity(),
        )

    def _identity(self) -> dict[str, Any]:
        if not self._account.change:
            return {}
        return {"user": self._account.uid, "group": self._account.gid, "extra_groups": []}

    def _launch(self, binaries: Path) -> None:
        root = self._root
        with (root / "server.log").open("ab") as log:
            self._postmaster = start(
                [str(binaries / "postgres"), "-D", str(root / "data")],
                ask=signal.SIGQUIT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_environment(),
                **self._identity(),
            )
        process.write_owner(root / "owner.json", server=self._postmaster.pid)
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self._postmaster.poll() is not None:
                raise SetupError(_explain("the embedded server did not start", self.log_tail))
            try:
                connect_to_watch(self.conninfo(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise SetupError(
                        f"the embedded server did not answer in {START_SECONDS} s: {error}"
                    ) from error
                time.sleep(0.02)

    def _end_postmaster(self, first: signal.Signals) -> None:
        if self._postmaster is None:
            return
        for number, seconds in ((first, STOP_SECONDS), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
            if self._postmaster.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                self._postmaster.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._postmaster.wait(seconds)
        self._postmaster = None


def remove_leftovers() -> list[Path]:
    """End servers whose owner was killed, and remove their folders. Returns what was removed."""
    removed = []
    for folder in servers_folder().glob("pg-*"):
        owner = folder / "owner.json"
        try:
            facts = json.loads(owner.read_text())
        except (OSError, ValueError):
            if time.time() - folder.stat().st_mtime < 60:
                continue
            facts = {}
        if process.is_same(facts.get("owner")):
            continue
        process.end_server(facts.get("server"), data=folder / "data")
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(folder)
    return removed


def other_runs() -> int:
    """Count embedded servers of other living processes: they share this machine, and are noise."""
    own = process.identity(os.getpid())
    owners = []
    for path in servers_folder().glob("pg-*/owner.json"):
        with contextlib.suppress(OSError, ValueError):
            owners.append(json.loads(path.read_text()).get("owner"))
    return sum(owner != own and process.is_same(owner) for owner in owners)


def _environment() -> dict[str, str]:
    """Give the server a clean environment: no secrets, no PG* of ours, messages in English."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}


def _explain(what: str, output: str) -> str:
    lines = [_LOG_PREFIX.sub("", line) for line in output.splitlines() if line.strip()]
    reason = "; ".join(lines[-3:]) or "it said nothing"
    if "No space left" in output:
        reason += "; free some, or set UNCORK_SERVERS to a folder on a larger disk"
    return f"{what}: {reason}"
