"""Where the embedded server lives on disk, and which user runs it.

PostgreSQL refuses to run as root, and the user it runs as instead cannot read root's home. So for root the
binaries and the data go to folders that every user may enter; for others to their own cache.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import tempfile
from dataclasses import dataclass
from pathlib import Path

from uncork.errors import SetupError

__all__ = ["Account", "cache_folder", "server_account", "servers_folder"]


@dataclass(frozen=True, slots=True)
class Account:
    """The user a server runs as; `change` says that it is not the user we are."""

    name: str
    uid: int
    gid: int
    change: bool


def server_account() -> Account:
    """Choose who runs the embedded server.

    A normal user runs it as themselves. For root it is the user who called sudo, or else `nobody`;
    UNCORK_SERVER_USER overrides. An account that owns a production server is deliberately not the default.

    Raises:
        SetupError: if the account does not exist or is root.
    """
    if os.geteuid() != 0:
        own = pwd.getpwuid(os.geteuid())
        return Account(own.pw_name, own.pw_uid, own.pw_gid, change=False)
    name = os.environ.get("UNCORK_SERVER_USER") or os.environ.get("SUDO_USER") or "nobody"
    if name == "root":
        name = "nobody"
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise SetupError(
            f'there is no user "{name}" to run PostgreSQL as (it refuses to run as root); '
            "set UNCORK_SERVER_USER to an unprivileged user"
        ) from None
    if entry.pw_uid == 0:
        raise SetupError(f'user "{name}" is root in disguise; set UNCORK_SERVER_USER to an unprivileged user')
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, change=True)


def cache_folder() -> Path:
    """Return the folder that keeps server binaries between runs (UNCORK_CACHE overrides)."""
    chosen = os.environ.get("UNCORK_CACHE")
    if chosen:
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/cache/uncork")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "uncork"


def servers_folder() -> Path:
    """Return the folder under which each running embedded server has its own (UNCORK_SERVERS overrides).

    On disk, not in memory: commits must cost what they cost. Short, since a socket's path is limited to 107
    bytes. One for each user, closed to others.

    Raises:
        SetupError: if it cannot be made, or belongs to someone else.
    """
    chosen = os.environ.get("UNCORK_SERVERS")
    temporary = Path("/var/tmp") if Path("/var/tmp").is_dir() else Path(tempfile.gettempdir())  # noqa: S108
    folder = Path(chosen) if chosen else temporary / f"uncork-{os.geteuid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        if folder.stat().st_uid != os.geteuid():
            raise SetupError(f"{folder} belongs to another user; set UNCORK_SERVERS to a folder of your own")
        with contextlib.suppress(PermissionError):
            folder.chmod(0o711)
    except OSError as error:
        raise SetupError(
            f"cannot make {folder} for the embedded server: {error.strerror}; set UNCORK_SERVERS to a folder "
            "with space"
        ) from error
    return folder
