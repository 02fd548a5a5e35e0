"""Services that uncork starts."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager

import pytest

from uncork.engines import process
from uncork.engines.places import servers_folder
from uncork.engines.services.inspection import ServiceWatch, ThreadTimes, find_service, is_here
from uncork.errors import SetupError, SpecError, UsageError
from uncork.experiment.guard.experiment import guarded
from uncork.experiment.guard.sides import parse_side
from uncork.requests.guard import GuardRequest
from uncork.requests.server import ServerChoice
from uncork.workbench.guard.sides import opened_sides, server_choice
from uncork.workbench.load.monitor import find_components

LISTENER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0), backlog=1)
files = [open("/dev/null") for _ in range(int(sys.argv[1]))]
print(listener.getsockname()[1], flush=True)
while sys.argv[2] == "busy":
    pass
time.sleep(60)
"""


@contextmanager
def listener(files: int = 0, what: str = "sleeps", limit: int = 64):
    """Run a process that listens, accepts nobody, and holds files; yield its port and itself."""
    running = subprocess.Popen(
        [sys.executable, "-c", LISTENER, str(files), what],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),  # noqa: PLW1509
    )
    try:
        assert running.stdout is not None
        yield int(running.stdout.readline()), running.pid
    finally:
        running.kill()
        running.communicate()


def test_a_service_is_found_by_the_port_on_which_it_listens():
    with listener() as (port, pid):
        found, missing = find_service((), "127.0.0.1", port)
        assert found is not None and found.pids == (pid,) and found.port == port and not missing
        assert find_service((), "localhost", port)[0] == found
    assert find_service((), "127.0.0.1", port) == (None, ())


def test_our_own_process_is_no_service():
    with socket.create_server(("127.0.0.1", 0)) as own:
        assert find_service((), "127.0.0.1", own.getsockname()[1]) == (None, ())


def test_an_address_of_another_machine_is_not_here():
    assert is_here("127.0.0.1")
    assert not is_here("192.0.2.1")


def test_a_process_that_is_gone_is_told_and_the_others_are_looked_at():
    with listener() as (port, pid):
        found, (lacking,) = find_service((pid, 4194303), "127.0.0.1", port)
        assert found is not None and found.pids == (pid,)
        assert "there is no process 4194303" in lacking


def test_open_files_stand_beside_their_limit():
    with listener(files=20, limit=40) as (port, pid):
        watch = ServiceWatch(find_service((pid,), "127.0.0.1", port)[0])
        watch.look()
        held = watch.end()
    assert held.descriptor_limit == 40
    assert 23 <= held.descriptors <= 30


