"""Record stacks of processes, a server or a command, or import them from other profilers."""

from __future__ import annotations

import bisect
import contextlib
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa

from uncork.engines.conninfo import Address
from uncork.engines.postmaster import find_processes
from uncork.engines.watch.connection import ServerWatch
from uncork.errors import UncorkError, UsageError
from uncork.model.results.stacks import ProfileFormat
from uncork.model.stored_run import RunStatus
from uncork.model.tables.register import TABLES
from uncork.profile import perf
from uncork.profile.activity import wait_class
from uncork.profile.proc_watch import ProcWatch, process_name, tree
from uncork.profile.server_templates import TemplateBook
from uncork.profile.stacks import fetch, is_address, read_profile
from uncork.profile.statement_origin import origin
from uncork.profile.syscalls import Syscalls, count_syscalls
from uncork.spawn.child import Child, start
from uncork.store.tables import arrow_schema, rows_table

# ---- label stacks with the session that a process served at a moment, from samples of the server ----


_NEAR_NS: Final = 250_000_000
"""A sample further away than this does not describe a moment."""
_MOSTLY: Final = 0.9
"""The fraction of a process's samples above which a template labels all of its time."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a process was at a moment: kind of backend, application, template, wait; empty if unknown.

    `route` is the one that a comment in the statement names.
    """

    backend: str = ""
    application: str = ""
    template: str = ""
    wait: str = ""
    route: str = ""


