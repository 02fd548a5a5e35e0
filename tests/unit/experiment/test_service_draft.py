"""What a load stored about a service becomes an experiment file that starts it again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uncork.errors import SpecError
from uncork.experiment.service_draft import DraftDatabase, ServiceDraft, service_text
from uncork.experiment.service_start import ServiceStart, file_paths, service_start
from uncork.experiment.spec.placeholders import places_to_fill
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


def test_an_encrypted_load_by_http3_becomes_a_service_with_tls():
    encrypted = replace(SPEC, server=HttpServer("127.0.0.1", 8443, tls=True), version="3")
    text = service_text(draft(encrypted))
    assert "\n]\ntls = true\n" in text
    assert 'version = "3"\n' in text
    negotiated = service_text(draft(replace(encrypted, version="negotiated")))
    assert '# The load left the version to TLS. For HTTP/2: version = "2"\n' in negotiated


def test_port_and_database_are_replaced_wherever_they_occur():
    start = service_start(PROGRAM, 8080, DSN)
    assert isinstance(start, ServiceStart)
    assert start.command == (
        *("env", "--chdir=/srv/app", "SERVICE_DSN={database_url}", "/srv/.venv/bin/python", "-m", "app"),
        *("--bind", "127.0.0.1:{port}", "--pool=18080"),
    )
    place = "host={database_host}&port={database_port}&password={database_password}"
    login = "user={database_user}&password={database_password}"
    assert start.environment == {
        "POOL": "8",
        "DB_DSN": "{database_url}",
        "ASYNC_DSN": f"postgresql+asyncpg://{{database_user}}@/{{database_name}}?{place}",
        "JDBC": f"jdbc:postgresql://{{database_host}}:{{database_port}}/{{database_name}}?{login}",
        "WORDS": "{database_url}",
        "OTHER_DSN": "postgresql://app@db/events",
        "PGPASSWORD": "{database_password}",
        "DB_HOST": "{database_host}",
        "STRIPE_KEY": "${STRIPE_KEY}",
        "BASE_URL": "http://localhost:{port}/api",
        "APP_PORT": "{port}",
    }
    assert "Left out, because an experiment cannot pass them on: BASH_FUNC_x%%, SIGNS." in start.notes
    assert any("export STRIPE_KEY before the run" in note for note in start.notes)


def test_what_a_service_must_do_itself_is_noted():
    start = service_start(RunningProgram(("/bin/app", "--dsn=dbname=shop host=db"), "/", None), 80, None)
    assert isinstance(start, ServiceStart)
    assert start.command[2:] == ("/bin/app", "--dsn={database_url}")
    assert any("could not be read" in note for note in start.notes)
    assert any("Port 80 occurs neither" in note for note in start.notes)
    start = service_start(RunningProgram(("/bin/app",), "/", {}), 80, DSN)
    assert isinstance(start, ServiceStart)
    assert any("it must connect to DATABASE_URL" in note for note in start.notes)
    assert start.environment["DATABASE"].startswith("FILL IN: how the service finds its database")


def test_a_file_that_names_the_database_becomes_a_place_to_fill_in():
    program = RunningProgram(
        ("/bin/app", "--config=app.ini", "-v"), "/srv", {"APP_CONFIG": "/etc/app.cfg", "OTHER": "/etc/other"}
    )
    assert file_paths(program) == ("app.ini", "/etc/app.cfg", "/etc/other")
    url = f'URL = "{DSN}"'
    files = {"/etc/app.cfg": url, "/etc/other": 'URL = "postgresql://me@here/elsewhere"'}
    start = service_start(program, 80, DSN, files)
    assert isinstance(start, ServiceStart)
    assert start.environment["APP_CONFIG"].startswith("FILL IN: the path of a copy of /etc/app.cfg")
    assert start.environment["OTHER"] == "/etc/other"
    assert "DATABASE" not in start.environment
    start = service_start(program, 80, DSN, {"app.ini": url})
    assert isinstance(start, ServiceStart)
    assert start.command[3].startswith("FILL IN: the path of a copy of app.ini")


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


def test_the_file_sends_the_requests_of_the_load_to_the_service_on_a_copy():
    text = service_text(draft())
    (place,) = places_to_fill(text)
    assert place.message == "fill in the value of Authorization, which the load did not store"
    spec = spec_of(
        text.replace("FILL IN: the value of Authorization, which the load did not store", "Bearer y")
    )
    assert list(spec.variants) == ["current", "index", "POOL-16"]
    assert spec.variants["index"].values == {"change": "CREATE INDEX ON item (id)"}
    assert spec.variants["POOL-16"].services["app"].environment == {"POOL": "16"}
    assert (spec.setup.copy_of, spec.setup.sql) == (DSN, ":change")
    assert spec.server.settings == {"work_mem": "64MB"}
    workload = spec.workloads["requests"]
    assert (workload.clients, workload.http.streams, workload.http.rate) == (4, 2, 50)
    first, second, third = workload.http.requests
    assert (first.path, first.weight, first.headers["X-Own"]) == ("/items/{id}", 3, "{word}")
    assert (second.method, second.body, second.statuses) == ("POST", '{"id": {id}}', [201])
    assert third.path == "/{url}", "addresses of a list begin with a slash themselves"
    parameters = workload.parameters
    assert list(parameters) == ["id", "word", "url"]
    assert (parameters["id"].generator.kind, parameters["id"].generator.max) == ("uniform", 500)
    assert (parameters["word"].pick, "(2, 'it''s')" in parameters["word"].query) == ("sequence", True)
    assert "(1, 'x?a=1')" in parameters["url"].query


def test_a_variable_of_the_load_may_have_the_name_of_the_change():
    spec = HttpSpec(
        HttpServer("h", 80), (Request("a", "GET", "/{change}"),), variables=(Variable("change", 1, 2),)
    )
    assert spec_of(service_text(draft(spec))).setup.sql == ":change_sql"


@pytest.mark.parametrize(
    ("conninfo", "plain"),
    [
        ("postgresql://app:x@db/shop", "postgresql://app@db/shop"),
        ("postgresql://app@db/shop?password=x&sslmode=require", "postgresql://app@db/shop?sslmode=require"),
        ("postgresql://app@db/shop?password=x", "postgresql://app@db/shop"),
        ("host=db password='x y' dbname=shop", "host=db dbname=shop"),
        ("dbname=shop", "dbname=shop"),
    ],
)
def test_connection_strings_lose_their_password(conninfo, plain):
    assert plain_conninfo(conninfo) == plain


def test_an_address_to_listen_on_is_no_variable_of_a_service_manager():
    environment = {"LISTEN_ADDR": "127.0.0.1:8080", "LISTEN_FDS": "1", "LISTEN_PID": "77"}
    found = service_start(RunningProgram(("/bin/app",), "/", environment), 8080, None)
    assert isinstance(found, ServiceStart)
    assert found.environment == {"LISTEN_ADDR": "127.0.0.1:{port}"}
