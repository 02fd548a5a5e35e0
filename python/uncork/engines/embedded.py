"""The embedded PostgreSQL server: downloaded once, started for a run, and removed after it.

Each server has one folder under `servers_folder()`::

    <name>/owner.json   the owning process, with its start time
    <name>/data/        the cluster
    <name>/socket/      the Unix socket
    <name>/server.log

A server ends with the process that started it, even if it is killed (ADR-0020), and its folder is
removed. If the reaper was killed too, the next start finds that the owner is dead, stops the server
and removes the folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import mmap
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from uncork import _native
from uncork.engines import process
from uncork.engines.connecting import connect_to_watch
from uncork.engines.places import Account, cache_folder, server_account, servers_folder
from uncork.engines.ports import free_port
from uncork.engines.setting_check import DEFAULT_SETTINGS, configuration_text
from uncork.errors import ServerCrash, SetupError
from uncork.model.service import LOOPBACK
from uncork.spawn.child import Child, Done, run, start

_LOG_PREFIX = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ \[\d+\] ")
_WAL_FILE = 16 << 20
_CLUSTER = 64 << 20
"""Bytes of a file of the write-ahead log, and of a new cluster with its first ones."""
_MOST_STAYED = 0.02
"""The fraction of a server's files that may stay in the page cache: other programs may read some of them."""
START_SECONDS = 60
STOP_SECONDS = 60


