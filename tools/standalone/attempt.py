"""Unpack a standalone archive in a root that has nothing but glibc, and use it there (`make standalone`).

The root has no shell, no Python and no environment variables; only loopback, /proc and /dev are shared. A
server that runs outside answers over loopback.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import psycopg

from uncork.engines.embedded import EmbeddedServer

ROOT: Final = Path(__file__).parents[2]
LOG: Final = ROOT / "tests" / "fixtures" / "logs" / "same-events.stderr.log.gz"
GLIBC: Final = re.compile(r"(ld-linux\S*|lib(c|m|dl|pthread|rt|util|resolv|nss_files|nss_dns)\.so\.\d)")
PATIENCE_S: Final = 120


def main() -> None:
    """Exit with a message if a command fails."""
    (archive,) = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="uncork-standalone-") as name:
        root = Path(name)
        make_root(root)
        with tarfile.open(archive) as packed:
            packed.extractall(root / "opt", filter="tar")
        shutil.copy(LOG, root / "work")
        (folder,) = (root / "opt").iterdir()
        try_commands(root, f"/opt/{folder.name}/uncork")


def try_commands(root: Path, uncork: str) -> None:
    """Use uncork in a root; print how long each command took.

    Raises:
        SystemExit: if a command fails.
    """
    run(root, [uncork, "--version"], "uncork ")
    run(root, [uncork, "profile", "logs", LOG.name, "--html", "page.html"], "of statement time")
    if not (root / "work" / "page.html").read_text().rstrip().endswith("</html>"):
        raise SystemExit("page.html is no complete page")
    run(root, [uncork, "mcp"], "bin/python3 -m pip install ", status=1)
    server = EmbeddedServer({"listen_addresses": "127.0.0.1"})
    server.start()
    try:
        with psycopg.connect(server.conninfo()) as connection:
            connection.execute("ALTER ROLE uncork PASSWORD 'loopback'")
        target = f"host=127.0.0.1 port={server.port} user=uncork dbname=postgres password=loopback"
        run(root, [uncork, "load", "sql", "-i", target], "")
        run(root, [uncork, "load", "sql", "-S", "-c", "2", "-T", "1", target], "transactions a second")
    finally:
        server.stop()
    with serving(root, uncork) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request("GET", "/")
        answer = connection.getresponse()
        if answer.status != 200 or b"same-events" not in answer.read():
            raise SystemExit(f"the dashboard answers {answer.status}, without the runs")
        connection.close()
    print("the dashboard answers")


def make_root(root: Path) -> None:
    """Make a root with the libraries of glibc, and folders to write to and to mount /proc and /dev on."""
    for below in ("opt", "proc", "dev", "tmp", "work", "etc"):
        (root / below).mkdir()
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/work:/none\n")
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for name, path in re.findall(r"^\t(\S+) \(.*x86-64.*\) => (\S+)$", cache, re.MULTILINE):
        if GLIBC.fullmatch(name):
            target = root / ("lib64" if name.startswith("ld-") else Path(path).parent.relative_to("/")) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def command(root: Path, words: Sequence[str]) -> list[str]:
    """Return the command that runs words in the root, with mounts that end with it and no environment."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    mounts = f"mount --rbind /dev {root}/dev && mount -t proc proc {root}/proc"
    inside = f'{mounts} && exec env -i HOME=/work "$(command -v unshare)" --root={root} --wd=/work "$@"'
    return [
        "unshare",
        *rights,
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        inside,
        "sh",
        *words,
    ]


def run(root: Path, words: Sequence[str], expected: str, status: int = 0) -> None:
    """Run a command in the root.

    Raises:
        SystemExit: if it ends with another status, or prints something else than expected.
    """
    begun = time.monotonic()
    done = subprocess.run(
        command(root, words), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    seconds = time.monotonic() - begun
    output = done.stdout + done.stderr
    if done.returncode != status or expected not in output:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{output}")
    line = next((line for line in output.splitlines() if expected in line), "")
    print(f"{seconds:.2f} s  uncork {' '.join(words[1:3])}: {line.strip()}")


@contextlib.contextmanager
def serving(root: Path, uncork: str) -> Iterator[int]:
    """Run the dashboard in the root, and yield its port once it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        command(root, [uncork, "serve", "--port", str(port)]), stdin=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                yield port
                return
            time.sleep(0.1)
        raise SystemExit(f"uncork serve does not listen on port {port}; its status is {process.poll()}")
    finally:
        process.kill()  # --kill-child ends what it started
        process.wait(PATIENCE_S)


if __name__ == "__main__":
    main()
