"""A real sshd on loopback, with keys of its own, and a user's ssh configuration that reaches it as `db`."""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


@dataclass(frozen=True)
class SshServer:
    """`address` begins addresses of its files. `path` is a PATH whose ssh knows the keys."""

    folder: Path
    port: int

    @property
    def address(self) -> str:
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}"

    @property
    def path(self) -> str:
        return f"{self.folder / 'bin'}:/usr/bin:/bin"

    def forget(self, name: str) -> None:
        """Take the key of the user or the machine (`user`, `known`) away, until `remember`."""
        (self.folder / name).rename(self.folder / f"{name}.away")

    def remember(self, name: str) -> None:
        (self.folder / f"{name}.away").rename(self.folder / name)


@contextmanager
def ssh_server() -> Iterator[SshServer]:
    if SSHD is None:
        assert not os.environ.get("CI"), "CI installs openssh-server"
        pytest.skip("sshd is not installed (openssh-server)")
    with tempfile.TemporaryDirectory(prefix="sshd-") as name:
        folder = Path(name)
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        shutil.copy(folder / "user.pub", folder / "authorized")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        public = (folder / "host.pub").read_text()
        (folder / "known").write_text(f"[127.0.0.1]:{port} {public}")
        (folder / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nStrictModes no\n"
            f"AuthorizedKeysFile {folder}/authorized\nPasswordAuthentication no\nUsePAM no\n"
            "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        )
        (folder / "ssh_config").write_text(
            f"IdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
            "GlobalKnownHostsFile none\nIdentityAgent none\n"
        )
        program = folder / "bin" / "ssh"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {folder}/ssh_config "$@"\n')
        program.chmod(0o755)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        with (folder / "sshd.log").open("w") as log:
            process = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "sshd_config"], stderr=log)
        try:
            _wait(port, process, folder / "sshd.log")
            yield SshServer(folder, port)
        finally:
            process.terminate()
            process.wait(10)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(log.read_text())