class SessionWatch:
    """Samples which session works on what in a server, while its processes are profiled.

    An error ends sampling and is stored in `trouble`; later stacks have no labels.
    """

    def __init__(self, conninfo: str, rate_hz: float = 20.0) -> None:
        self._server = ServerWatch(conninfo)
        self._period = 1.0 / rate_hz
        self._book = TemplateBook()
        self._texts: dict[int, str] = {}
        self._found: dict[int, list[tuple[int, Label, int | None, int | None]]] = defaultdict(list)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.looks = 0
        self.trouble = ""

    @property
    def pid(self) -> int:
        """The server process of this watch's own session."""
        return self._server.pid

    def start(self) -> None:
        """Start sampling."""
        if self._thread is not None:
            return
        self._server.facts()
        self._server.begin_sampling()
        self._thread = threading.Thread(target=self._run, name="uncork-sessions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling, and look up the texts of statements known only by id."""
        self._stop.set()
        if self._thread is None:
            return
        self._thread.join()
        with contextlib.suppress(UncorkError):
            for query_id, text in {**self._texts, **self._server.texts(self._texts)}.items():
                self._book.number(query_id, text)

    def close(self) -> None:
        """Stop sampling, and close the connection."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._server.close()

    def label(self, pid: int | None, time_ns: int | None) -> Label:
        """Return the label of a process at a moment of the monotonic clock."""
        samples = self._found.get(-1 if pid is None else pid)
        if not samples:
            return Label()
        if time_ns is None:
            return self.mostly(pid)
        place = bisect.bisect_left(samples, time_ns, key=lambda sample: sample[0])
        near = [
            sample
            for sample in samples[max(0, place - 1) : place + 1]
            if abs(sample[0] - time_ns) <= _NEAR_NS
        ]
        if not near:
            # A session that was idle at the next samples still has its kind and application.
            kind = samples[min(place, len(samples) - 1)][1]
            return Label(kind.backend, kind.application)
        return self._labelled(min(near, key=lambda one: abs(one[0] - time_ns)))

    def mostly(self, pid: int | None) -> Label:
        """Return the label of a process for all its time; the template only if nearly always the same."""
        samples = self._found.get(-1 if pid is None else pid)
        if not samples:
            return Label()
        labels = [self._labelled(sample) for sample in samples]
        last = labels[-1]
        (first, most), *_ = Counter((label.template, label.route) for label in labels).most_common(1)
        template, route = first if most >= _MOSTLY * len(labels) else ("", "")
        return Label(last.backend, last.application, template, route=route)

    def waits(self) -> list[tuple[int, Label]]:
        """Return every sample of every session: its process, and what it did."""
        return [(pid, self._labelled(one)) for pid, found in self._found.items() for one in found]

    def _labelled(self, sample: tuple[int, Label, int | None, int | None]) -> Label:
        _, label, query_id, template = sample
        number = template if query_id is None else self._book.number(query_id, None)
        text = "" if number is None else self._book.texts[number]
        return replace(label, template=text)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            try:
                look = self._server.look(self._texts.keys(), blockers=False)
            except UncorkError as error:
                self.trouble = str(error)
                return
            due = max(due + self._period, time.monotonic())
            if look is None:
                continue
            self.looks += 1
            middle = (look.begun_ns + look.ended_ns) // 2
            for row in look.rows:
                query_id, text = row["query_id"], row["text"]
                if query_id is not None and text:
                    self._texts[query_id] = text
                number = self._book.number(None, text) if query_id is None else None
                route = origin(row["comment"], paths=False) or ""
                label = Label(row["backend"] or "", row["application"] or "", "", _wait(row), route)
                self._found[row["pid"]].append((middle, label, query_id, number))


def _wait(row: dict[str, object]) -> str:
    found = wait_class(row)
    return f"{found}: {row['wait_event']}" if row["wait_event"] else str(found)


# ---- record stacks of processes, a server or a command, or import them from other profilers ----


Rows = Counter[tuple[Any, ...]]
_SYSCALL_S: Final = 3.0
"""The longest time for counting system calls, because tracing slows a process down."""


@dataclass(frozen=True, slots=True)
class StackRequest:
    """What to profile: processes, a server and profiles to import in any combination, or a command.

    `call_graph` is the method of unwinding stacks; None tries out which one works. Without `code`,
    only processor time and sessions are recorded. `told` receives progress messages.
    """

    pids: tuple[int, ...] = ()
    postgres: Address | None = None
    command: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    format: ProfileFormat | None = None
    seconds: float = 10.0
    rate_hz: int = 99
    call_graph: perf.CallGraph | None = None
    syscalls: bool = False
    code: bool = True
    told: Callable[[str], None] = field(default=lambda _: None)

    @property
    def target(self) -> str:
        """What is profiled, as text without secrets."""
        found = []
        if self.postgres is not None:
            found.append(self.postgres.place)
        if self.pids:
            found.append(
                f"{'process' if len(self.pids) == 1 else 'processes'} {', '.join(map(str, self.pids))}"
            )
        if self.command:
            found.append(f"command {self.command[0]}")
        found += [PurePosixPath(name.partition("?")[0]).name or "a profile" for name in self.imports]
        return ", ".join(found)

    @property
    def word(self) -> str:
        """The word for the run's name."""
        if self.postgres is not None:
            return self.postgres.database
        if self.command:
            return PurePosixPath(self.command[0]).name
        if self.pids:
            return process_name(self.pids[0]) or str(self.pids[0])
        return PurePosixPath(self.imports[0].partition("?")[0]).name


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded: facts and tables to store, how it ended, and why if it stopped early (`trouble`)."""

    status: RunStatus
    facts: Mapping[str, Any]
    tables: dict[str, pa.Table]
    trouble: str


@dataclass(slots=True)
class _Found:
    """What has been recorded so far: stacks as rows with labels, or as whole tables."""

    stacks: Rows = field(default_factory=Counter)
    tables: list[pa.Table] = field(default_factory=list)
    measures: list[tuple[str, str]] = field(default_factory=list)
    cannot_see: list[str] = field(default_factory=list)
    processes: list[dict[str, Any]] = field(default_factory=list)
    method: dict[str, Any] = field(
        default_factory=lambda: {
            "tool": "import",
            "call_graph": "",
            "reason": "",
            "samples": 0,
            "frames": 0.0,
        }
    )
    watched_ns: int = 0
    cpu_ns: tuple[int, int] | None = None
    syscalls: Syscalls | None = None
    status: RunStatus = "complete"
    trouble: str = ""

    def add_measure(self, name: str, unit: str) -> None:
        if (name, unit) not in self.measures:
            self.measures.append((name, unit))


def record_stacks(request: StackRequest) -> Recorded:
    """Record what a request asks for. Ctrl-C ends it early and keeps what was recorded.

    Raises:
        UsageError: if a profile is damaged, a process does not exist, or a command cannot be started.
        ConnectError: if a server cannot be reached.
    """
    found = _Found()
    if request.command and shutil.which(request.command[0]) is None:
        raise UsageError(f"--command {request.command[0]}: command not found")
    recording = bool(request.pids or request.command or request.postgres is not None)
    # A profile at an address is of the time in which it is fetched, so that is the time to record, too.
    later = [_Fetch(name, request) for name in request.imports if recording and is_address(name)]
    imported = [_import(name, request) for name in request.imports if not (recording and is_address(name))]
    for one in later:
        one.start()
    if recording:
        _record(request, found)
    for one in later:
        if found.status == "interrupted" and one.is_alive():
            found.cannot_see.append(f"the profile at {one.name}: interrupted before it came")
            continue
        imported.append(one.result())
    alone = not recording and len(imported) == 1
    for name, profile in imported:
        prefix = "" if alone else f"{PurePosixPath(name.partition('?')[0]).name}: "
        _add_import(found, profile, prefix)
        if found.method["tool"] == "import":
            found.method["reason"] = f"read as {profile.format}"
            found.method["samples"] += len(profile.stacks)
    stacks = [*found.tables]
    if found.stacks:
        names = ("measure", "unit", "pid", "process", "backend", "application", "template", "route", "stack")
        rows = [{**dict(zip(names, key, strict=True)), "value": value} for key, value in found.stacks.items()]
        stacks.insert(0, rows_table("stacks", rows))
    counted = found.syscalls
    facts = {
        "method": {
            **found.method,
            "rate_hz": request.rate_hz if found.method["tool"] == "perf" else 0,
            "watched_ns": found.watched_ns,
            "cannot_see": found.cannot_see,
        },
        "measures": found.measures,
        "cpu_ns": found.cpu_ns,
        "syscalls": {
            "by": counted.tool if counted else "",
            "watched_ns": counted.watched_ns if counted else 0,
        },
        "trouble": found.trouble,
    }
    tables = {
        "stacks": pa.concat_tables(stacks) if stacks else arrow_schema(TABLES["stacks"]).empty_table(),
        "stack_processes": rows_table("stack_processes", found.processes),
        "stack_syscalls": rows_table("stack_syscalls", list(counted.rows) if counted else []),
    }
    return Recorded(found.status, facts, tables, found.trouble)


# ---- profiles of other tools ----


class _Fetch(threading.Thread):
    """Fetches a profile at an address while processes are recorded."""

    def __init__(self, address: str, request: StackRequest) -> None:
        super().__init__(name=address.partition("?")[0], daemon=True)
        self._address, self._request = address, request
        self._profile: tuple[str, Any] | None = None
        self._error: UncorkError | None = None

    def run(self) -> None:
        """Fetch and read the profile."""
        try:
            self._profile = _import(self._address, self._request)
        except UncorkError as error:
            self._error = error

    def result(self) -> tuple[str, Any]:
        """Wait for the profile, and return it.

        Raises UsageError if it could not be fetched, or is damaged.
        """
        self.join()
        if self._profile is None:
            raise self._error or UsageError(f"cannot fetch {self.name}")
        return self._profile


def _import(name: str, request: StackRequest) -> tuple[str, Any]:
    shown = "standard input" if name == "-" else name
    return name, read_profile(fetch(name), shown, format=request.format)


def _add_import(found: _Found, profile: Any, prefix: str) -> None:
    order = [profile.default, *(place for place in range(len(profile.measures)) if place != profile.default)]
    stacks = profile.stacks
    schema = arrow_schema(TABLES["stacks"])
    for place in order:
        name, unit = profile.measures[place]
        rows = stacks.filter(pa.compute.equal(stacks["measure"], place)) if len(order) > 1 else stacks
        if not len(rows):
            continue
        found.add_measure(f"{prefix}{name}", unit)
        same = {"measure": f"{prefix}{name}", "unit": unit, "backend": "", "application": "", "template": ""}
        columns = {
            column.name: (
                pa.repeat(pa.scalar(same[column.name], pa.string()), len(rows))
                if column.name in same
                else rows[column.name].cast(column.type)
            )
            for column in schema
        }
        found.tables.append(pa.table(columns, schema=schema))


# ---- processes ----


def _record(request: StackRequest, found: _Found) -> None:
    pids = list(request.pids)
    for pid in pids:
        if process_name(pid) is None:
            raise UsageError(f"--pid {pid}: no such process")
    sessions = None
    if request.postgres is not None:
        server = find_processes(request.postgres.conninfo())
        if server.postmaster is None:
            found.cannot_see.append(f"stacks of the server: {server.reason}")
        else:
            pids.append(server.postmaster)
        try:
            sessions = SessionWatch(request.postgres.conninfo())
        except UncorkError as error:
            found.cannot_see.append(f"which session a stack belongs to: {error}")
    try:
        if pids or request.command:
            _record_processes(request, pids, sessions, found)
        elif sessions is not None:
            _watch_sessions(request, sessions, found)
        if sessions is not None:
            _add_sessions(sessions, found)
    finally:
        if sessions is not None:
            sessions.close()


def _watch_sessions(request: StackRequest, sessions: SessionWatch, found: _Found) -> None:
    """Sample only sessions, where processes cannot be observed."""
    found.method |= {"tool": "sessions", "reason": "the server's list of sessions, read 20 times a second"}
    begun = time.monotonic_ns()
    sessions.start()
    with _interruptible(found):
        time.sleep(request.seconds)
    sessions.stop()
    found.watched_ns = time.monotonic_ns() - begun


def _add_sessions(sessions: SessionWatch, found: _Found) -> None:
    """Add what sessions did as stacks: kind, application, wait, template."""
    if sessions.trouble:
        found.cannot_see.append(f"what sessions did after sampling stopped early: {sessions.trouble}")
    if not sessions.looks:
        return
    for _, label in sessions.waits():
        if not label.backend:
            continue
        parts = (label.backend, label.application, label.wait, label.template)
        stack = ";".join(part.replace(";", ",").replace("\n", " ") for part in parts if part)
        found.stacks["sessions", "samples", None, "", *_columns(label), stack] += 1
        found.add_measure("sessions", "samples")


def _record_processes(
    request: StackRequest, pids: list[int], sessions: SessionWatch | None, found: _Found
) -> None:
    watch = ProcWatch(tuple(pids))
    recording: perf.Recording | None = None
    try:
        if not request.code:
            raise perf.PerfLack("not asked for")
        tool = perf.find_perf()
        if request.command:
            choice = perf.Choice(
                request.call_graph or "dwarf", "the default for a command; --call-graph fp costs less"
            )
        elif request.call_graph is not None:
            choice = perf.Choice(request.call_graph, "as requested")
        else:
            request.told("trying out methods of unwinding stacks")
            choice = perf.choose_call_graph(tool, sorted(tree(pids)))
        request.told(
            f"recording with perf ({choice.method}: {choice.reason}); Ctrl-C ends it and shows the report"
        )

        def started(pid: int) -> None:
            if request.command:
                watch.pids, watch.left_out = (pid,), frozenset({pid})
            watch.start()

        if sessions is not None:
            sessions.start()
        recording = perf.record(
            tool,
            choice.method,
            request.rate_hz,
            pids=() if request.command else sorted(tree(pids)),
            seconds=request.seconds,
            command=request.command,
            started=started,
        )
        found.method |= {"tool": "perf", "call_graph": choice.method, "reason": choice.reason}
        found.watched_ns = recording.watched_ns
        if recording.interrupted:
            found.status = "interrupted"
        if recording.status not in (None, 0) and not recording.interrupted:
            found.status = "failed"
            found.trouble = f"the command ended with status {recording.status}"
    except perf.PerfLack as lack:
        found.cannot_see.append(f"stacks of code: {lack}")
        found.method |= {"tool": "/proc", "reason": "process data that every user may read"}
        request.told(f"{lack}; reading /proc instead, without frames of user code")
        _without_perf(request, watch, sessions, found)
    finally:
        watch.stop()
        if sessions is not None:
            sessions.stop()
    _add_processes(watch, sessions, found)
    if recording is not None:
        _add_samples(recording, sessions, found)
    if request.syscalls and not request.command and found.status == "complete":
        _add_syscalls(request, sorted(tree(pids)), sessions, found)


def _without_perf(
    request: StackRequest, watch: ProcWatch, sessions: SessionWatch | None, found: _Found
) -> None:
    if sessions is not None:
        sessions.start()
    begun = time.monotonic_ns()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if request.command:
        running = _start(request.command)
        watch.pids = (running.pid,)
        watch.start()
        with _interruptible(found):
            running.wait()
        _end(running)
        if running.returncode and found.status == "complete":
            found.status, found.trouble = "failed", f"the command ended with status {running.returncode}"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        found.cpu_ns = (round(user * 1e9), round(system * 1e9))
    else:
        watch.start()
        with _interruptible(found):
            time.sleep(request.seconds)
    found.watched_ns = time.monotonic_ns() - begun


def _start(command: Sequence[str]) -> Child:
    try:
        return start(command, stdin=subprocess.DEVNULL, stdout=2)
    except OSError as error:
        raise UsageError(f"--command {command[0]}: {error.strerror}") from error


def _end(running: Child) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if running.poll() is not None:
            return
        running.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(5.0)


@contextlib.contextmanager
def _interruptible(found: _Found) -> Any:
    try:
        yield
    except KeyboardInterrupt:
        found.status = "interrupted"


def _columns(label: Label) -> tuple[str, str, str, str]:
    return label.backend, label.application, label.template, label.route


def _add_processes(watch: ProcWatch, sessions: SessionWatch | None, found: _Found) -> None:
    """Add the processor time of processes, where they slept, and, without perf, stacks made from both."""
    own = -1 if sessions is None else sessions.pid
    for seen in watch.seen.values():
        if seen.pid == own:
            continue
        user, system = (end - begin for begin, end in zip(seen.begun, seen.ended, strict=True))
        label = Label() if sessions is None else sessions.mostly(seen.pid)
        row = {"pid": seen.pid, "process": seen.name, "backend": label.backend}
        found.processes.append({**row, "user_ns": user, "system_ns": system})
        if found.method["tool"] == "/proc":
            labels = (seen.pid, seen.name, *_columns(label))
            for stack, value in (("[user code]", user), ("[kernel]_[k]", system)):
                if value:
                    found.stacks["cpu", "nanoseconds", *labels, stack] += value
                    found.add_measure("cpu", "nanoseconds")
    if found.cpu_ns is None:
        sums = tuple(sum(row[name] for row in found.processes) for name in ("user_ns", "system_ns"))
        found.cpu_ns = (sums[0], sums[1])
    if found.method["tool"] == "perf":
        found.add_measure("cpu", "samples")
    for sleep in watch.asleep:
        label = Label() if sessions is None else sessions.label(sleep.pid, sleep.time_ns)
        if sleep.pid == own or (sessions is not None and not label.wait):
            continue  # an idle session waits for its client or for work
        labels = (sleep.pid, sleep.name, *_columns(label))
        found.stacks["off-cpu", "nanoseconds", *labels, sleep.stack] += sleep.value_ns
        found.add_measure("off-cpu", "nanoseconds")
    if watch.stacks_hidden:
        found.cannot_see.append(
            "kernel frames of sleeping processes, except their function (run as root to see them)"
        )


def _add_samples(recording: perf.Recording, sessions: SessionWatch | None, found: _Found) -> None:
    own = -1 if sessions is None else sessions.pid
    samples = recording.samples
    frames = 0
    number = 0
    columns = (samples[name].to_pylist() for name in ("pid", "process", "time_ns", "stack", "value"))
    for pid, process, time_ns, stack, value in zip(*columns, strict=True):
        if pid == own:
            continue
        label = Label() if sessions is None else sessions.label(pid, time_ns)
        labels = (pid, process, *_columns(label))
        found.stacks["cpu", "samples", *labels, stack] += value
        frames += stack.count(";") + 1
        number += 1
    found.method |= {"samples": number, "frames": frames / number if number else 0.0}
    if number and not any("_[k]" in key[-1] for key in found.stacks if key[0] == "cpu"):
        found.cannot_see.append("frames of the kernel: perf may see only user code here")
    found.cannot_see += recording.notes


def _add_syscalls(
    request: StackRequest, pids: Sequence[int], sessions: SessionWatch | None, found: _Found
) -> None:
    seconds = min(request.seconds, _SYSCALL_S)
    request.told(f"counting system calls, {seconds:g} s")
    counted = count_syscalls([pid for pid in pids if process_name(pid)], seconds)
    if counted.lack:
        found.cannot_see.append(f"system calls: {counted.lack}")
        return
    rows = []
    for row in counted.rows:
        label = Label() if sessions is None else sessions.mostly(row["pid"])
        name = row["process"] or process_name(row["pid"]) or ""
        rows.append({**row, "process": name, "template": label.template})
    found.syscalls = Syscalls(tuple(rows), counted.tool, counted.watched_ns, "")