class EmbeddedServer:
    """One PostgreSQL cluster that exists from `start` to `stop`.

    Args:
        settings: server settings that override the defaults, with values as in postgresql.conf.
        binaries: a folder with `initdb` and `postgres`, instead of the embedded ones.
        port: the TCP port on loopback, which also names the socket; a free port if None.
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
        """Create the cluster and start the server.

        Raises SetupError if there is no space, the port is in use, a setting is invalid, or
        binaries are missing.
        """
        remove_leftovers()
        binaries = self._find_binaries()
        self.port = self._choose_port()
        self._folder = process.owned_folder("pg-")
        try:
            for name in ("data", "socket"):
                (self._folder / name).mkdir(mode=0o700)
                if self._account.change:
                    os.chown(self._folder / name, self._account.uid, self._account.gid)
            self._initialise(binaries)
            self._launch(binaries)
        except PermissionError as error:
            self.stop()
            if not self._account.change:
                raise
            raise SetupError(
                "PostgreSQL does not run as root, and uncork is not allowed to run it as user "
                f'"{self._account.name}" (a container without CAP_CHOWN, CAP_SETUID and CAP_SETGID); '
                "run uncork as a user other than root"
            ) from error
        except BaseException:
            self.stop()
            raise

    def restart(self, *, cold: bool = False) -> None:
        """Shut the server down cleanly and start it again on the same data, with no shared buffers filled.

        With `cold`, drop its files from the machine's page cache meanwhile. Raises SetupError if
        the server does not start, or its files stay in the page cache.
        """
        self._end_postmaster(signal.SIGINT)
        if cold:
            stayed = emptied(self._root / "data")
            if stayed > _MOST_STAYED:
                raise SetupError(
                    f"the caches cannot be emptied: {stayed:.0%} of the server's files stay in memory, as on "
                    "a file system without a disk (tmpfs); set UNCORK_SERVERS to a folder on a disk, or set "
                    'cache = "as-is"'
                )
        self._launch(self._find_binaries())

    def load_libraries(self, names: Sequence[str]) -> None:
        """Add libraries to shared_preload_libraries, and restart the server."""
        loaded = str(self._settings.get("shared_preload_libraries", ""))
        self._settings["shared_preload_libraries"] = ", ".join(filter(None, [loaded, *names]))
        self._configure()
        self.restart()

    def recover(self) -> None:
        """Start the server again after a crash, and first end whatever is left of it.

        Raises ServerCrash if the server does not start.
        """
        self._end_postmaster(signal.SIGQUIT)
        try:
            self._launch(self._find_binaries())
        except SetupError as error:
            raise ServerCrash(f"the server crashed and could not be restarted: {error}") from error

    def stop(self) -> None:
        """Stop the server and remove its folder. Does nothing if there is no server."""
        self._end_postmaster(signal.SIGQUIT)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def write_to_disk(self) -> None:
        """Write what the machine has cached of the server's files to disk, if the system can do that."""
        program = shutil.which("sync")
        if program is not None:
            run([program, "-f", str(self._root / "data")], capture_output=True)

    def crash(self) -> None:
        """Kill the server at once, as a power cut would. For tests of recovery."""
        if self._postmaster is not None:
            self._postmaster.kill()
            self._postmaster.wait()

    # ---- what others need ----

    @property
    def pid(self) -> int | None:
        """The postmaster's process id; None if it does not run."""
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
        """The server's log files: its standard error, and the files of its logging collector, if any."""
        return (self._root / "server.log", *sorted((self._root / "data" / "log").glob("*")))

    def take_log(self, path: Path) -> None:
        """Move the server's log of standard error to `path`, and start an empty log.

        The server logs a statement before it answers the client. Entries logged during this call
        may be lost, so send nothing meanwhile. Raises SetupError if `path` cannot be written.
        """
        log = self._root / "server.log"
        try:
            shutil.copyfile(log, path)
        except OSError as error:
            raise SetupError(f"cannot write {path}: {error.strerror}") from error
        os.truncate(log, 0)  # the server opened it to append, so it continues at the new end

    @property
    def log_tail(self) -> str:
        """The last five lines of the server's log, for error messages."""
        if self._folder is None:
            return ""
        try:
            return "\n".join((self._folder / "server.log").read_text(errors="replace").splitlines()[-5:])
        except OSError:
            return ""

    @property
    def disk_is_full(self) -> bool:
        """Whether there is no room for the next file of the write-ahead log, or the server says so.

        A server that cannot write its log ends at once: its clients only learn that it went away.
        """
        if self._folder is None:
            return False
        return shutil.disk_usage(self._folder).free < _WAL_FILE or "No space left" in self.log_tail

    def conninfo(self, database: str = "postgres") -> str:
        """Return the libpq connection string for a database of this server, as its superuser."""
        return make_conninfo(host=self.host, port=self.port, user="uncork", dbname=database)

    # ---- steps ----

    @property
    def _root(self) -> Path:
        if self._folder is None:
            raise SetupError("the embedded server was not started")
        return self._folder

    def _find_binaries(self) -> Path:
        if self._binaries is None:
            cache = cache_folder()
            try:
                cache.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SetupError(
                    f"cannot create {cache}: {error.strerror}; set UNCORK_CACHE to a folder you can write to"
                ) from error
            self._binaries = Path(_native.install_postgres(str(cache))) / "bin"
        for name in ("initdb", "postgres"):
            if not (self._binaries / name).is_file():
                raise SetupError(
                    f"there is no {name} in {self._binaries}; set --pg-bin to the folder that contains it"
                )
        return self._binaries

    def _choose_port(self) -> int:
        if not self._wanted_port:
            return free_port()
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, self._wanted_port))
            except OSError as error:
                raise SetupError(
                    f"cannot listen on port {self._wanted_port}: {error.strerror}; choose another --port, or "
                    "leave it out to get a free one"
                ) from error
        return self._wanted_port

    def _initialise(self, binaries: Path) -> None:
        root = self._root
        try:
            new_cluster(root / "data", binaries, self._account, self._run)
        except InitdbFailed as failure:
            # initdb removes what it wrote, and not all of its messages give the reason.
            full = "\nNo space left on device" if shutil.disk_usage(root).free < _CLUSTER else ""
            raise SetupError(_explain("initdb failed", f"{failure}{full}")) from failure
        self._configure()

    def _configure(self) -> None:
        (self._root / "data" / "postgresql.conf").write_text(
            configuration_text(self._settings, port=self.port, socket_folder=self._root / "socket")
        )

    def _run(self, command: list[str]) -> Done:
        return run(command, capture_output=True, text=True, cwd="/", env=_environment(), **self._identity())

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
        process.write_owner(root, server=process.identity(self._postmaster.pid))
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
                        f"the embedded server did not accept connections within {START_SECONDS} s: {error}"
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
    """End servers whose owner was killed, and remove their folders. Return the removed folders."""
    removed = []
    for folder, facts in process.leftover_folders("pg-"):
        process.end_server(facts.get("server"), data=folder / "data")
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(folder)
    return removed


def other_runs() -> int:
    """Count the embedded servers of other living processes on this machine, which add noise."""
    own = process.identity(os.getpid())
    owners = []
    for path in servers_folder().glob("pg-*/owner.json"):
        with contextlib.suppress(OSError, ValueError):
            owners.append(json.loads(path.read_text()).get("owner"))
    return sum(owner != own and process.is_same(owner) for owner in owners)


