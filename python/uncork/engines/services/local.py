"""Services beside the database on this machine: equal jobs share one process, and all end with uncork.

Each run has one folder under `servers_folder()`::

    svc-<random>/owner.json     the owning process, and the services
    svc-<random>/<name>-…/      each service's own folder

Services end with the process that started them, even if it is killed (ADR-0020), and the folder is
removed. If the reaper was killed too, the next start finds that the owner is dead and cleans up.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from uncork.engines import process
from uncork.engines.conninfo import Address
from uncork.engines.ports import free_port
from uncork.engines.process import identity
from uncork.engines.services.inspection import receives_datagrams
from uncork.errors import ServiceCrash, SetupError
from uncork.model.extras import install_modules
from uncork.model.redaction import is_secret
from uncork.model.server import Target
from uncork.model.service import LOOPBACK, Served, ServiceJob
from uncork.model.services.tls import own_service_tls, speaks_only_http2
from uncork.model.units import format_duration, series_words
from uncork.spawn.child import run, scratch_folder, start
from uncork.spawn.reaper import all_pids

_LEAST_SECRET = 4
_OWN = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable of uncork's own environment; `lacking` checks that it is set."""

Key = tuple[ServiceJob, str, str, tuple[Any, ...]]
"""Services with equal keys share one process: job, database, connection options, services it depends on."""


class LocalServices:
    """The runner's `Services` port. `logs` is the folder for the output of services."""

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

        Raises ServiceCrash if one has ended, or is not ready in time.
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
            self._base = process.owned_folder("svc-")
        return self._base

    def _note(self) -> None:
        """Record the services, so that a later run can clean up if we are killed."""
        if self._base is not None:
            services = [service.identity for service in self._running.values()]
            process.write_owner(self._base, services=services)


def remove_leftover_services() -> None:
    """End services whose owner was killed, and remove their folders."""
    for folder, facts in process.leftover_folders("svc-"):
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
    given = {
        name: _OWN.sub(lambda found: os.environ.get(found[1], ""), text) for name, text in job.environment
    }
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
    missing = f"module {names} is" if len(modules) == 1 else f"modules {names} are"
    packages = "package that provides it" if len(modules) == 1 else "packages that provide them"
    remedy = install_modules(modules) or f"install the {packages} into {sys.executable}"
    return f"the Python {missing} not installed: {remedy}"


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


# ---- one service ----


