"""Logs on another machine, read through a real sshd on loopback."""

import bz2
import gzip
import shutil
import socket

import pytest

from fakes.ssh_server import ssh_server
from uncork.errors import ConnectError, SetupError, UsageError
from uncork.profile.logs import read_logs
from uncork.profile.objects.reading import ObjectReader
from uncork.workbench.profile.log_files import log_request

LINE = "2026-11-27 04:00:{second:02}.000 UTC [{second}] u@d app LOG:  duration: 1.5 ms  statement: SELECT 1\n"


@pytest.fixture(scope="module")
def running():
    with ssh_server() as server:
        yield server


@pytest.fixture
def server(running, monkeypatch):
    monkeypatch.setenv("PATH", running.path)
    return running


def log(entries):
    return "".join(LINE.format(second=number) for number in range(entries)).encode()


def read(*texts):
    return read_logs(log_request([str(text) for text in texts], None, (None, None), 2))


def test_a_folder_a_glob_and_a_file_are_read_as_on_this_machine(server, tmp_path, monkeypatch):
    monkeypatch.setattr(ObjectReader, "range_bytes", 2000)
    folder = tmp_path / "a folder with 'quotes' $(touch gone)"
    folder.mkdir()
    (folder / "one.log").write_bytes(log(30))
    (folder / "three.log.bz2").write_bytes(bz2.compress(log(20)))
    (folder / "two.log.gz").write_bytes(gzip.compress(log(10)))
    (folder / "notes.bin").write_bytes(b"\0")
    (folder / "in").mkdir()
    (folder / "in" / "four.log").write_bytes(log(5))
    whole, local = read(f"{server.address}{folder}"), read(folder)
    assert whole.facts["entries"] == local.facts["entries"] == 60
    assert whole.facts["skipped"] == [f"{server.address}{folder}/notes.bin"]
    assert [file["trouble"] for file in whole.facts["files"]] == [None] * 3
    assert [file["bytes"] for file in whole.facts["files"]] == [
        file["bytes"] for file in local.facts["files"]
    ]
    assert read(f"{server.address}{tmp_path}/a*/in/f*").facts["entries"] == 5
    assert not (tmp_path / "gone").exists()
    with pytest.raises(SetupError, match="the machine has no such file"):
        read(f"{server.address}{folder}/none.log")


def test_a_log_that_grows_counts_as_far_as_it_was_found_and_a_rotated_one_is_named(server, tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(log(10))
    found = log_request([f"{server.address}{path}"], None, (None, None), 1)
    path.write_bytes(log(20))  # the same inode
    assert read_logs(found).facts["entries"] == 10
    found = log_request([f"{server.address}{path}"], None, (None, None), 1)
    path.unlink()
    (facts,) = read_logs(found).facts["files"]
    assert "the object was deleted while it was read: nothing of it counts" in facts["trouble"]


def test_a_failed_login_gives_the_words_of_ssh(server, tmp_path):
    server.forget("user")
    try:
        with pytest.raises(
            ConnectError, match=r"ssh: .*Permission denied \(publickey.*add a key to ssh-agent"
        ):
            read(f"{server.address}/a.log")
    finally:
        server.remember("user")
    server.forget("known")
    try:
        with pytest.raises(ConnectError, match=r"Host key verification failed; connect once with ssh"):
            read(f"{server.address}/a.log")
    finally:
        server.remember("known")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(
            ConnectError, match=r"ssh://127.0.0.1:\d+/a.log: ssh: connect to host .*Connection refused"
        ):
            read(f"ssh://127.0.0.1:{probe.getsockname()[1]}/a.log")


def test_without_ssh_the_program_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("ssh") is None
    with pytest.raises(UsageError, match=r"ssh://db/a\.log needs the program ssh: install openssh-client"):
        read("ssh://db/a.log")
