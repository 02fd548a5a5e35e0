"""A stored load becomes a job again: as then, or elsewhere; secrets must be given again."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fakes.http_results import HTTP_SPEC as FAKE
from fakes.load_results import CLOSED_SPEC
from fakes.stored_loads import store_load
from uncork.errors import ConnectError, UsageError
from uncork.load.http import http_plan, without_secrets
from uncork.load.run import load_plan, without_password
from uncork.model.http import HttpServer, Variable
from uncork.requests.jobs import HttpJob, LoadJob, ServerOptions, TablesOptions
from uncork.store.loads import write_plan
from uncork.workbench.load.repeating import Target, repeated_job
from uncork.workbench.load.sessions import new_load

SPEC = replace(
    CLOSED_SPEC, variables={}, scripts=tuple(replace(s, builtin=False) for s in CLOSED_SPEC.scripts)
)
HTTP_SPEC = replace(FAKE, variables=(Variable("id", 1, 9),))
EMBEDDED = LoadJob(
    SPEC, ServerOptions(embedded=True, binaries=Path("/opt/pg")),
    TablesOptions(scale=3, partitions=4), needs_tables=True, scale=3, vacuum="usual",
    command="uncork load sql --embedded -i -s 3",
)  # fmt: skip
ELSEWHERE = "host=a.example port=5433 user=u dbname=d sslmode=require"


@pytest.fixture(autouse=True)
def _no_password(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PGPASSWORD", "PGPASSFILE", "PGHOST", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


def stored(root, job, connection=None):
    """Return the folder of a load that was laid out, with the plan as it goes to disk."""
    session = new_load(root, job)
    spec = replace(job.spec, variables={"scale": "3", **job.spec.variables})
    known = connection or {"host": "/tmp/socket", "port": 1, "user": "u", "database": "d", "password": None}
    write_plan(session.folder, without_password(load_plan(spec, known, pid=None)))
    return session.folder


def test_a_load_of_a_server_of_our_own_comes_back_whole(tmp_path):
    assert repeated_job(stored(tmp_path, EMBEDDED)) == EMBEDDED


def test_the_server_of_then_is_found_again_and_its_password_where_libpq_looks(tmp_path, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "hush")
    wanted = ServerOptions(dsn=ELSEWHERE)
    job = replace(EMBEDDED, server=wanted, tables=None)
    folder = stored(tmp_path, job, asdict(wanted.address()))
    assert "hush" not in (folder / "plan.json").read_text() + (folder / "manifest.json").read_text()
    found = repeated_job(folder)
    assert isinstance(found, LoadJob)
    assert found.server.address() == wanted.address()
    assert found.server.address().password == "hush"
    monkeypatch.delenv("PGPASSWORD")
    with pytest.raises(UsageError, match=r"a password, which is never stored: set PGPASSWORD"):
        repeated_job(folder)


def test_a_load_goes_to_another_server(tmp_path):
    found = repeated_job(stored(tmp_path, EMBEDDED), Target(dsn=ELSEWHERE), command="uncork guard x")
    assert isinstance(found, LoadJob)
    assert (found.server.embedded, found.tables, found.command) == (False, None, "uncork guard x")
    assert found.server.address().host == "a.example"
    assert found.spec == SPEC


def test_a_load_goes_to_another_service(tmp_path):
    session = new_load(tmp_path, HttpJob(HTTP_SPEC, "uncork load http x", postgres="host=a password=b"))
    write_plan(session.folder, without_secrets(http_plan(HTTP_SPEC)))
    found = repeated_job(session.folder, Target(url="http://[::1]:8080/"))
    assert isinstance(found, HttpJob)
    assert found.spec.server.place == "http://[::1]:8080"
    assert found.spec.requests == HTTP_SPEC.requests
    assert found.postgres is None
    assert repeated_job(session.folder) == HttpJob(HTTP_SPEC, "uncork load http x")


def test_a_load_by_http3_goes_to_another_encrypted_service(tmp_path):
    spec = replace(HTTP_SPEC, server=HttpServer("a.example", 443, tls=True), version="3")
    session = new_load(tmp_path, HttpJob(spec, "uncork load http --h3 x"))
    write_plan(session.folder, without_secrets(http_plan(spec)))
    assert repeated_job(session.folder, Target(url="https://b.example")).spec.version == "3"
    with pytest.raises(UsageError, match=r"url=http://b: .* HTTP/3, which is always encrypted: write https"):
        repeated_job(session.folder, Target(url="http://b"))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (Target(url="http://a"), "is a load by SQL: name its server with dsn"),
        (Target(dsn="host=a nonsense"), "the connection string is not valid"),
    ],
)
def test_a_target_of_another_kind_is_refused(tmp_path, target, said):
    folder = stored(tmp_path, EMBEDDED)
    with pytest.raises((UsageError, ConnectError), match=said):
        repeated_job(folder, target)


@pytest.mark.parametrize(("target", "said"), [
    (Target(dsn="host=a"), "is a load by HTTP: name its service with url"),
    (Target(url="a.example:80"), "write http://HOST:PORT"),
    (Target(url="http://a:99999"), "write http://HOST:PORT"),
    (Target(url="http://a/list"), "requests keep their own paths"),
])  # fmt: skip
def test_a_service_is_named_by_scheme_host_and_port(tmp_path, target, said):
    session = new_load(tmp_path, HttpJob(HTTP_SPEC, "uncork load http x"))
    write_plan(session.folder, without_secrets(http_plan(HTTP_SPEC)))
    with pytest.raises(UsageError, match=said):
        repeated_job(session.folder, target)


def test_a_load_that_was_stored_without_what_carries_it_out_again_names_its_command(tmp_path):
    folder = store_load(tmp_path, 1)
    with pytest.raises(UsageError, match="run it again: uncork load sql -h db"):
        repeated_job(folder)


def test_another_kind_of_run_is_refused(tmp_path):
    folder = store_load(tmp_path, 1, kind="log")
    with pytest.raises(UsageError, match="is a run of kind log, not a load"):
        repeated_job(folder)
