"""One service's process: started in a folder of its own, heard, and ended with all that it started."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from uncork.engines.process import identity
from uncork.errors import ServiceCrash
from uncork.model.service import LOOPBACK, ServiceJob
from uncork.spawn.child import start

__all__ = ["END_S", "ServiceProcess", "end_together", "of_folder", "session_cpu_ns", "session_of"]

END_S: Final = 10.0
"""How long a service may take to end when it is asked to; then it is killed."""
LOG_BYTES: Final = 1 << 20
"""What is kept of what a service says, a log; the last lines are always known besides."""
_LAST_LINES: Final = 5
_LINE_BYTES: Final = 4096
_LOOK_S: Final = 0.02
_NS_A_TICK: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PORTS_FROM: Final = 20_000
"""Ports from here up to those that the kernel lends for outgoing connections: nobody gets one by chance."""


class ServiceProcess:
    """A service that runs. `ended` says how it ended, if it did.

    Args:
        job: what to start.
        label: whose it is, for messages.
        environment: what it is told beside `HOST`, `PORT` and `FOLDER`.
        base: the folder under which it gets its own.
        log: where its words are kept.
        secrets: texts that must not stand in it.

    Raises:
        ServiceCrash: if its program cannot be started.
    """

    def __init__(
        self,
        job: ServiceJob,
        *,
        label: str,
        environment: Mapping[str, str],
        base: Path,
        log: Path,
        secrets: Iterable[str],
    ) -> None:
        self.job = job
        self.label = label
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{job.name}-", dir=base))
        self.folder.chmod(0o711)
        self._words: deque[str] = deque(maxlen=_LAST_LINES)
        self._log = log
        self._secrets = [secret.encode() for secret in secrets if secret]
        self._put_files()
        given = {
            **_basic(),
            **environment,
            "HOST": LOOPBACK,
            "PORT": str(self.port),
            "FOLDER": str(self.folder),
        }
        try:
            self._process = start(
                self._command(given["PATH"]),
                cwd=self.folder,
                env=given,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            told = error.strerror or str(error)
            raise ServiceCrash(f"{self.name}: cannot start {job.command[0]}: {told}") from error
        self.identity = identity(self._process.pid)
        self._listener = threading.Thread(target=self._listen, name=f"uncork-{job.name}", daemon=True)
        self._listener.start()

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"service {self.job.name} of {self.label}"

    @property
    def pid(self) -> int:
        """The process's number; it leads a session and a process group of that number."""
        return self._process.pid

    @property
    def ended(self) -> str | None:
        """How it ended, with its last words; None while it runs."""
        status = self._process.poll()
        if status is None:
            return None
        self._listener.join(1.0)
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return f"{self.name} ended ({how}{self._last_words()})"

    def wait_ready(self) -> None:
        """Wait until it answers.

        Raises:
            ServiceCrash: if it ends instead, or is not ready in time; with its last lines.
        """
        deadline = time.monotonic() + self.job.timeout_ns / 1e9
        while True:
            trouble = self._answers(max(0.1, min(2.0, deadline - time.monotonic())))
            if trouble is None:
                return
            if self.ended is not None:
                raise ServiceCrash(f"{self.ended} before it was ready")
            if time.monotonic() >= deadline:
                asked = f"GET {self.job.ready}" if self.job.ready else f"port {self.port}"
                raise ServiceCrash(
                    f"{self.name} was not ready within {self.job.timeout_ns / 1e9:g} s "
                    f"({asked}: {trouble}{self._last_words()}); a longer timeout may help"
                )
            time.sleep(_LOOK_S)

    def ask_to_end(self) -> None:
        """Send SIGTERM to the whole process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)

    def wait_end(self, seconds: float) -> bool:
        """Wait until it has ended, with all that it started; say whether it has."""
        deadline = time.monotonic() + seconds
        while True:
            if self._process.poll() is not None and not session_of(self._process.pid):
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)

    def kill(self) -> None:
        """Kill what is left of it, and remove its folder."""
        for pid in {*session_of(self._process.pid), *of_folder(self.folder)}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self._listener.join(1.0)
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- steps ----

    def _put_files(self) -> None:
        for name, text in self.job.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)

    def _command(self, path: str) -> list[str]:
        known = {
            "{python}": sys.executable,
            "{port}": str(self.port),
            "{host}": LOOPBACK,
            "{folder}": str(self.folder),
        }
        words = []
        for word in self.job.command:
            for name, value in known.items():
                word = word.replace(name, value)  # noqa: PLW2901 -- each name in turn
            words.append(word)
        if words[0] in self.job.files:
            words[0] = str(self.folder / words[0])
        words[0] = shutil.which(words[0], path=path) or words[0]
        return words

    def _answers(self, seconds: float) -> str | None:
        """Return why it is not ready; None if it is."""
        try:
            if self.job.ready is None:
                socket.create_connection((LOOPBACK, self.port), timeout=seconds).close()
                return None
            connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=seconds)
            try:
                connection.request("GET", self.job.ready)
                status = connection.getresponse().status
            finally:
                connection.close()
        except http.client.BadStatusLine as error:
            # It answers, though not by HTTP/1.1: what speaks HTTP/2 only begins with its settings.
            return type(error).__name__ if isinstance(error, http.client.RemoteDisconnected) else None
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, TimeoutError):
                return "no answer"
            return getattr(error, "strerror", None) or type(error).__name__
        return None if 200 <= status < 400 else f"status {status}"

    def _listen(self) -> None:
        """Keep what it says: the first megabyte in the log, the last lines in mind."""
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 -- it was asked for
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            room = LOG_BYTES - log.tell()
            for line in iter(lambda: stream.readline(_LINE_BYTES), b""):
                said = self._without_secrets(line)
                words = said.decode(errors="replace").strip()
                if any(map(str.isalnum, words)):
                    self._words.append(words)
                if room > 0:
                    log.write(said)
                    log.flush()
                    room -= len(said)
                    if room <= 0:
                        log.write(b"\n(the rest is not kept)\n")
        stream.close()

    def _without_secrets(self, line: bytes) -> bytes:
        for secret in self._secrets:
            line = line.replace(secret, b"***")
        return line

    def _last_words(self) -> str:
        said = "; ".join(self._words)
        return f": {said}" if said else ", and said nothing"


def end_together(services: Iterable[ServiceProcess]) -> None:
    """End services, all at once: asked first, killed when the time is up. What they started ends too."""
    ending = list(services)
    for service in reversed(ending):
        service.ask_to_end()
    deadline = time.monotonic() + END_S
    for service in ending:
        service.wait_end(deadline - time.monotonic())
        service.kill()


def free_port() -> int:
    """Return a port of this machine where nobody listens, and which the kernel does not lend out."""
    try:
        lent = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        lent = 0
    for port in random.sample(range(_PORTS_FROM, lent), 50) if lent > _PORTS_FROM + 50 else ():
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def session_of(leader: int) -> list[int]:
    """Return the living processes of the session that a process leads, zombies left out."""
    return [pid for pid, fields in _session(leader) if fields[0] != "Z"]


def session_cpu_ns(leader: int) -> tuple[int, int] | None:
    """Return the processor time of a session, in user mode and in the kernel; None if nothing is left of it.

    The sum is exact, by the kernel's clock of each process; how it parts is known in ticks of the kernel. Of
    processes that have ended what their parents have seen of them is in it.
    """
    family = list(_session(leader))
    if not family:
        return None
    exact = user = system = 0
    for pid, fields in family:
        own_user, own_system, child_user, child_system = map(int, fields[11:15])
        user += own_user + child_user
        system += own_system + child_system
        exact += _cpu_ns(pid, own_user + own_system) + (child_user + child_system) * _NS_A_TICK
    whole = user + system
    in_user = round(exact * user / whole) if whole else exact
    return in_user, exact - in_user


def _session(leader: int) -> Iterator[tuple[int, list[str]]]:
    """Yield each process of a session with the fields of its stat from the state on."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                yield int(path.parent.name), fields


def _cpu_ns(pid: int, ticks: int) -> int:
    """Return a process's time by its own clock, whose number is made of its id (clock_getcpuclockid).

    A zombie's clock may have gone; its ticks are still there.
    """
    try:
        return max(time.clock_gettime_ns((~pid << 3) | 2), ticks * _NS_A_TICK)
    except OSError:
        return ticks * _NS_A_TICK


def of_folder(folder: Path) -> list[int]:
    """Return processes that were given this folder, wherever they have gone since."""
    mark = f"FOLDER={folder}\0".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _basic() -> dict[str, str]:
    """Return what a service gets of our own environment."""
    return {
        "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
        "HOME": os.environ.get("HOME", "/"),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
    }