def test_connections_that_wait_to_be_accepted_are_seen_and_those_without_room_counted():
    with listener() as (port, _):
        watch = ServiceWatch(find_service((), "127.0.0.1", port)[0])
        clients = [socket.socket() for _ in range(8)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        time.sleep(0.3)
        watch.look()
        held = watch.end()
        for client in clients:
            client.close()
    assert held.backlog == 2, "one more than the backlog"
    assert held.overflows is not None and held.overflows >= 1


def test_a_busy_thread_is_told_apart_from_one_that_sleeps():
    with listener(what="busy") as (_, busy), listener() as (_, sleeps):
        times = [ThreadTimes((pid,)) for pid in (busy, sleeps)]
        time.sleep(0.5)
        (busiest, waited), (idle, _) = (one.end() for one in times)
    assert busiest[0] + waited > 0.5, "other programs may have taken the processor"
    assert idle[0] < 0.1


def test_a_database_that_cannot_be_reached_is_told_in_one_sentence():
    components = find_components((), "192.0.2.1", 80, "host=127.0.0.1 port=1 dbname=x connect_timeout=2")
    (lacking,) = components.missing
    assert components.conninfo is None and components.service is None
    assert lacking.startswith("--postgres: ") and "\n" not in lacking
    assert "the load continues without" in lacking


def test_threads_that_ended_are_known_as_of_the_last_look():
    with listener(what="busy") as (_, pid):
        times = ThreadTimes((pid,))
        time.sleep(0.4)
        times.look()
    busy, waited = times.end()
    assert busy[0] + waited > 0.3


FILE = """
[experiment]
name = "look-up"
question = "How fast is it?"

[variants.one]
baseline = true

[variants.two]

[setup]
file = "schema.sql"

[workloads.get]
sql = "SELECT 1"
duration = "100ms"

[guard]
build = ["sh", "-c", "echo built > built"]
"""


class Repository:
    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "bench" / "experiment.toml"
        self.file.parent.mkdir(parents=True)
        self.git("init", "-q")
        hook = folder / ".git" / "hooks" / "post-checkout"
        hook.write_text("#!/bin/sh\ntouch ../hooked\n")
        hook.chmod(0o755)

    def git(self, *words):
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        return subprocess.run(
            ["git", *who, *words], cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, schema, text=FILE):
        self.file.write_text(text)
        (self.file.parent / "schema.sql").write_text(schema)
        self.git("add", "-A")
        self.git("commit", "-qm", f"now {schema}")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    made = Repository(tmp_path / "project")
    made.commit("CREATE TABLE t (a int)")
    yield made
    assert not list(servers_folder().glob("git-*"))
    assert made.git("worktree", "list").count("\n") == 0, "nothing is left in git's own list"
    assert not (made.folder.parent / "hooked").exists()


def wanted(repository, baseline=(), candidate=(), **more):
    return GuardRequest(
        str(repository.file), parse_side("baseline", baseline), parse_side("candidate", candidate), **more
    )


def test_each_commit_is_read_as_it_was_and_the_rest_as_it_is(repository):
    first = repository.git("rev-parse", "HEAD")
    (repository.file.parent / "schema.sql").write_text("CREATE TABLE t (a bigint)")
    told = []
    with opened_sides(wanted(repository, ["commit=HEAD"])) as sides:
        made = guarded(sides.baseline, sides.candidate, None, {})
        sides.build(told.append)
        assert (repository.folder / "built").is_file()
        assert len(list(servers_folder().glob("git-*/tree/built"))) == 1
    assert sides.baseline.spec.setup_sql("one") == "CREATE TABLE t (a int)"
    assert sides.candidate.spec.setup_sql("one") == "CREATE TABLE t (a bigint)"
    assert made.baseline.what == (f"commit {first[:9]}",)
    assert made.candidate.what == (f"working tree: uncommitted changes on {first[:9]}",)
    assert (made.baseline.commit, made.same) == (first, False)
    assert told == [
        f"building commit {first[:9]}: sh -c echo built > built",
        "building the working tree: sh -c echo built > built",
    ]


def test_two_commits_that_are_one_are_the_same(repository):
    with opened_sides(wanted(repository, ["commit=HEAD"], ["commit=HEAD~0"])) as sides:
        assert guarded(sides.baseline, sides.candidate, None, {}).same
        assert len(sides.builds) == 1


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("commit=nowhere", 'there is no commit "nowhere" in '),
        ("commit=--help", 'there is no commit "--help" in '),
        ("commit=HEAD~9", 'there is no commit "HEAD~9" in '),
    ],
)
def test_a_commit_that_there_is_not_is_told(repository, says, told):
    with pytest.raises(UsageError) as error, opened_sides(wanted(repository, [says])):
        pass
    assert told in str(error.value)


def test_a_commit_without_the_file_is_told(repository):
    repository.git("rm", "-q", "--cached", "bench/experiment.toml")
    repository.git("commit", "-qm", "gone")
    with pytest.raises(UsageError) as error, opened_sides(wanted(repository, ["commit=HEAD"])):
        pass
    assert "has no bench/experiment.toml, but both sides need it" in str(error.value)


def test_a_file_that_was_wrong_is_told_by_the_name_it_was_asked_for(repository):
    repository.commit("SELECT 1", FILE.replace("baseline = true", "baselin = true"))
    repository.file.write_text(FILE)
    with pytest.raises(SpecError) as error, opened_sides(wanted(repository, ["commit=HEAD"])):
        pass
    short = repository.git("rev-parse", "HEAD")[:9]
    assert f"{repository.file} of commit {short}:7: variants.one.baselin: unknown key" in str(error.value)
    assert "git-" not in str(error.value)


