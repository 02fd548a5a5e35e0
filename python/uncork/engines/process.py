"""Record the owner of a run or a server, and tell it from a later process with the same pid."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from uncork.engines.places import servers_folder
from uncork.spawn.child import remove_at_death
from uncork.spawn.reaper import all_pids

_FIRST_SPACE: Final = 0xEFFFFFFC
"""The inode of Linux's initial PID namespace, which contains all others (PROC_PID_INIT_INO)."""
_BEGINNING_S: Final = 60.0
"""How long a folder may have no recorded owner yet."""


def stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the command: state, parent, ..., utime (11), start (19).

    Raises OSError if the process has ended, or cannot be looked at.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def identity(pid: int) -> dict[str, int] | None:
    """Return a process's pid, its start (in clock ticks since boot), its PID namespace and its machine.

    Return None if it does not live. Under `space` is the PID namespace: a container has its own, in
    which pids from outside mean nothing.
    """
    try:
        fields = stat_fields(pid)
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return {"pid": pid, "start": int(fields[19]), "space": _own_space(), "machine": _machine()}


def is_same(known: Mapping[str, int] | None) -> bool:
    """Return whether a recorded process still lives, or may still live if it is in another PID namespace.

    Always false for a process on another machine: see `is_elsewhere`.
    """
    if known is None or is_elsewhere(known):
        return False
    if known["space"] != _own_space():
        return _may_live(known["space"])
    return is_here(known)


def is_elsewhere(known: Mapping[str, int] | None) -> bool:
    """Return whether a process was recorded on another machine, or before this machine's last boot."""
    return known is not None and known["machine"] != _machine()


def is_here(known: Mapping[str, int]) -> bool:
    """Return whether a process of our own PID namespace lives."""
    return identity(known["pid"]) == known


def _may_live(space: int) -> bool:
    """Return whether processes of another PID namespace may live. Only root in the initial one sees all."""
    if _own_space() != _FIRST_SPACE:
        return True
    for pid in all_pids():
        try:
            if Path(f"/proc/{pid}/ns/pid").stat().st_ino == space:
                return True
        except OSError:
            continue  # it has ended, or cannot be looked at, as the first process of a sandbox
    return False


def _own_space() -> int:
    """Return the inode of our PID namespace; 0 if it is unknown."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


@cache
def _machine() -> int:
    """Return a number that identifies this machine and its current boot; 0 if it is unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return 0
    return int.from_bytes(hashlib.sha256(boot).digest()[:6])


def owned_folder(prefix: str) -> Path:
    """Create a folder under `servers_folder()` that is removed when this process has ended.

    Other users may pass it, but not list it. `owner.json` in it records this process.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=servers_folder()))
    try:
        remove_at_death(folder)
        folder.chmod(0o711)
        write_owner(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def write_owner(folder: Path, **facts: object) -> None:
    """Record this process as the owner of a folder, and what it has started there."""
    draft = folder / "owner.new"
    draft.write_text(json.dumps({"owner": identity(os.getpid()), **facts}))
    draft.replace(folder / "owner.json")


def leftover_folders(prefix: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folders whose owner has died while the reaper was dead too, with what it recorded."""
    for folder in servers_folder().glob(f"{prefix}*"):
        facts: dict[str, Any] = {}
        try:
            facts = json.loads((folder / "owner.json").read_text())
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime < _BEGINNING_S:
                    continue
        if not is_same(facts.get("owner")):
            yield folder, facts


def end_server(known: Mapping[str, int] | None, *, data: Path) -> None:
    """End a leftover server, but only if it is the recorded process and uses that data folder."""
    if known is None:
        known = _postmaster_of(data)
    if known is None or not is_here(known) or str(data) not in _command(known["pid"]):
        return
    for number, seconds in ((signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(known["pid"], number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not is_here(known):
                return
            time.sleep(0.02)


def _postmaster_of(data: Path) -> dict[str, int] | None:
    try:
        return identity(int((data / "postmaster.pid").read_text().splitlines()[0]))
    except (OSError, ValueError, IndexError):
        return None


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
