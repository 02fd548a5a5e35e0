"""`uncork load http` by subprocess, on real servers: what it says, keeps, and ends with."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path

import jsonschema
import psycopg
import pytest

from fakes.account_service import SETUP, account_service, over_http2
from fakes.http_servers import nginx
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.ports import free_port

pytestmark = pytest.mark.xdist_group("http")

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "load-result.schema.json").read_text())


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nginx(tmp_path_factory.mktemp("nginx")) as running:
        yield running


@pytest.fixture
def load(uncork, server):
    """Run `uncork load http` on a path of one of nginx's servers."""

    def run(kind: str, path: str, *words: object, **options: object):
        scheme = "https" if kind in ("tls", "expired") else "http"
        return uncork("load", "http", *words, f"{scheme}://127.0.0.1:{server.ports[kind]}{path}", **options)

    return run


def result_of(folder: Path) -> dict:
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, SCHEMA)
    counts, http = result["counts"], result["http"]
    parts = ("failed", "errored", "timed_out", "cut_short")
    assert counts["started"] == counts["succeeded"] + sum(http[part] for part in parts)
    if http["planned"] is not None:
        assert http["planned"] == counts["started"] + http["not_started"]
    by_second = Counter()
    for second in result["series"]:
        by_second.update(second["statuses"])
    assert by_second == http["statuses"]
    return result


def test_a_load_is_answered_counted_and_kept(uncork, load):
    done = load("plain", "/small.txt", "-n", 500, "-c", 4, "-t", 2)
    assert done.returncode == 0, done.stderr
    # A bottleneck takes the place of the connections.
    assert re.match(
        r"The service handled [\d ,.]+ requests a second( from 4 connections)? with p99", done.stdout
    )
    assert re.search(r"Over .* by 4 connections: half took under", done.stdout)
    assert "no errors" in done.stdout
    assert "transaction" not in done.stdout
    (folder,) = uncork.runs
    assert f"uncork: run {folder.name}" in done.stderr
    result = result_of(folder)
    assert result["http"]["statuses"] == {"200": 500}
    assert result["settings"]["protocol"] == "HTTP/1.1"
    assert "GET /small.txt" in result["scripts"][0]["text"]
    page = (folder / "report.html").read_text()
    assert "requests a second" in page
    assert "transaction" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    again = uncork("report", folder.name)
    assert again.stdout.splitlines()[0] == done.stdout.splitlines()[0]


def test_statuses_are_kept_by_the_second_and_drawn_also_of_two_loads(uncork, load, server):
    refused = f"http://127.0.0.1:{server.ports['plain']}/refuse"
    for more, status in ((), 0), ((refused,), 2):
        done = load("plain", "/small.txt@3", *more, "-D", 2, "-R", 300, "-c", 4)
        assert done.returncode == status, done.stderr
    good, bad = uncork.runs
    statuses = result_of(bad)["http"]["statuses"]
    asked = "SELECT status, sum(answers) AS answers FROM load_statuses GROUP BY ALL ORDER BY ALL"
    rows = uncork("sql", bad.name, asked, "--csv").stdout.split()
    assert rows[1:] == [f"{status},{number}" for status, number in sorted(statuses.items())]
    assert "Status codes over time" in (bad / "report.html").read_text()
    assert "Status codes over time" not in (good / "report.html").read_text(), "the table says it"
    compared = uncork("compare", good.name, bad.name, "--html", "compared.html")
    assert compared.returncode == 0, compared.stderr
    assert "Status 503 over time" in (uncork.folder / "compared.html").read_text()


