"""What runs on a node: it starts the node's part of a load or experiment, steers it, and reports on it."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Final, Literal

from uncork import __version__
from uncork.cluster.ports import News, NodeFacts, Program
from uncork.engines import process
from uncork.errors import RunError
from uncork.load.sql import build_facts
from uncork.spawn.child import Child, remove_at_death, start
from uncork.store.parts import RESERVATIONS
from uncork.store.snapshots import SNAPSHOTS

STALE_NS: Final = 2_000_000_000
"""A renewal that is older than this when it arrives does not count: its node was suspended meanwhile."""
_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_COMMANDS: Final[Mapping[Program, Sequence[str]]] = {
    "load": (sys.executable, "-m", "uncork.cluster.part_process"),
    "experiment": (sys.executable, "-m", "uncork.cluster.host_process"),
}
_SAID_MOST: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Keeper:
    """The process that started the agent and ends it when it ends itself; `name` is what messages call it."""

    pid: int
    name: str

    @property
    def state(self) -> Literal["runs", "suspended", "ended"]:
        """What it does now, by the kernel's words (proc_pid_stat(5))."""
        try:
            letter = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return "ended"
        return "ended" if letter in "ZXx" else "suspended" if letter in "Tt" else "runs"


class NodeAgent:
    """The agent of a node. Its methods return at once, and take and return plain values.

    The part is a child process. It ends with this process, however that ends: its reaper kills it, and nobody
    renews its lease.
    """

    def __init__(
        self, commands: Mapping[Program, Sequence[str]] = _COMMANDS, keeper: Keeper | None = None
    ) -> None:
        self._commands = commands
        self._keeper = keeper
        self._told = False
        self._scratch: Path | None = None
        self._child: Child | None = None
        self._run: Path | None = None
        self._progress: FileIO | None = None
        self._unfinished = b""
        self._text = b""
        self._known: dict[Path, tuple[int, int]] = {}
        self._sent_files = False

    def facts(self) -> dict[str, Any]:
        """Return the node's `NodeFacts`."""
        machine = (process.identity(os.getpid()) or {}).get("machine", 0)
        built = build_facts()
        core = f"{built.get('version', '')} {built.get('profile', '')}"
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return asdict(NodeFacts(platform.node(), machine, __version__, core, files, _ports()))

    def clock(self) -> int:
        """Return the time of the node's wall clock, in Unix nanoseconds."""
        return time.time_ns()

    def begin(self, job: bytes, program: Program = "load") -> None:
        """Start a part's process with its pickled job; it prepares itself, and then awaits a line."""
        self._run, self._text, self._unfinished, self._sent_files = None, b"", b"", False
        self._scratch = Path(tempfile.mkdtemp(prefix="uncork-part-"))
        remove_at_death(self._scratch)
        with (self._scratch / "errors").open("wb") as errors:
            self._child = start(
                list(self._commands[program]),
                cwd=self._scratch,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
            )
        if self._child.stdout is not None:
            os.set_blocking(self._child.stdout.fileno(), False)
        self._write(b"%d\n%b" % (len(job), job))

    def gather(self, task: bytes) -> bytes:
        """Read the logs of a pickled task (`uncork.profile.portions.tasks`); return what was gathered.

        This takes as long as reading takes, and no other call is carried out meanwhile.
        """
        from uncork.profile.portions.tasks import gather_task  # noqa: PLC0415 -- only where logs are read

        return gather_task(pickle.loads(task))  # noqa: S301 -- from the coordinator, as all jobs

    def tell(self, line: str) -> None:
        """Send the part a line."""
        self._write(line.encode() + b"\n")

    def watch(self, sent_ns: int) -> dict[str, Any]:
        """Renew the part's lease, and return the `News` since the last call.

        `sent_ns` is when the coordinator asked, by this node's wall clock. If that is long ago, this node was
        suspended, and the coordinator may have given it up: the lease is not renewed.
        """
        if time.time_ns() - sent_ns < STALE_NS:
            self._write(b"\n")
        status = None if self._child is None else self._child.poll()
        ending, notes = self._of_keeper()
        news = News(
            said=(*self._said(status), *notes),
            snapshots=zlib.compress(self._new_snapshots()),
            reserved=self._reserved(),
            files=self._first_files(),
            status=status,
            ending=ending,
        )
        return asdict(news)

    def stop(self) -> None:
        """Ask the part to end early, and to keep what it has measured."""
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)

    def files(self) -> dict[str, bytes]:
        """Return all files of the part's run, compressed, by their paths in its folder."""
        return {} if self._run is None else _packed(self._run, _files(self._run))

    def new_files(self) -> dict[str, bytes]:
        """Return the files of the part's run that this method has not returned yet, or that have changed."""
        if self._run is None:
            return {}
        facts = {path: path.stat() for path in _files(self._run)}
        marks = {path: (fact.st_size, fact.st_mtime_ns) for path, fact in facts.items()}
        new = [path for path, mark in marks.items() if self._known.get(path) != mark]
        self._known |= marks
        return _packed(self._run, new)

    def end(self) -> None:
        """End the part if it still runs, and remove its folder."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    pipe.close()
            self._child = None
        if self._progress is not None:
            self._progress.close()
            self._progress = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _of_keeper(self) -> tuple[str, list[dict[str, str]]]:
        if self._keeper is None:
            return "", []
        state, name = self._keeper.state, self._keeper.name
        first = state == "suspended" and not self._told
        self._told = state == "suspended"
        where = f"{name} on {platform.node()} (process {self._keeper.pid})"
        note = f"{where} is suspended: the part there goes on"
        return f"{name} has ended" if state == "ended" else "", [{"note": note}] if first else []

    def _write(self, data: bytes) -> None:
        if self._child is None or self._child.stdin is None:
            raise RunError("the node has no part to steer")
        with contextlib.suppress(BrokenPipeError):  # it has ended, which its status says
            self._child.stdin.write(data)

    def _said(self, status: int | None) -> Iterator[dict[str, Any]]:
        """Yield the part's new messages. A part that crashed has none at its end: then its last words."""
        ended = False
        if self._child is not None and self._child.stdout is not None:
            while data := self._child.stdout.read(_SAID_MOST):  # None if there is nothing to read now
                self._text += data
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "folder" in message:
                self._run = Path(message["folder"])
            ended = ended or "error" in message or "outcome" in message
            yield message
        if status is not None and status != 0 and not ended and self._scratch is not None:
            words = (self._scratch / "errors").read_text(errors="replace").strip().splitlines()
            yield {"last": words[-1] if words else ""}

    def _new_snapshots(self) -> bytes:
        """Return the whole lines that the part has added to its progress, also after it deleted the file."""
        if self._progress is None and self._run is not None:
            with contextlib.suppress(OSError):
                self._progress = (self._run / SNAPSHOTS).open("rb", buffering=0)
        if self._progress is None:
            return b""
        *lines, self._unfinished = (self._unfinished + self._progress.readall()).split(b"\n")
        return b"".join(line + b"\n" for line in lines)

    def _reserved(self) -> bytes:
        if self._run is None:
            return b""
        try:
            return (self._run / RESERVATIONS).read_bytes()
        except OSError:
            return b""

    def _first_files(self) -> dict[str, bytes]:
        """Return what the part has written by its start, once: a lost part is counted with its help."""
        if self._sent_files or self._run is None or not (self._run / "plan.json").is_file():
            return {}
        self._sent_files = True
        files = [path for path in _files(self._run) if path.name not in (SNAPSHOTS, RESERVATIONS)]
        return _packed(self._run, files)


def own_facts() -> NodeFacts:
    """Return the facts of this machine."""
    return NodeFacts(**NodeAgent().facts())


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _packed(folder: Path, files: Sequence[Path]) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): zlib.compress(path.read_bytes()) for path in files}


def _ports() -> int:
    try:
        first, last = map(int, _PORTS.read_text().split())
    except (OSError, ValueError):
        return 28_232
    return last - first + 1
