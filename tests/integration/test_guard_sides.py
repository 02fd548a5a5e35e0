"""Sides of a guard in a git repository: each commit is read as it was, built once, and nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib

import pytest

from uncork.engines import process
from uncork.engines.places import servers_folder
from uncork.errors import SetupError, SpecError, UsageError
from uncork.experiment.guard.experiment import guarded
from uncork.experiment.guard.sides import parse_side
from uncork.requests.guard import GuardRequest
from uncork.requests.server import ServerChoice
from uncork.workbench.guard.sides import opened_sides, server_choice

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
