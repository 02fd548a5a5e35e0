"""The folders of the embedded server, and the user that runs it.

PostgreSQL refuses to run as root, and the user that runs it instead cannot read root's home. So root's
binaries and data go to folders that every user may enter. Other users keep them in their own cache.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from uncork.errors import SetupError


@dataclass(frozen=True, slots=True)
class Account:
    """The user that runs a server. `change` is true if it is not the current user."""

    name: str
    uid: int
    gid: int
    change: bool


def server_account() -> Account:
    """Choose the user that runs the embedded server.

    A normal user runs it as themselves. For root, it is the user who called sudo, or else `nobody`;
    UNCORK_SERVER_USER overrides both. By design, the default is never the owner of a production
    server. Raises SetupError if the account does not exist or is root.
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
            f'PostgreSQL refuses to run as root, and the user "{name}" that should run it does not exist; '
            "set UNCORK_SERVER_USER to an unprivileged user"
        ) from None
    if entry.pw_uid == 0:
        raise SetupError(
            f'PostgreSQL refuses to run as root, and the user "{name}" has the user id 0; '
            "set UNCORK_SERVER_USER to an unprivileged user"
        )
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, change=True)


def cache_folder() -> Path:
    """Return the folder that keeps server binaries between runs (UNCORK_CACHE overrides it)."""
    chosen = os.environ.get("UNCORK_CACHE")
    if chosen:
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/cache/uncork")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "uncork"


def servers_folder() -> Path:
    """Return the parent folder of all running embedded servers (UNCORK_SERVERS overrides it).

    It is on disk, not in memory, so that commits cost what they really cost. Its path is short,
    because a socket's path is limited to 107 bytes. Each user has one, and cannot list another
    user's. Raises SetupError if it cannot be created, or belongs to another user.
    """
    chosen = os.environ.get("UNCORK_SERVERS")
    temporary = Path("/var/tmp") if Path("/var/tmp").is_dir() else Path(tempfile.gettempdir())  # noqa: S108
    folder = Path(chosen) if chosen else temporary / f"uncork-{os.geteuid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        if folder.stat().st_uid != os.geteuid():
            raise SetupError(f"{folder} belongs to another user; set UNCORK_SERVERS to a folder of your own")
        mode = stat.S_IMODE(folder.stat().st_mode)
        # A folder that somebody chose may be shared (/tmp): others must be able to pass it, and no more.
        wanted = mode | 0o011 if chosen else 0o711
        if mode != wanted:
            with contextlib.suppress(PermissionError):
                folder.chmod(wanted)
    except OSError as error:
        raise SetupError(
            f"cannot create {folder} for the embedded server: {error.strerror}; set UNCORK_SERVERS to a "
            "folder you can write to, on a disk with free space"
        ) from error
    return folder