END_S: Final = 10.0
"""How long a service may take to end after SIGTERM before it is killed."""
LOG_BYTES: Final = 1 << 20
"""The most bytes of a service's output to keep in its log. The last lines are kept in memory besides."""
_LAST_LINES: Final = 5
_LINE_BYTES: Final = 4096
_LOOK_S: Final = 0.02
_NS_A_TICK: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class ServiceProcess:
    """A running service. `ended` describes how it ended, if it has.

    Args:
        job: what to start.
        label: the owner's name, for messages.
        environment: its environment variables besides `HOST`, `PORT` and `FOLDER`.
        words: texts that replace ``{name}`` in its command and its variables, besides the service's own.
        base: the folder in which its own folder is created.
        log: the file for its output.
        secrets: texts to redact in that file.

    Raises:
        ServiceCrash: if its program cannot be started.
    """

    def __init__(
        self,
        job: ServiceJob,
        *,
        label: str,
        environment: Mapping[str, str],
        words: Mapping[str, str],
        base: Path,
        log: Path,
        secrets: Iterable[str],
    ) -> None:
        self.job = job
        self.label = label
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{job.name}-", dir=base))
        self.folder.chmod(0o711)
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._log = log
        self._secrets = [secret.encode() for secret in secrets if secret]
        self._put_files()
        self._words = {
            **words,
            "{python}": sys.executable,
            "{port}": str(self.port),
            "{host}": LOOPBACK,
            "{folder}": str(self.folder),
        }
        given = {
            "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            "HOME": os.environ.get("HOME", "/"),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            **{name: filled(text, self._words) for name, text in environment.items()},
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
            reason = error.strerror or str(error)
            raise ServiceCrash(f"{self.name}: cannot start {job.command[0]}: {reason}") from error
        self.identity = identity(self._process.pid)
        self._listener = threading.Thread(target=self._listen, name=f"uncork-{job.name}", daemon=True)
        self._listener.start()

    @property
    def name(self) -> str:
        """The service's name in messages."""
        return f"service {self.job.name} of {self.label}"

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its session and its process group."""
        return self._process.pid

    @property
    def url(self) -> str:
        """The address of the service, for services that depend on it."""
        return f"http{'s' if self.job.tls else ''}://{LOOPBACK}:{self.port}"

    @property
    def ended(self) -> str | None:
        """How the service ended, with the last lines of its output; None while it runs."""
        status = self._process.poll()
        if status is None:
            return None
        self._listener.join(1.0)
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return f"{self.name} ended ({how}{self._last_lines()})"

    def wait_ready(self) -> None:
        """Wait until the service answers.

        Raises:
            ServiceCrash: if it ends first, or is not ready in time; with the last lines of its output.
        """
        deadline = time.monotonic() + self.job.timeout_ns / 1e9
        while True:
            trouble = self._answers(max(0.1, min(2.0, deadline - time.monotonic())))
            if trouble is None:
                return
            if self.ended is not None:
                raise ServiceCrash(f"{self.ended} before it was ready")
            if time.monotonic() >= deadline:
                check = f"GET {self.job.ready}" if self.job.ready else f"port {self.port}"
                raise ServiceCrash(
                    f"{self.name} was not ready within {self.job.timeout_ns / 1e9:g} s "
                    f"({check}: {trouble}{self._last_lines()}); a longer timeout may help"
                )
            time.sleep(_LOOK_S)

    def ask_to_end(self) -> None:
        """Send SIGTERM to the whole process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)

    def wait_end(self, seconds: float) -> bool:
        """Wait until the service and all its descendants have ended; return whether they have."""
        deadline = time.monotonic() + seconds
        while True:
            if self._process.poll() is not None and not session_of(self._process.pid):
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)

    def kill(self) -> None:
        """Kill whatever still runs of the service, and remove its folder."""
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
        words = [filled(word, self._words) for word in self.job.command]
        if words[0] in self.job.files:
            words[0] = str(self.folder / words[0])
        words[0] = shutil.which(words[0], path=path) or words[0]
        return words

    def _answers(self, seconds: float) -> str | None:
        """Return why the service is not ready; None if it is ready."""
        trouble = self._answers_over_tcp(seconds)
        if trouble is None and self.job.udp and not receives_datagrams(self.port):
            return f"nothing listens on UDP port {self.port}, which HTTP/3 requires"
        return trouble

    def _answers_over_tcp(self, seconds: float) -> str | None:
        try:
            if self.job.ready is None:
                socket.create_connection((LOOPBACK, self.port), timeout=seconds).close()
                return None
            connection = self._connection(seconds)
            try:
                connection.request("GET", self.job.ready)
                status = connection.getresponse().status
            finally:
                connection.close()
        except http.client.BadStatusLine as error:
            # It answers, but not in HTTP/1.1: a service that speaks only HTTP/2 sends its settings first.
            return type(error).__name__ if isinstance(error, http.client.RemoteDisconnected) else None
        except (OSError, http.client.HTTPException) as error:
            return None if speaks_only_http2(error) else self._reason(error)
        return None if 200 <= status < 400 else f"status {status}"

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return "no answer"
        reason = getattr(error, "strerror", None) or type(error).__name__
        if self.job.udp and isinstance(error, ConnectionRefusedError):
            return f"{reason}; besides HTTP/3, it must accept HTTP/1.1 or HTTP/2 over TCP"
        return reason

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        if not self.job.tls:
            return http.client.HTTPConnection(LOOPBACK, self.port, timeout=seconds)
        tls = own_service_tls("http/1.1")
        return http.client.HTTPSConnection(LOOPBACK, self.port, timeout=seconds, context=tls)

    def _listen(self) -> None:
        """Keep the output: the first megabyte in the log, the last lines in memory."""
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 -- opened as a pipe
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            room = LOG_BYTES - log.tell()
            for line in iter(lambda: stream.readline(_LINE_BYTES), b""):
                redacted = line
                for secret in self._secrets:
                    redacted = redacted.replace(secret, b"***")
                text = redacted.decode(errors="replace").strip()
                if any(map(str.isalnum, text)):
                    self._lines.append(text)
                if room > 0:
                    log.write(redacted)
                    log.flush()
                    room -= len(redacted)
                    if room <= 0:
                        log.write(b"\n(the rest of the output was not kept)\n")
        stream.close()

    def _last_lines(self) -> str:
        lines = "; ".join(self._lines)
        return f": {lines}" if lines else ", no output"


