"""Who owns an embedded server, told apart from a later process that happens to bear the same number."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

__all__ = ["end_server", "has_owner", "identity", "is_same", "write_owner"]


def identity(pid: int) -> dict[str, int] | None:
    """Return a process's number and start time (clock ticks since boot), or None if it does not live."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return {"pid": pid, "start": int(fields[19])}


def is_same(known: Mapping[str, int] | None) -> bool:
    """Say whether a process noted earlier still lives."""
    return known is not None and identity(known["pid"]) == dict(known)


def write_owner(path: Path, server: int | None = None) -> None:
    """Note this process as the owner of a folder, and the server that it started."""
    facts = {"owner": identity(os.getpid()), "server": None if server is None else identity(server)}
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(facts))
    draft.replace(path)


def has_owner(path: Path) -> bool:
    """Say whether the owner noted in a file still lives."""
    try:
        return is_same(json.loads(path.read_text()).get("owner"))
    except (OSError, ValueError):
        return False


def end_server(known: Mapping[str, int] | None, *, data: Path) -> None:
    """End a leftover server, only if it is the very process noted and serves that data folder."""
    if known is None:
        known = _postmaster_of(data)
    if known is None or not is_same(known) or str(data) not in _command(known["pid"]):
        return
    for number, seconds in ((signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(known["pid"], number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not is_same(known):
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