def test_http_2_over_tls_and_every_form_of_the_result(uncork, load, server):
    words = ("-n", 300, "-c", 2, "-m", 10, "--cacert", server.cacert)
    done = load("tls", "/small.txt", *words, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["http"]["tls"]["count"] == 2
    assert result["http"]["header_bytes"] < result["http"]["header_plain_bytes"]
    done = load("tls", "/small.txt", *words, "--go-bench")
    assert re.search(r"^BenchmarkLoadHTTP/\S*streams=10\S* 300 .* req/s", done.stdout, re.MULTILINE)
    folder = uncork.runs[0]
    done = uncork("report", folder.name, "--markdown")
    assert "requests a second" in done.stdout
    assert "first byte" in done.stdout


def test_what_fails_is_told_kept_and_the_exit_status_says_so(uncork, load):
    done = load("plain", "/missing", "-n", 20)
    assert done.returncode == 2
    assert "None of 20 requests succeeded" in done.stdout
    assert "20 × status 404" in " ".join(done.stdout.split())
    assert result_of(uncork.runs[0])["http"]["failed"] == 20
    done = uncork("load", "http", "-n", 20, f"http://127.0.0.1:{free_port()}/")
    assert done.returncode == 2
    assert "Nothing was measured" in done.stdout
    assert "is a server listening there?" in " ".join(done.stdout.split())
    done = load("expired", "/small.txt", "-n", 20, "-k")
    assert done.returncode == 0
    done = load("expired", "/small.txt", "-n", 20)
    assert done.returncode == 2


def test_an_answer_that_waits_for_an_acknowledgement_is_named_with_what_to_do(uncork, load):
    done = load("sendfile_two", "/small.txt", "-n", 80, "--h2")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert re.search(r"\d+ of 80 answers \(.*\) paused midway for 40 ms", told)
    assert "set TCP_NODELAY on the server (nginx with HTTP/2: sendfile off)" in told
    done = load("two", "/small.txt", "-n", 80, "--h2")
    assert "paused midway" not in done.stdout


def test_an_interrupted_load_keeps_what_it_has(tmp_path, server):
    url = f"http://127.0.0.1:{server.ports['plain']}/small.txt"
    command = [sys.executable, "-m", "uncork", "load", "http", "-D", "60", "-P", "1", url]
    running = subprocess.Popen(
        [*command, "--runs", str(tmp_path / "runs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert running.stderr is not None
    told = [running.stderr.readline(), running.stderr.readline()]
    assert "requests/s" in told[1]
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=40)  # the load was to last for 60 s
    assert running.returncode == 130
    assert output.startswith("Interrupted: ")
    (folder,) = (tmp_path / "runs").iterdir()
    assert result_of(folder)["counts"]["succeeded"] > 0


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


def requests_result_of(uncork) -> dict:
    folder = uncork.runs[-1]
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, SCHEMA)
    return result


@pytest.mark.postgres
@pytest.mark.parametrize("version", ["--h1", "--h2"])
def test_clients_log_in_read_and_write_as_the_service_counts(uncork, database, service, version, tmp_path):
    uncork.environment["SHOP_PREFIX"] = "open"

    def load(address: str) -> None:
        before = counts_of(service, database)
        file = files(uncork, address)
        ended = uncork("load", "http", "-f", file, version, "-c", 4, "-t", 2, "-n", 400, "--random-seed", 7)
        assert ended.returncode == 0, ended.stderr + ended.stdout
        counts = {name: number - before[name] for name, number in counts_of(service, database).items()}
        result = requests_result_of(uncork)
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


@pytest.mark.postgres
def test_failed_checks_are_named_once_by_request(uncork, service):
    uncork.environment["SHOP_PREFIX"] = "open"
    ended = uncork("load", "http", "-f", files(uncork, service, "/broken/"), "-c", 2, "-n", 200)
    assert ended.returncode == 2
    result = requests_result_of(uncork)
    read, transfer = result["scripts"]
    assert transfer["errors_by_kind"] == {} and list(read["errors_by_kind"]) == ["check json"]
    assert read["errors"] == read["errors_by_kind"]["check json"] == result["http"]["failed"] > 0
    assert read["examples"]["check json"].startswith("in the body /id is -1, not ")
    assert ended.stdout.count("in the body /id is -1, not ") <= 2, "the answer and the table"
    assert "Errors by request and kind" in ended.stdout


@pytest.mark.postgres
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


@pytest.mark.postgres
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
