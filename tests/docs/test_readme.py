"""The README works as written: every command and every line of Python, block by block, in a fresh folder."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from fakes.forked_commands import ForkedCommands
from uncork.engines.embedded import EmbeddedServer
from uncork.workbench.overhead.observers import perf_trouble

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
README = (ROOT / "README.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE))
CHAINS = (
    ("Ask your own question", "Keep it fixed"),
    ("Load a server or a service", "Compare runs"),
    (
        "Read your logs",
        "Watch a service and its database",
        "From Python, and in your tests",
        "Show it to others",
    ),
)
"""Sections that use what the one before left; a folder for each chain."""
STATUSES = {"uncork guard examples/guard": {3}, "uncork guard question.toml": {0, 4}}
"""Exit statuses other than 0, as the README explains them."""
SHORTER = {
    "-T 5": "-T 1",
    "-s 5": "-s 1",
    "-s 10": "-s 1",
    "-n 50000": "-n 5000",
    "--for 5s": "--for 2s",
    "--for 8s": "--for 4s",
}
"""Lengths and sizes that the test shortens, because it does not judge what the commands find."""


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", SECTIONS[section], re.DOTALL)


def test_every_block_of_the_readme_is_in_a_chain():
    with_blocks = {title for title in SECTIONS if blocks(title, "console") or blocks(title, "python")}
    assert with_blocks == {title for chain in CHAINS for title in chain}
    introduction = re.findall(r"```console\n(.*?)```", README.partition("\n## ")[0], re.DOTALL)
    assert introduction == ["$ make demo\n$ make test\n"]  # they built this, and run this test
    assert len(README.splitlines()) <= 150


@contextmanager
def postgres() -> Iterator[dict[str, str]]:
    """Yield the PG* variables of a server with the databases bench and shop."""
    server = EmbeddedServer({"shared_buffers": "64MB"})
    server.start()
    try:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE bench")
            connection.execute("CREATE DATABASE shop")
        yield {"PGHOST": str(server.host), "PGPORT": str(server.port), "PGUSER": "uncork"}
    finally:
        server.stop()


@contextmanager
def web(folder: Path) -> Iterator[int]:
    """Yield the port of an nginx: 8080 as in the README, or a free one where that is taken."""
    folder.mkdir(mode=0o755)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 8080))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    temporary = " ".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy"))
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
        "events { worker_connections 2000; }\n"
        f"http {{ access_log off; keepalive_requests 1000000; {temporary}\n"
        f"server {{ listen 127.0.0.1:{port}; location / {{ return 200 hello; }} }} }}\n"
    )
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    with subprocess.Popen([program, "-p", str(folder), "-c", str(folder / "nginx.conf")]) as running:
        try:
            yield port
        finally:
            running.terminate()


class Reader:
    """Types what the README shows, in a folder like a checkout's, with an experiment of its own in Git."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], port: int, commands: ForkedCommands
    ) -> None:
        self.folder, self.port, self.commands = folder, port, commands
        self.environment = {**os.environ, **environment, "UNCORK_RUNS": str(folder / "runs")}
        for name in ("CI", "FORCE_COLOR"):
            self.environment.pop(name, None)
        folder.mkdir()
        shutil.copytree(ROOT / "examples", folder / "examples")
        shutil.copy(FIXTURES / "results" / "wrk.txt", folder)
        log = (FIXTURES / "logs" / "same-events.stderr.log.gz").read_bytes()
        (folder / "postgresql.log").write_bytes(gzip.decompress(log))
        self.git("init", "-q", "-b", "main")
        self.commit("Begin")

    def git(self, *words: str) -> None:
        name = ("-c", "user.name=reader", "-c", "user.email=reader@localhost", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *name, *words], cwd=self.folder, check=True, capture_output=True)

    def commit(self, subject: str) -> None:
        self.git("add", "examples", *(["question.toml"] if (self.folder / "question.toml").exists() else []))
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def type(self, line: str) -> None:
        assert line.startswith("uncork ")
        if line == "uncork serve":
            return self.serve(line)
        wanted = next((found for start, found in STATUSES.items() if line.startswith(start)), {0})
        for long, short in SHORTER.items():
            line = re.sub(rf"(?<!\S){long}(?!\S)", short, line)
        _, *words = shlex.split(line.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}"))
        done = self.commands.run(tuple(words), self.folder, self.environment, 300)
        assert done.returncode in wanted, f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, f"{line}\n{done.stderr}"
        return None

    def serve(self, line: str) -> None:
        """Start the dashboard, open its first page, and end it as Ctrl-C does. Port 8675 may be taken."""
        command = [sys.executable, "-m", *shlex.split(line), "--port", "0"]
        with subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        ) as dashboard:
            assert dashboard.stdout is not None
            address = dashboard.stdout.readline().strip()
            try:
                with urllib.request.urlopen(address, timeout=60) as page:
                    assert "postgresql" in page.read().decode()
            finally:
                dashboard.send_signal(signal.SIGINT)
            dashboard.communicate(timeout=60)
        assert dashboard.returncode == 0

    def program(self, text: str) -> None:
        (self.folder / "test_shown.py").write_text(f"import uncork\n\n{text}")
        plugin = ("-p", "no:uncork", "-p", "uncork.api.pytest_plugin")  # also where it is installed
        ours = ("-p", "no:cacheprovider", "-p", "no:randomly", f"--rootdir={self.folder}")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *plugin, *ours, "test_shown.py"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.thorough
@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain[0].split()[0].lower())
def test_the_blocks_of_the_readme_run_in_order(chain, tmp_path, commands):
    with postgres() as environment, web(tmp_path / "web") as port:
        reader = Reader(tmp_path / "checkout", environment, port, commands)
        for title in chain:
            if title == "Keep it fixed":
                reader.commit("Ask")
                reader.git("switch", "-q", "-c", "branch")
                question = reader.folder / "question.toml"
                question.write_text(question.read_text().replace("(1, :rows)", "(1, :rows::int)"))
                reader.commit("Change")
            for block in blocks(title, "console"):
                for line in block.splitlines():
                    if "profile cpu" in line and (trouble := perf_trouble()) is not None:
                        assert not os.environ.get("CI"), trouble
                        continue
                    reader.type(line.removeprefix("$ "))
            for block in blocks(title, "python"):
                reader.program(block)
