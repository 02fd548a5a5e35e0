"""A password that is typed on a terminal (-W): every verb connects with it, and nothing keeps it."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from fakes.experiments import QUICK
from uncork.engines.embedded import EmbeddedServer

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("passwords")]
PASSWORD = "s3cret-typed"
ON_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from uncork.cli.app import main
main()
"""
"""A program: the command line, on the terminal that is its standard input."""
RULES = "local all guest scram-sha-256\nlocal all all trust\n"


@pytest.fixture(scope="module")
def server():
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)  # the server may run as another user
    (folder / "pg_hba.conf").write_text(RULES)
    server = EmbeddedServer({"hba_file": str(folder / "pg_hba.conf"), "shared_buffers": "32MB"})
    try:
        server.start()
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE guest LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def typing(uncork, typed: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run uncork on a terminal of its own, and type a line when it asks for the password."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", ON_TERMINAL, *map(str, words)],
            cwd=uncork.folder,
            env={name: value for name, value in uncork.environment.items() if not name.startswith("PG")},
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        shown = b""
        while b"Password: " not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, f"{typed}\n".encode())
        out, error = process.communicate(timeout=200)
        assert PASSWORD.encode() not in shown + os.read(ours, 1024), "it is not echoed"
    finally:
        os.close(ours)
        os.close(theirs)
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def nothing_keeps_it(uncork) -> None:
    for path in (uncork.folder / "runs").rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes(), path


def words(server) -> tuple[object, ...]:
    return ("-h", server.host, "-p", server.port, "-U", "guest", "-d", "postgres", "-W")


def test_verbs_that_connect_ask_for_the_password_and_nothing_keeps_it(uncork, server):
    uncork.write("SELECT 1;\n", "one.sql")
    done = typing(uncork, PASSWORD, "load", "sql", "-f", "one.sql", "-t", 5, *words(server))
    assert done.returncode == 0, done.stderr
    done = typing(uncork, PASSWORD, "profile", "db", "--for", "1s", *words(server))
    assert done.returncode == 0, done.stderr
    done = typing(uncork, PASSWORD, "plan", uncork.write(QUICK.partition("[server")[0]), *words(server))
    assert done.returncode == 0, done.stderr
    nothing_keeps_it(uncork)
    commands = [json.loads((run / "manifest.json").read_text())["options"]["command"] for run in uncork.runs]
    assert all(command.endswith("-U guest -d postgres -W") for command in commands)


def test_a_wrong_password_is_refused_as_ever(uncork, server):
    done = typing(uncork, "wrong", "profile", "db", "--for", "1s", *words(server))
    assert done.returncode == 1, done.stderr
    assert 'password authentication failed for user "guest"' in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_terminal_the_other_ways_are_named(uncork, server):
    process = uncork.start("profile", "db", *words(server))  # in a session of its own, without a terminal
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert error == (
        "uncork: -W/--password asks on a terminal, and there is none: set PGPASSWORD, or write a password "
        "file (.pgpass)\n"
    )
