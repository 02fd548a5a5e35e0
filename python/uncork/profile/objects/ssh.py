"""Logs on another machine, read by the `ssh` program of this one; the other needs a POSIX shell.

One connection stays open, and each command is a session in it. Nobody can be asked for a password
(`BatchMode`). A file is identified by its inode: an appended one is the same, a rotated one is not.
"""

from __future__ import annotations

import asyncio
import random
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uncork.errors import ConnectError, UsageError
from uncork.profile.objects.address import LogObject, ObjectAddress, ssh_words
from uncork.profile.objects.client import Absent, Changed, pause_s
from uncork.spawn.child import Child, remove_at_death, start

_OPTIONS: Final = {
    "BatchMode": "yes",
    "ControlPersist": "no",
    "RemoteCommand": "none",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "10",
    "ServerAliveCountMax": "3",
    "ClearAllForwardings": "yes",
    "LogLevel": "ERROR",
}
_SESSIONS: Final = 4
"""Sessions at once in the connection; servers allow ten by default."""
_ATTEMPTS: Final = 3
_LOGIN_S: Final = 30.0
_FAILED: Final = 255
"""The exit status of ssh if the connection failed; other statuses are those of the command."""
_FACTS: Final = "%i %s %Y %n"


class SshClient:
    """Reads files of one machine. `close` ends its connection.

    Raises UsageError if there is no `ssh` program.
    """

    def __init__(self, address: ObjectAddress) -> None:
        self.address = address
        self._folder = tempfile.TemporaryDirectory(prefix="uncork-ssh-", ignore_cleanup_errors=True)
        remove_at_death(Path(self._folder.name))
        self._socket = Path(self._folder.name) / "s"
        self._lock = asyncio.Lock()
        self._turns = asyncio.Semaphore(_SESSIONS)
        self._connection: Child | None = None

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.kill()
            self._connection.communicate()
        self._folder.cleanup()

    async def find(self, key: str) -> LogObject | None:
        """Return a file; None if it does not exist, or is no file.

        Raises ConnectError if the machine cannot be reached, or refuses.
        """
        found = await self._list(stat_command(key))
        return found[0] if found else None

    async def find_in(self, folder: str, depth: int) -> list[LogObject]:
        """Return the files in a folder, and `depth` - 1 levels below. Raises ConnectError as above."""
        return await self._list(listing_command(folder, depth))

    async def fetch(self, wanted: LogObject, begin: int, end: int, *, patient: bool = True) -> bytes:
        """Return the bytes of a file from `begin` until before `end`; unless `patient`, try once only.

        Raises:
            Changed: if another file has its name now, or it is shorter.
            Absent: if it no longer exists.
            ConnectError: if the machine cannot be reached, or refuses.
        """
        attempts = _ATTEMPTS if patient else 1
        answer = await self._ask(range_command(wanted.key, begin, end), wanted.name, attempts)
        facts, _, content = answer.partition(b"\n")
        if facts.decode() != (wanted.etag or "").partition(".")[0] or len(content) != end - begin:
            raise Changed
        return content

    # ---- steps ----

    async def _list(self, command: str) -> list[LogObject]:
        try:
            answer = await self._ask(command, self.address.shown)
        except Absent:
            return []
        found = []
        for line in answer.decode(errors="surrogateescape").splitlines():
            inode, size, modified, path = line.split(" ", 3)
            key = path.removeprefix("/")
            etag = f"{inode}.{size}.{modified}"
            found.append(LogObject(self.address.name(key), self.address, key, int(size), int(modified), etag))
        return found

    async def _ask(self, command: str, shown: str, attempts: int = _ATTEMPTS) -> bytes:
        """Run a command; repeat it if the connection fails after it was made."""
        for attempt in range(attempts):
            await self._connect()
            async with self._turns:
                status, output, errors = await self._run(
                    ["-oControlMaster=no", f"-S{self._socket}", *ssh_words(self.address), command]
                )
            if status == 0:
                return output
            if status != _FAILED:
                if "No such file or directory" in errors:
                    raise Absent
                break
            await asyncio.sleep(pause_s(attempt, random.random()))
        raise ConnectError(f"{shown}: {reason_of(status, errors)}")

    async def _connect(self) -> None:
        async with self._lock:
            if self._connection is not None and self._connection.poll() is None:
                return
            master = ["-oControlMaster=yes", "-N", f"-S{self._socket}", *ssh_words(self.address)]
            self._connection = self._start(master)
            until = asyncio.get_running_loop().time() + _LOGIN_S
            while not self._socket.exists():
                if self._connection.poll() is not None:
                    _, errors = self._connection.communicate()
                    raise ConnectError(f"{self.address.shown}: {reason_of(_FAILED, errors.decode())}")
                if asyncio.get_running_loop().time() > until:
                    self._connection.kill()
                    raise ConnectError(f"{self.address.shown}: ssh did not log in within {_LOGIN_S:.0f} s")
                await asyncio.sleep(0.02)

    async def _run(self, words: Sequence[str]) -> tuple[int, bytes, str]:
        child = self._start(words)
        try:
            output, errors = await asyncio.to_thread(child.communicate)
        except BaseException:
            child.kill()
            raise
        return child.returncode, output, errors.decode(errors="replace")

    def _start(self, words: Sequence[str]) -> Child:
        options = [f"-o{name}={value}" for name, value in _OPTIONS.items()]
        try:
            call, pipe = ["ssh", "-T", *options, *words], subprocess.PIPE
            return start(call, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        except FileNotFoundError as error:
            raise UsageError(f"{self.address.shown} needs the program ssh: install openssh-client") from error


def stat_command(key: str) -> str:
    """Return the command that prints inode, size, time and name of a file. Pure."""
    return f"env LC_ALL=C find -L {_path(key)} -maxdepth 0 -type f -exec stat -L -c '{_FACTS}' {{}} ';'"


def listing_command(folder: str, depth: int) -> str:
    """Return the command that prints the same for each file in a folder, down to a depth. Pure."""
    return (
        f"env LC_ALL=C find -L {_path(folder)} -mindepth 1 -maxdepth {depth} -type f "
        f"-exec stat -L -c '{_FACTS}' {{}} +"
    )


def range_command(key: str, begin: int, end: int) -> str:
    """Return the command that prints a file's inode in a line, and then a range of its bytes. Pure."""
    path = _path(key)
    return (
        f"env LC_ALL=C stat -L -c %i {path} && "
        f"env LC_ALL=C tail -c +{begin + 1} {path} | head -c {end - begin}"
    )


def reason_of(status: int, errors: str) -> str:
    """Return why a command failed, in the words of ssh or of the other machine. Pure."""
    lines = [line.strip() for line in errors.splitlines() if line.strip(" @")]
    words = " ".join(lines[-2:])[:300].rstrip(".").removeprefix("ssh: ")
    if status == _FAILED:
        advice = ""
        if "Host key verification failed" in words:
            advice = "; connect once with ssh to accept its key"
        elif "Permission denied" in words:
            advice = "; uncork cannot type a password: add a key to ssh-agent, or name it in ~/.ssh/config"
        return f"ssh: {words or 'the connection ended'}{advice}"
    return words or f"the command on the other machine ended with status {status}"


def _path(key: str) -> str:
    return shlex.quote(re.sub("/+$", "", f"/{key}") or "/")