def test_outside_a_repository_commits_are_refused_and_all_else_works(tmp_path):
    (tmp_path / "experiment.toml").write_text(FILE)
    (tmp_path / "schema.sql").write_text("SELECT 1")
    here = GuardRequest(
        str(tmp_path / "experiment.toml"),
        parse_side("baseline", []),
        parse_side("candidate", ["commit=HEAD"]),
    )
    with pytest.raises(UsageError, match="is not in a git repository"), opened_sides(here):
        pass
    with opened_sides(wanted(Named(tmp_path / "experiment.toml"))) as sides:
        assert sides.candidate.commit is None
        assert sides.candidate.checkout == str(tmp_path)
    with (
        pytest.raises(UsageError, match=r"cannot read .*none.toml: no such file"),
        opened_sides(wanted(Named(tmp_path / "none.toml"))),
    ):
        pass


class Named:
    def __init__(self, file):
        self.file = file


def test_a_build_that_fails_is_shown(repository):
    many = "import sys; print(*range(50), sep='\\\\n'); sys.exit(3)"
    repository.commit(
        "SELECT 1", FILE.replace('["sh", "-c", "echo built > built"]', f'["python3", "-c", "{many}"]')
    )
    short = repository.git("rev-parse", "HEAD")[:9]
    with (
        pytest.raises(SetupError) as error,
        opened_sides(wanted(repository, ["commit=HEAD"])) as sides,
    ):
        sides.build(lambda _: None)
    assert f"guard.build of commit {short} failed (exit status 3): python3 -c" in str(error.value)
    assert str(error.value).endswith("\n  48\n  49")
    assert "(30 lines before)" in str(error.value)


def test_a_build_that_cannot_be_started_is_told(repository):
    repository.commit("SELECT 1", FILE.replace('"sh"', '"no-such-program"'))
    with (
        pytest.raises(SetupError, match="cannot start no-such-program: No such file"),
        opened_sides(wanted(repository)) as sides,
    ):
        sides.build(lambda _: None)


def test_what_a_killed_run_left_is_removed_by_the_next(repository):
    left = servers_folder() / "git-left"
    (left / "tree").mkdir(parents=True)
    gone = {**process.identity(os.getpid()), "pid": 999999999}
    (left / "owner.json").write_text(json.dumps({"owner": gone, "server": None}))
    with opened_sides(wanted(repository, ["commit=HEAD"])):
        assert not left.exists()


def test_servers_of_the_sides(repository):
    two = wanted(repository, ["dsn=host=a password=hush"], ["dsn=host=b"])
    assert server_choice(two).apart == {"baseline": "host=a password=hush", "candidate": "host=b"}
    with opened_sides(two) as sides:
        made = guarded(sides.baseline, sides.candidate, None, {})
    assert made.baseline.title == "server host=a password=***"
    assert "hush" not in made.text
    one = wanted(repository, [], ["dsn=host=b"])
    with pytest.raises(UsageError, match=r"name the baseline's server, too \(--baseline dsn=…, or --dsn\)"):
        server_choice(one)
    both = wanted(repository, [], ["dsn=host=b"], choice=ServerChoice(dsn="host=a"))
    assert server_choice(both).apart == {"baseline": "host=a", "candidate": "host=b"}
    buffers = wanted(repository, [], ["setting=shared_buffers:1GB", "setting=work_mem:1MB"])
    assert server_choice(buffers) == ServerChoice()
    with opened_sides(buffers) as sides:
        made = guarded(sides.baseline, sides.candidate, None, {})
    assert made.candidate.title == "shared_buffers = 1GB, work_mem = 1MB"
    assert tomllib.loads(made.text)["variants"]["candidate"]["settings"]["shared_buffers"] == "1GB"
    assert not made.same
    with pytest.raises(
        UsageError, match="it applies to a whole server, so each side has its own server: leave out --port"
    ):
        server_choice(wanted(repository, [], ["setting=fsync:off"], choice=ServerChoice(port=5555)))
    with pytest.raises(
        UsageError, match="it applies to a whole server, and uncork does not configure existing"
    ):
        server_choice(wanted(repository, [], ["setting=fsync:off"], choice=ServerChoice(dsn="host=a")))
    with pytest.raises(UsageError, match="leave out --pg-bin and --port"):
        server_choice(wanted(repository, [], ["dsn=host=b"], choice=ServerChoice(port=5555)))
