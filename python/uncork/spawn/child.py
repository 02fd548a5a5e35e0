"""Start child processes that end with this process, however it ends. Only this module starts processes.

Each child leads its own session and is registered with the reaper (`uncork.spawn.reaper`, ADR-0020).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uncork.errors import SetupError
from uncork.spawn import reaper
from uncork.spawn.reaper import TOKEN, start_of

Child = subprocess.Popen[Any]
"""A running child process."""
Done = subprocess.CompletedProcess[Any]
"""A child process that has ended, with its output."""


class _Reaper:
    """The reaper of this process, started at first use, and again if it was killed."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the reaper, its orders and its token; for a forked process, which owns no children yet."""
        self._close()
        self._lock = threading.Lock()
        self._orders: list[bytes] = []
        self._token = secrets.token_hex(8)

    def ready(self) -> str:
        """Start the reaper unless it runs; return the token for the environment of children."""
        with self._lock:
            if self._pipe is None:
                self._begin()
            return self._token

    def tell(self, order: Mapping[str, object]) -> None:
        """Send an order to the reaper, and keep it in case the reaper must be restarted."""
        line = json.dumps(order).encode() + b"\n"
        with self._lock:
            self._orders.append(line)
            try:
                if self._pipe is not None:
                    os.write(self._pipe, line)
                    return
            except BlockingIOError:  # the reaper is suspended; it can still find children by their token
                return
            except BrokenPipeError:
                pass
            self._begin()

    def _begin(self) -> None:
        """Start the reaper. It forks and its first process exits at once, so it is not our child."""
        self._close()
        theirs, ours = os.pipe()
        own = os.getpid()
        command = [
            sys.executable,
            "-I",
            "-S",
            reaper.__file__,
            self._token,
            str(own),
            str(start_of(own) or 0),
        ]
        try:
            begun = subprocess.run(
                command,
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"},
                start_new_session=True,
                check=False,
            )
            trouble = f"exit status {begun.returncode}" if begun.returncode else ""
        except OSError as error:
            trouble = error.strerror or str(error)
        finally:
            os.close(theirs)
        if trouble:
            os.close(ours)
            raise SetupError(
                f"cannot start the process that ends servers if uncork is killed: {sys.executable}: "
                f"{trouble}; run uncork with a Python interpreter that may start other programs"
            )
        self._pipe = ours
        for line in self._orders:
            os.write(ours, line)
        os.set_blocking(ours, False)

    def _close(self) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.close(self._pipe)
            self._pipe = None


_REAPER = _Reaper()
os.register_at_fork(after_in_child=_REAPER.reset)


def start(
    command: Sequence[str],
    *,
    ask: signal.Signals | None = None,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> Child:
    """Start a command in a session of its own. The child ends when this process ends, however it ends.

    `ask` is a signal that lets the child shut down cleanly when this process has ended; one second later it
    is killed. If None, it is killed at once. `env` is its environment; ours if None. `options` are further
    arguments of `subprocess.Popen`.

    Raises:
        OSError: if the command cannot be started.
        SetupError: if the reaper cannot be started.
    """
    token = _REAPER.ready()
    given = {**(os.environ if env is None else env), TOKEN: token}
    child = subprocess.Popen(command, env=given, start_new_session=True, **options)
    started = start_of(child.pid)
    if started is not None:
        _REAPER.tell({"leader": [child.pid, started], "ask": ask or 0})
    return child


def run(
    command: Sequence[str],
    *,
    timeout: float | None = None,
    capture_output: bool = False,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> Done:
    """Run a command to its end, as `subprocess.run` does, with the guarantees of `start`.

    Raises:
        OSError: if the command cannot be started.
        SetupError: if the reaper cannot be started.
        subprocess.TimeoutExpired: if it takes longer than `timeout` seconds; it is killed then.
    """
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(command, env=env, **options) as child:
        try:
            output, errors = child.communicate(timeout=timeout)
        except BaseException:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
        return Done(child.args, child.returncode, output, errors)


def owned_environment() -> dict[str, str]:
    """Return variables for processes that a library starts: with them, they end when this process has ended.

    Raises SetupError if the reaper cannot be started.
    """
    return {TOKEN: _REAPER.ready()}


def remove_at_death(folder: Path) -> None:
    """Have a folder removed after this process has ended, if it still exists.

    Raises SetupError if the reaper cannot be started.
    """
    _REAPER.tell({"folder": str(folder.absolute())})


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """Yield a folder for temporary files, which is removed afterwards, even if this process is killed.

    Raises SetupError if the reaper cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        remove_at_death(Path(name))
        yield Path(name)