def end_together(services: Iterable[ServiceProcess]) -> None:
    """End services together, with their descendants: send SIGTERM to all, then kill what remains in time."""
    ending = list(services)
    for service in reversed(ending):
        service.ask_to_end()
    deadline = time.monotonic() + END_S
    for service in ending:
        service.wait_end(deadline - time.monotonic())
        service.kill()


def session_of(leader: int) -> list[int]:
    """Return the living processes of the session that a process leads, without zombies."""
    return [pid for pid, fields in _session(leader) if fields[0] != "Z"]


def session_cpu_ns(leader: int) -> tuple[int, int] | None:
    """Return the processor time of a session, in user mode and in the kernel; None if no process is left.

    The sum is exact, from the kernel's clock of each process. The split between the two modes is known only
    in clock ticks. Processes that have ended count if their parents have waited for them.
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
    """Yield each process of a session with the fields of its /proc stat file, starting at the state."""
    for pid in all_pids():
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = process.stat_fields(pid)
            if int(fields[3]) == leader:
                yield pid, fields


def _cpu_ns(pid: int, ticks: int) -> int:
    """Return a process's time from its CPU clock, whose id is computed from the pid (clock_getcpuclockid).

    A zombie may no longer have a clock, but still has its ticks.
    """
    try:
        return max(time.clock_gettime_ns((~pid << 3) | 2), ticks * _NS_A_TICK)
    except OSError:
        return ticks * _NS_A_TICK


def of_folder(folder: Path) -> list[int]:
    """Return the processes that have this folder in their environment, whatever session they moved to."""
    mark = f"FOLDER={folder}\0".encode()
    found = []
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found


# ---- commands of an experiment file ----


_MOST_SHOWN = 200


def last_line_of(
    command: Sequence[str],
    *,
    files: Mapping[str, str],
    environment: Mapping[str, str],
    target: Target | None,
    timeout_ns: int,
) -> str:
    """Run a command without a shell, and return the last line of its output that is not empty.

    Args:
        command: program and arguments; ``{python}`` and, with a target, ``{database_url}`` and its parts are
            replaced.
        files: texts for the command's working directory, by name.
        environment: variables beside uncork's own; with a target, also `DATABASE_URL`.
        target: the database that the command is about; None if it is not PostgreSQL.
        timeout_ns: how long it may take.

    Raises:
        SetupError: if it cannot be started, takes too long, fails, or prints nothing.
    """
    words = {"{python}": sys.executable, **({} if target is None else database_words(target))}
    variables = {**os.environ, **environment}
    if target is not None:
        variables["DATABASE_URL"] = database_url(target)
    with scratch_folder("uncork-metric-") as folder:
        for name, text in files.items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise SetupError(f'"{name}" must be in the folder of the experiment file, or below it')
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        done = _run([filled(word, words) for word in command], folder, files, variables, timeout_ns)
    if done.returncode:
        lines = _lines(done.stderr) or ["it printed no reason"]
        password = None if target is None else target.connection.get("password")
        reason = lines[-1].replace(str(password), "***") if password else lines[-1]
        reason = reason[:_MOST_SHOWN]
        raise SetupError(f"the command {command[0]} ended with status {done.returncode}: {reason}")
    lines = _lines(done.stdout)
    if not lines:
        raise SetupError(f"the command {command[0]} printed nothing; its last line must be a number")
    return lines[-1]


def _run(
    words: list[str], folder: Path, files: Mapping[str, str], variables: Mapping[str, str], timeout_ns: int
) -> subprocess.CompletedProcess[bytes]:
    if words[0] in files:
        (folder / words[0]).chmod(0o700)
        words = [str(folder / words[0]), *words[1:]]
    try:
        return run(
            words,
            timeout=timeout_ns / 1e9,
            capture_output=True,
            env=variables,
            cwd=folder,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        limit = format_duration(timeout_ns)
        raise SetupError(
            f"the command {words[0]} took longer than {limit} and was ended; raise its timeout"
        ) from error
    except OSError as error:
        raise SetupError(f"the command {words[0]} cannot be started: {error.strerror or error}") from error


def filled(text: str, words: Mapping[str, str]) -> str:
    """Return a text in which each name of `words` is replaced by what it stands for."""
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def _lines(output: bytes) -> list[str]:
    return [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
