"""Read from /proc how the program was started that listens on a port."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from uncork.engines.services.inspection import is_here, listeners, parent_of
from uncork.model.services.program import RunningProgram, stored_program


def listening_program(host: str, port: int, wanted: Sequence[int] = ()) -> RunningProgram | None:
    """Return the program that listens on a port of this machine, or of the processes given by id.

    If several processes listen, because a server has started workers, it is the one that started the others.
    None if the host is another machine, or if no process can be seen.
    """
    pids = list(wanted) or ([pid for pid in listeners(port) if pid != os.getpid()] if is_here(host) else [])
    for pid in sorted(pids, key=lambda pid: parent_of(pid) in pids):
        with suppress(OSError):
            return _program(pid)
    return None


def _program(pid: int) -> RunningProgram:
    words = [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")][:-1]
    folder = _link(f"/proc/{pid}/cwd") or "/"
    environment: dict[str, str] | None = None
    with suppress(OSError):
        pairs = os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes()).split("\0")
        environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    first = _resolved(pid, words[0] if words else "", folder, (environment or {}).get("PATH"))
    if first is None:
        return stored_program((), folder, environment, " ".join(words))
    return stored_program((first, *words[1:]), folder, environment)


def _resolved(pid: int, word: str, folder: str, path: str | None) -> str | None:
    """Return the absolute path by which a program was started; None if its first word is not a program.

    The path matters: Python finds a virtual environment by it, although the file is the same.
    """
    file = _link(f"/proc/{pid}/exe")
    if file is None or not word:
        return None
    named = (
        str(Path(folder, word)) if "/" in word else shutil.which(word, path=path or os.environ.get("PATH"))
    )
    if named is not None and Path(named).exists():
        return named
    return file if Path(word).name == Path(file).name else None


def _link(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except OSError:
        return None
