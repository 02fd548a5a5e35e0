"""`uncork load http -f`: clients that log in, read and write, checked against the service's own counts."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import jsonschema
import psycopg
import pytest

from fakes.account_service import SETUP, account_service, over_http2
from uncork.engines.embedded import EmbeddedServer

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("http")]
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "load-result.schema.json").read_text())
REQUESTS = """\
base_url = "{address}"
headers = {{ Authorization = "Bearer {{token}}" }}

[variables]
account = "1..200000"
amount = "1..500"
note = ["plain", "with \\"quotes\\" and \\\\"]
user = {{ file = "users.csv", per = "client", order = "sequential" }}

[[login]]
name = "log in"
url = "/login"
json = {{ user = "{{user.name}}", password = "${{SHOP_PREFIX}}-{{user.number}}" }}
checks = {{ status = 200, exists = "/data/token" }}
capture = {{ token = {{ json = "/data/token" }} }}

[[requests]]
name = "read"
url = "{reads}{{account}}"
weight = 4
checks = {{ status = 200, json = {{ "/id" = "{{account}}", "/name" = "{{user.name}}" }} }}

[[requests]]
name = "transfer"
url = "/transfers"
json = '{{"account": {{account}}, "amount": {{amount}}, "note": "{{note}}", "last": {{last}}}}'
checks = {{ status = 201 }}
capture = {{ last = {{ json = "/transfer", default = "0" }} }}
"""


@pytest.fixture(scope="module")
def database():
    server = EmbeddedServer({"autovacuum": False, "fsync": False})
    server.start()
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(SETUP)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def service(database):
    with account_service(database.conninfo()) as address:
        yield address


def counts_of(address: str, database: EmbeddedServer) -> dict[str, int]:
    with urllib.request.urlopen(f"{address}/counts") as answer:
        counts = {"read": 0, "write": 0, **json.load(answer)}
    with psycopg.connect(database.conninfo()) as connection:
        for table in ("sessions", "transfers"):
            (counts[table],) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return counts


def files(uncork, address: str, reads: str = "/accounts/") -> Path:
    rows = "".join(f"user{n},{n}\n" for n in range(1, 51))
    (uncork.folder / "users.csv").write_text(f"name,number\n{rows}")
    return uncork.write(REQUESTS.format(address=address, reads=reads), "requests.toml")


def result_of(uncork) -> dict:
    folder = uncork.runs[-1]
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, SCHEMA)
    return result


@pytest.mark.parametrize("version", ["--h1", "--h2"])
def test_clients_log_in_read_and_write_as_the_service_counts(uncork, database, service, version, tmp_path):
    uncork.environment["SHOP_PREFIX"] = "open"

    def load(address: str) -> None:
        before = counts_of(service, database)
        file = files(uncork, address)
        ended = uncork("load", "http", "-f", file, version, "-c", 4, "-t", 2, "-n", 400, "--random-seed", 7)
        assert ended.returncode == 0, ended.stderr + ended.stdout
        counts = {name: number - before[name] for name, number in counts_of(service, database).items()}
        result = result_of(uncork)
        read, transfer = result["scripts"]
        assert (read["name"], transfer["name"]) == ("read", "transfer")
        assert read["executions"] + transfer["executions"] == 400
        assert (counts["read"], counts["write"]) == (read["executions"], transfer["executions"])
        assert (counts["transfers"], counts["sessions"]) == (transfer["executions"], 4)
        assert 200 < read["executions"] < 400, "four in five by weight"
        assert result["http"]["statuses"] == {"200": counts["read"], "201": counts["write"]}
        (log_in,) = result["http"]["logins"]
        assert (log_in["name"], log_in["executions"], log_in["errors"]) == ("log in", 4, 0)
        assert read["received_bytes"] > 0 and transfer["sent_bytes"] > 0
        if version == "--h1":
            sent = sum(script["sent_bytes"] for script in result["scripts"])
            assert sent == result["counts"]["sent_bytes"]
        assert "Logins" in ended.stdout

    if version == "--h1":
        load(service)
    else:
        with over_http2(service, tmp_path) as front:
            load(front)
    with psycopg.connect(database.conninfo()) as connection:
        users = connection.execute(
            "SELECT count(DISTINCT name), count(DISTINCT note) FROM transfers"
        ).fetchone()
        spread = connection.execute("SELECT count(DISTINCT account), max(account) FROM transfers").fetchone()
    assert users == (4, 2), "each client keeps its user; quotes arrive as they are"
    assert spread[0] > 30 and spread[1] > 100_000
    stored = (uncork.runs[-1] / "plan.json").read_text()
    assert "${SHOP_PREFIX}" in stored and '"open"' not in stored


def test_failed_checks_are_named_once_by_request(uncork, service):
    uncork.environment["SHOP_PREFIX"] = "open"
    ended = uncork("load", "http", "-f", files(uncork, service, "/broken/"), "-c", 2, "-n", 200)
    assert ended.returncode == 2
    result = result_of(uncork)
    read, transfer = result["scripts"]
    assert transfer["errors_by_kind"] == {} and list(read["errors_by_kind"]) == ["check json"]
    assert read["errors"] == read["errors_by_kind"]["check json"] == result["http"]["failed"] > 0
    assert read["examples"]["check json"].startswith("in the body /id is -1, not ")
    assert ended.stdout.count("in the body /id is -1, not ") <= 2, "the answer and the table"
    assert "Errors by request and kind" in ended.stdout


def test_a_login_that_fails_ends_the_load_without_secrets(uncork, service):
    uncork.environment["SHOP_PREFIX"] = "wrongword"
    ended = uncork("load", "http", "-f", files(uncork, service), "-c", 2, "-n", 200)
    assert ended.returncode == 2
    told = " ".join(ended.stdout.split())
    assert 'login step "log in": the answer has the status 401' in told.replace("Login", "login")
    assert "wrongword" not in ended.stdout + ended.stderr
    del uncork.environment["SHOP_PREFIX"]
    refused = uncork("load", "http", "-f", files(uncork, service), "-n", 1)
    assert refused.returncode == 1
    assert "there is no environment variable SHOP_PREFIX" in refused.stderr


@pytest.mark.thorough
def test_a_stored_load_is_repeated_and_swept_with_its_logins(uncork, database, service):
    uncork.environment["SHOP_PREFIX"] = "open"
    file = files(uncork, service)
    assert uncork("load", "http", "-f", file, "-c", 2, "-R", 200, "-n", 100).returncode == 0
    run, before = uncork.runs[-1].name, counts_of(service, database)["sessions"]
    sides = ("--baseline", f"url={service}", "--candidate", f"url={service}")
    guarded = uncork("guard", run, "--budget", "4s", "--same", *sides)
    assert guarded.returncode in (0, 4), guarded.stderr + guarded.stdout
    assert counts_of(service, database)["sessions"] > before
    swept = uncork("load", "http", "-f", file, "--sweep", "clients", "--to", 4, "-D", 0.3, "--budget", "5s")
    assert swept.returncode == 0, swept.stderr
