"""What a load stored about a service becomes an experiment file that starts it again."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fakes.goldens import compare_answers, compare_cases
from uncork.errors import SpecError
from uncork.experiment.service_draft import DraftDatabase, ServiceDraft, service_text
from uncork.experiment.service_start import ServiceStart, file_paths, service_start
from uncork.experiment.spec.raw_file import places_to_fill
from uncork.load.http import http_plan, without_secrets
from uncork.model.http import Checks, HttpServer, HttpSpec, Request, Variable
from uncork.model.load import Arrivals
from uncork.model.services.program import RunningProgram
from uncork.requests.source import Options, made_source
from uncork.workbench.experiment.checking import sql_problems
from uncork.workbench.experiment.service_drafting import plain_conninfo

DSN = "postgresql://app@db:5432/shop"
COMMAND = ("/srv/.venv/bin/python", "-m", "app", "--bind", "127.0.0.1:8080", "--pool=18080")
PROGRAM = RunningProgram(
    COMMAND,
    "/srv/app",
    {
        "POOL": "8",
        "DB_DSN": "postgresql://app:***@db:5432/shop",
        "ASYNC_DSN": "postgresql+asyncpg://app:***@db:5432/shop",
        "JDBC": "jdbc:postgresql://db:5432/shop",
        "WORDS": "host=db dbname=shop user=app",
        "OTHER_DSN": "postgresql://app@db/events",
        "SERVICE_DSN": "postgresql://app@db/shop",
        "PGPASSWORD": None,
        "DB_HOST": "db",
        "STRIPE_KEY": None,
        "BASE_URL": "http://localhost:8080/api",
        "APP_PORT": "8080",
        "PORT": "8080",
        "PATH": "/bin",
        "SHLVL": "1",
        "BASH_FUNC_x%%": "() { :; }",
        "SIGNS": "a :b",
    },
)
SPEC = HttpSpec(
    HttpServer("127.0.0.1", 8080),
    (
        Request("a", "GET", "/items/{id}", 3, (("Authorization", "Bearer x"), ("X-Own", "{word}"))),
        Request("b", "POST", "/items", body=b'{"id": {id}}', checks=Checks(statuses=(201,))),
        Request("c", "GET", "/never", 0),
        Request("urls.txt", "GET", "{url}"),
    ),
    variables=(
        Variable("id", 1, 500),
        Variable("word", values=("a", "it's"), in_turn=True),
        Variable("url", values=("/x?a=1", "/y"), in_turn=True),
        Variable("unused", 1, 2),
    ),
    clients=4,
    streams=2,
    arrivals=Arrivals("constant", 50.0),
    duration_ns=10**10,
)


def draft(spec=SPEC, **changes):
    found = service_start(PROGRAM, 8080, DSN)
    known = {
        "start": found,
        "database": DraftDatabase(DSN, ["Copied."], {"work_mem": "64MB"}),
        "changes": {"index": "CREATE INDEX ON item (id)"},
        "environments": {"POOL-16": ("POOL", "16")},
    }
    return ServiceDraft(
        "service", "What?", ["From a load."], without_secrets(http_plan(spec)), **{**known, **changes}
    )


def spec_of(text):
    spec = made_source(text, {}, Options(), "made.toml").spec
    assert sql_problems(spec, "made.toml", text) == []
    return spec


CONFIGURED = RunningProgram(
    ("/bin/app", "--config=app.ini", "-v"), "/srv", {"APP_CONFIG": "/etc/app.cfg", "OTHER": "/etc/other"}
)
URL = f'URL = "{DSN}"'
NAMED_CHANGE = HttpSpec(
    HttpServer("h", 80), (Request("a", "GET", "/{change}"),), variables=(Variable("change", 1, 2),)
)


def started(program, port, dsn, files=None):
    """Return how a service is started, as text."""
    start = service_start(program, port, dsn, files or {})
    assert isinstance(start, ServiceStart)
    environment = [f"{name}={value}" for name, value in start.environment.items()]
    return "\n".join((*start.command, "", *environment, "", *start.notes))


def test_an_encrypted_load_by_http3_becomes_a_service_with_tls():
    encrypted = replace(SPEC, server=HttpServer("127.0.0.1", 8443, tls=True), version="3")
    text = service_text(draft(encrypted))
    assert "\n]\ntls = true\n" in text
    assert 'version = "3"\n' in text
    negotiated = service_text(draft(replace(encrypted, version="negotiated")))
    assert '# The load left the version to TLS. For HTTP/2: version = "2"\n' in negotiated


def test_files_and_starts_are_as_written():
    filled = re.sub(r"FILL IN: .*? not store", "Bearer y", service_text(draft()))
    http = spec_of(filled).workloads["requests"].http
    assert (http.streams, http.rate, http.requests[1].statuses) == (2, 50, [201])
    assert spec_of(service_text(draft(NAMED_CHANGE))).setup.sql == ":change_sql"
    assert file_paths(CONFIGURED) == ("app.ini", "/etc/app.cfg", "/etc/other")
    compare_cases("spec/service", [
        ("the file sends the requests of the load to the service on a copy", service_text(draft())),
        ("what a service must do itself is noted",
         started(RunningProgram(("/bin/app", "--dsn=dbname=shop host=db"), "/", None), 80, None),
         started(RunningProgram(("/bin/app",), "/", {}), 80, DSN)),
        ("a file that names the database becomes a place to fill in",
         started(CONFIGURED, 80, DSN,
                 {"/etc/app.cfg": URL, "/etc/other": URL.replace("/shop", "/elsewhere")}),
         started(CONFIGURED, 80, DSN, {"app.ini": URL})),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (RunningProgram((), "/", {}, "puma 6 [app]"), 'a title instead of its command ("puma 6 [app]")'),
        (RunningProgram(("/usr/bin/docker-proxy",), "/", {}), "docker-proxy listens on the port and passes"),
    ],
)
def test_a_command_that_cannot_be_known_is_a_place_to_fill_in(program, reason):
    unknown = service_start(program, 80, None)
    assert isinstance(unknown, str) and reason in unknown
    text = service_text(draft(start=None, unknown=unknown, database=None, changes={}, environments={}))
    told = [one.message for one in places_to_fill(text)]
    assert told[0].startswith("fill in the program and its arguments, with {port} for the port; ")
    assert told[1].startswith("fill in the change to test")
    assert told[2] == "fill in the connection string of the database behind the service"
    with pytest.raises(SpecError, match="fill in the program"):
        spec_of(text)


def test_connection_strings_lose_their_password():
    compare_answers("answers/experiment/connection_strings_lose_their_password", plain_conninfo)


def test_an_address_to_listen_on_is_no_variable_of_a_service_manager():
    environment = {"LISTEN_ADDR": "127.0.0.1:8080", "LISTEN_FDS": "1", "LISTEN_PID": "77"}
    found = service_start(RunningProgram(("/bin/app",), "/", environment), 8080, None)
    assert isinstance(found, ServiceStart)
    assert found.environment == {"LISTEN_ADDR": "127.0.0.1:{port}"}
