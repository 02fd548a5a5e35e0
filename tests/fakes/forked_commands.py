"""Run the command line in forks of one process that has imported it.

A command is a process of its own, as when a person types it: with its own folder, environment, standard
streams, signals and exit status. Only the interpreter's start and the imports, which take longer than most
short commands, happen once.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

_OUTSIDE = (
    *("altair", "duckdb", "numpy", "pandas", "psycopg", "vl_convert", "zoneinfo"),
    *("pyarrow.compute", "pyarrow.dataset", "pyarrow.parquet", "rich.markdown"),
)
"""Libraries that functions of uncork import when they run."""
_ELSEWHERE = (
    *("uncork.cases.", "uncork.api.pytest_plugin", "uncork.engines.drivers.", "uncork.mcp.server"),
    "uncork.__main__",
)
"""Modules that run as programs of their own, or that load another engine."""


class ForkedCommands:
    """Starts the process that is forked; each call runs one command and waits until it ends."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a fork has only the thread that forks
        )
        theirs.close()

    def run(
        self, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run ``uncork`` with these arguments.

        Raises:
            subprocess.TimeoutExpired: it was killed because it took longer.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            asked = json.dumps([arguments, str(folder), dict(environment)]).encode()
            head = len(asked).to_bytes(8, "big")
            socket.send_fds(self._socket, [head], [out.fileno(), error.fileno()])
            self._socket.sendall(asked)
            pid = int(_line(self._socket))
            self._socket.settimeout(timeout)
            try:
                status = int(_line(self._socket))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._socket.settimeout(None)
                _line(self._socket)
                raise subprocess.TimeoutExpired(arguments, timeout) from None
            finally:
                self._socket.settimeout(None)
            texts = []
            for file in (out, error):
                file.seek(0)
                texts.append(file.read().decode())
        return subprocess.CompletedProcess(list(arguments), status, *texts)

    def end(self) -> None:
        """End the process."""
        self._socket.close()
        self._process.wait(30)


def _line(stream: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        byte = stream.recv(1)
        if not byte:
            raise EOFError("the process that runs commands has ended")
        found += byte
    return found


# ---- the process that is forked ----


def _serve(stream: socket.socket) -> None:
    import uncork

    ours = [module.name for module in pkgutil.walk_packages(uncork.__path__, "uncork.")]
    for name in (*ours, *_OUTSIDE):
        if not name.startswith(_ELSEWHERE):
            with contextlib.suppress(ImportError):  # of an optional package: told when it is used
                importlib.import_module(name)
    gc.freeze()  # forks share the pages of what was imported
    while True:
        head, files, _, _ = socket.recv_fds(stream, 8, 2)
        if not head:  # whoever asks has ended
            return
        left, asked = int.from_bytes(head, "big"), b""
        while len(asked) < left:
            asked += stream.recv(left - len(asked))
        arguments, folder, environment = json.loads(asked)
        pid = os.fork()
        if pid == 0:
            stream.close()
            _command(arguments, folder, environment, files)
        for file in files:
            os.close(file)
        stream.sendall(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        stream.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _command(arguments: list[str], folder: str, environment: dict[str, str], files: list[int]) -> NoReturn:
    """Be ``python -m uncork`` with these arguments."""
    for file, descriptor in zip(files, (1, 2), strict=True):
        os.dup2(file, descriptor)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    importlib.reload(sys.modules["uncork.cli.console"])  # width and colour come from the environment
    sys.argv = ["uncork", *arguments]
    try:
        runpy.run_module("uncork", run_name="__main__", alter_sys=True)
        raise AssertionError("the command line always ends by SystemExit")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 -- as the interpreter does
        traceback.print_exc()
        status = 1
    # What the interpreter does at its end, but without tearing down every imported module.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)