def _environment() -> dict[str, str]:
    """Return a clean environment for the server: no secrets, no PG* variables, messages in English."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}


def _explain(what: str, output: str) -> str:
    lines = [_LOG_PREFIX.sub("", line) for line in output.splitlines() if line.strip()]
    reason = "; ".join(lines[-3:]) or "it printed nothing"
    if "No space left" in output:
        reason += "; free some space, or set UNCORK_SERVERS to a folder on a larger disk"
    return f"{what}: {reason}"


# ---- create a cluster: run initdb once for each build of PostgreSQL, and copy its result afterwards ----
#
# initdb always makes the same cluster, and takes seconds on a slow machine. PostgreSQL's own tests
# also copy it, since version 17. Only its owner can read the cached cluster. It never runs, and is
# made again when the binaries change.


_OPTIONS = (
    *("-U", "uncork", "-E", "UTF8", "--locale=C", "--no-sync"),
    *("--auth-local=trust", "--auth-host=scram-sha-256"),
)


class InitdbFailed(Exception):
    """initdb could not create a cluster."""


Run = Callable[[list[str]], Done]


def new_cluster(data: Path, binaries: Path, account: Account, run: Run) -> None:
    """Create a cluster with the superuser ``uncork`` in an empty folder that belongs to `account`.

    The superuser can connect over the Unix socket, and has no password. Over TCP, only roles that
    are created later can connect. `run` runs a command as that account.

    Raises:
        InitdbFailed: with the output of initdb.
    """
    kept = cache_folder() / "clusters" / _key(binaries)
    with contextlib.suppress(OSError, shutil.Error):
        _copy(kept, data, account.uid if account.change else None, account.gid)
        return
    for path in data.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    done = run([str(binaries / "initdb"), "-D", str(data), *_OPTIONS])
    if done.returncode != 0:
        raise InitdbFailed(done.stderr or done.stdout)
    # If the cache cannot be written, the next run only takes longer.
    with contextlib.suppress(OSError, shutil.Error):
        _keep(data, kept)


def _key(binaries: Path) -> str:
    """Return a key for everything that determines a new cluster: the build, and the options of initdb."""
    facts = [str(binaries.resolve()), *_OPTIONS]
    for name in ("initdb", "postgres"):
        status = (binaries / name).stat()
        facts += [str(status.st_size), str(status.st_mtime_ns)]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


def _keep(data: Path, kept: Path) -> None:
    """Add a copy to the cache; its name appears only when the copy is complete."""
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix="making-", dir=kept.parent))
    try:
        _copy(data, making, None, 0)
        # If two processes do this at the same time, the first one wins.
        making.rename(kept)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _copy(source: Path, target: Path, uid: int | None, gid: int) -> None:
    """Copy a cluster with its modes, for another owner if one is given."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    if uid is None:
        return
    for folder, _, files in os.walk(target):
        os.chown(folder, uid, gid)
        for name in files:
            os.chown(Path(folder, name), uid, gid, follow_symlinks=False)


# ---- empty the page cache ----


_PIECE: Final = 1 << 30
"""Bytes of a file whose pages are looked up at once."""


def emptied(folder: Path) -> float:
    """Write a folder's files to disk and drop them from the page cache; return the fraction that stayed.

    Needs no privileges, but files that others have mapped or that live in memory (tmpfs) stay.
    Caches of a hypervisor or a disk are out of reach. See posix_fadvise(2), POSIX_FADV_DONTNEED,
    and mincore(2). Raises OSError if a file cannot be read.
    """
    pages = stayed = 0
    for path in _files(folder):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            many, left = _dropped(file.fileno())
            if left:  # the kernel drops only pages that are on disk
                os.fsync(file.fileno())
                many, left = _dropped(file.fileno())
            pages += many
            stayed += left
    return stayed / pages if pages else 0.0


def _dropped(file: int) -> tuple[int, int]:
    """Drop the pages of a file; return how many pages it has, and how many are still in the page cache."""
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    found = list(_resident(file))
    return sum(many for many, _ in found), sum(many for _, many in found)


def _files(folder: Path) -> Iterator[Path]:
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _resident(file: int) -> Iterator[tuple[int, int]]:
    """Yield the number of pages of each piece of an open file, and how many of them are in memory."""
    size = os.fstat(file).st_size
    mincore = ctypes.CDLL(None, use_errno=True).mincore
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    for offset in range(0, size, _PIECE):
        length = min(_PIECE, size - offset)
        with mmap.mmap(
            file, length, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset
        ) as piece:
            many = -(-length // mmap.PAGESIZE)
            states = ctypes.create_string_buffer(many)
            first = ctypes.c_char.from_buffer(piece)
            try:
                if mincore(ctypes.addressof(first), length, states) != 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            finally:
                del first  # else the piece could not be closed
            yield many, sum(state & 1 for state in states.raw)
