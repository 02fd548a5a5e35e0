"""Services as variants on a real PostgreSQL: what is told when they fail, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from fakes.http_servers import certificate
from uncork.engines.places import servers_folder

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

SERVICE = Path(__file__).parents[1] / "fakes" / "encrypted_service.py"
EXAMPLE = Path(__file__).parents[2] / "examples" / "services"
SMALL = """
[experiment]
name = "pools"
question = "How many connections?"

[services.api]
command = ["{python}", "service.py"]
environment = { POOL = "10" }
ready = "/health"

[variants.ten]
baseline = true

[variants.one]
services.api.environment = { POOL = "1" }

[setup]
sql = '''
CREATE TABLE stored (id integer PRIMARY KEY, name text NOT NULL, price integer NOT NULL);
INSERT INTO stored SELECT n, 'item ' || n, n % 100 FROM generate_series(1, 200) AS n;
CREATE VIEW item AS SELECT stored.* FROM stored, LATERAL (SELECT pg_sleep(0.004 + 0 * id)) AS disk
'''

[workloads.find]
metric = "throughput"
clients = 10
operations = 60
warmup_operations = 10
parameters.id = { query = "SELECT id FROM stored" }
http = { requests = ["/items/{id}"], timeout = "5s" }

[server.settings]
shared_buffers = "32MB"

[stop]
budget = "200s"
precision = "99%"
blocks = 2
"""


@pytest.fixture
def services(uncork):
    """Run in a folder with the service of the example beside the experiment; nothing may be left."""
    before = set(servers_folder().glob("svc-*"))
    shutil.copy(EXAMPLE / "service.py", uncork.folder / "service.py")
    yield uncork
    left = [folder for folder in set(servers_folder().glob("svc-*")) - before if _owned(folder)]
    assert not left, f"services were left behind: {left}"


def _owned(folder):
    """Say whether a folder of services belongs to nobody that lives: others may measure on this machine."""
    try:
        owner = json.loads((folder / "owner.json").read_text())["owner"]
    except (OSError, ValueError):
        return False
    return not Path(f"/proc/{owner['pid']}").exists()


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def changed(*pairs):
    text = SMALL
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def report(uncork):
    return json.loads(uncork("report", uncork.runs[-1].name, "--json").stdout)


def test_a_pool_of_one_is_slower_and_the_report_says_what_it_costs(services):
    services.write(SMALL)
    done = services("run", "experiment.toml")
    assert done.returncode == 0, done.stderr
    result = report(services)
    (comparison,) = result["comparisons"]
    assert comparison["verdict"] == "slower"
    assert comparison["ratio"] < 0.5
    costs = {cost["variant"]: cost for cost in result["costs"]}
    # The kernel splits processor time into user and system by its ticks: only the sum is exact.
    assert costs["ten"]["service_user_ns"] + costs["ten"]["service_system_ns"] > 10_000
    assert costs["ten"]["server_user_ns"] + costs["ten"]["server_system_ns"] > 10_000
    assert costs["ten"]["shared_hit"] >= 2
    assert costs["ten"]["received_bytes"] > 100
    for counts in result["requests"]:
        assert counts["started"] == counts["succeeded"] + counts["failed"]
        assert counts["statuses"]["200"] == counts["succeeded"]
    assert [variant["services"] for variant in result["variants"]] == [[], ["api: POOL=1"]]
    (run,) = services.runs
    logs = sorted(path.name for path in (run / "services").iterdir())
    assert logs == ["one.api.log", "ten.api.log", "ten_2.api.log"]
    again = services("rerun", run.name, "--budget", "1ms")
    assert again.returncode == 1, "the budget holds nothing, but the service's file was found again"
    assert "nothing was measured" in again.stderr


@pytest.mark.thorough
def test_success_is_compared_in_points(services):
    text = changed(
        ('metric = "throughput"', 'metric = "success"'),
        ("operations = 60", "operations = 200"),
        ("clients = 10", "clients = 60"),
    )
    services.write(text)
    done = services("run", "experiment.toml", "--expect", "one=faster")
    assert done.returncode == 3, done.stderr
    assert "one on find is fewer succeed" in done.stderr + done.stdout
    (comparison,) = report(services)["comparisons"]
    assert comparison["ratio"] is None
    assert comparison["difference"] < -0.2, "of 60 at once a single connection refuses most"
    assert comparison["verdict"] == "slower"
    assert "fewer succeed" in done.stdout
    assert "points" in done.stdout
    assert services("report", "last", "--markdown").returncode == 0


ENCRYPTED = """
[experiment]
name = "versions"
question = "Is HTTP/3 worth it?"

[services.api]
command = ["{python}", "service.py"]
files = ["service.crt", "service.key"]
tls = true

[variants.two]
baseline = true

[variants.three]
http = { version = "3" }

[workloads.ask]
metric = "throughput"
clients = 2
operations = 20
http = { requests = ["/"], version = "2", streams = 4, timeout = "5s" }

[setup]
sql = "SELECT 1"

[server.settings]
shared_buffers = "32MB"

[stop]
budget = "100s"
precision = "99%"
blocks = 2
minimum_rounds = 3
maximum_rounds = 3
"""


@pytest.mark.thorough
def test_http3_is_compared_with_http2_of_the_same_service(services):
    certificate(services.folder, "service", 3)
    shutil.copy(SERVICE, services.folder / "service.py")
    services.write(ENCRYPTED)
    done = services("run", "experiment.toml", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    sent = {one["variant"]: one for one in result["requests"]}
    assert set(sent) == {"two", "three"}
    assert all(one["statuses"] == {"200": one["started"]} for one in sent.values())
    assert [variant["services"] for variant in result["variants"]] == [[], ["HTTP/3"]]


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (
            ('ready = "/health"', 'ready = "/lost"\ntimeout = "6s"'),
            1,
            "service api of ten was not ready within 6 s (GET /lost: status 404",
        ),
        (
            ('environment = { POOL = "10" }', 'environment = { POOL = "many" }'),
            1,
            "ValueError: invalid literal for int() with base 10: 'many') before it was ready",
        ),
        (
            ('ready = "/health"', 'ready = "/health"\nrequires = ["no-such-proxy"]'),
            1,
            "the baseline ten cannot be run here: the program no-such-proxy is not on the PATH",
        ),
        (
            ('command = ["{python}", "service.py"]', 'command = ["servcie.py"]'),
            1,
            "the program servcie.py, which service api starts, is not on the PATH",
        ),
        (
            ('"/items/{id}"', '"/items/{ident}"'),
            1,
            "uses {ident}, which is not a parameter, value or factor; expected one of id",
        ),
    ],
)
def test_what_cannot_run_is_told_in_one_line(services, change, status, message):
    services.write(changed(change))
    done = services("run", "experiment.toml")
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr.replace("Traceback (most recent call last);", "")
    assert services.runs == []


@pytest.mark.thorough
def test_a_variant_whose_service_is_lacking_is_skipped(services):
    more = '[services.front]\ncommand = ["no-such-proxy"]\nafter = ["api"]\n[variants.ten]\nservice = "api"\n'
    text = changed(
        ("[variants.ten]\n", more), ("[variants.one]", '[variants.fronted]\n[variants.one]\nservice = "api"')
    )
    services.write(text)
    done = services("run", "experiment.toml")
    assert done.returncode == 0, done.stderr
    verdicts = {one["variant"]: (one["verdict"], one["reason"]) for one in report(services)["comparisons"]}
    assert verdicts["one"][0] == "slower"
    assert verdicts["fronted"] == (
        "skipped",
        "cannot be run here: the program no-such-proxy, which service front starts, is not on the PATH",
    )


@pytest.mark.thorough
def test_another_answer_is_refused_or_flagged(services):
    other = "CREATE OR REPLACE VIEW item AS SELECT id, name, price + (id % 2) AS price FROM stored"
    setup = SMALL[SMALL.index("sql = '''") + 9 : SMALL.index("'''\n\n[workloads")]
    text = changed(
        (
            "[variants.one]\n",
            f"[variants.one]\nsetup.sql = '''{setup};\n{other.replace('CREATE OR REPLACE', 'DROP VIEW item; CREATE')}'''\n",
        )
    )
    services.write(text)
    done = services("run", "experiment.toml")
    assert done.returncode == 1, "nothing was measured"
    (comparison,) = report(services)["comparisons"]
    assert comparison["verdict"] == "refused"
    assert comparison["reason"].startswith("wrong answer: GET /items/")
    assert ": /price is " in comparison["reason"]
    services.write(text.replace("clients = 10", 'clients = 10\nanswer = "may differ"'))
    done = services("run", "experiment.toml")
    assert done.returncode == 0, done.stderr
    assert "one changes the answer on find: GET /items/" in " ".join(done.stdout.split())
    assert report(services)["answers"][0]["variant"] == "one"


DIES = """
        served.append(1)
        if len(served) > int(os.environ.get("LIVES", "1000000")):
            print("out of luck", flush=True)
            os._exit(7)
        number = """


@pytest.mark.thorough
def test_a_service_that_dies_in_mid_trial_is_told_and_the_rest_is_kept(services):
    path = services.folder / "service.py"
    text = path.read_text().replace("        number = ", DIES.lstrip("\n"), 1)
    path.write_text(text.replace("WAIT_S = 0.1", "WAIT_S = 0.1\nserved = []"))
    # 20 requests compare answers; a trial of 70 is too much for it.
    lives = 'services.api.environment = { POOL = "1", LIVES = "50" }'
    services.write(changed(('services.api.environment = { POOL = "1" }', lives)))
    done = services("run", "experiment.toml")
    assert done.returncode == 2, done.stderr
    gone = "service api of one ended (exit status 7: out of luck)"
    assert f"a service failed and was restarted: {gone}" in done.stderr
    assert f"a service failed 3 times, most recently: {gone}; results so far are kept" in done.stderr
    (run,) = services.runs
    assert json.loads((run / "manifest.json").read_text())["status"] == "failed"


@pytest.mark.thorough
def test_an_interrupted_run_leaves_no_service_behind(services):
    stubborn = services.folder / "service.py"
    stubborn.write_text(stubborn.read_text().replace("lambda *_: sys.exit(0)", "signal.SIG_IGN"))
    services.write(SMALL.replace("operations = 60", 'duration = "2s"'))
    process = services.start("run", "experiment.toml")
    try:
        services.wait_for(process, "round 1")
        deadline = time.monotonic() + 60
        while not (families := _services_of(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert families, "services should run by now"
        os.kill(process.pid, signal.SIGTERM)
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    assert not [pid for pid in families if Path(f"/proc/{pid}").exists() and _state(pid) != "Z"]


def _services_of(parent):
    """Return the processes that a run has started as services."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = _read(path).decode(errors="replace").rpartition(")")[2].split()
        if fields and int(fields[1]) == parent and b"FOLDER=" in _read(path.parent / "environ"):
            found.append(int(path.parent.name))
    return found


def _state(pid):
    fields = _read(Path(f"/proc/{pid}/stat")).decode(errors="replace").rpartition(")")[2].split()
    return fields[0] if fields else "Z"


@pytest.mark.thorough
def test_databases_beside_and_a_service_before_the_service(services):
    front = services.folder / "front.py"
    front.write_text(
        "import http.server, os, time, urllib.request\n"
        "import psycopg\n"
        "events = psycopg.connect(os.environ['DATABASE_URL_EVENTS'], autocommit=True)\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    protocol_version = 'HTTP/1.1'\n"
        "    def do_GET(self):\n"
        "        body = urllib.request.urlopen(os.environ['SERVICE_API'] + self.path).read()\n"
        "        count = events.execute('SELECT count(*) FROM event').fetchone()[0]\n"
        '        body = body[:-1] + b\', "events": %d, "trace": "%x"}\' % (count, time.time_ns())\n'
        "        self.send_response(200)\n"
        "        self.send_header('Content-Length', str(len(body)))\n"
        "        self.end_headers()\n"
        "        self.wfile.write(body)\n"
        "    def log_message(self, *_): pass\n"
        "http.server.ThreadingHTTPServer((os.environ['HOST'], int(os.environ['PORT'])), Handler).serve_forever()\n"
    )
    text = changed(
        (
            "[variants.ten]",
            '[services.front]\ncommand = ["{python}", "front.py"]\nafter = ["api"]\nready = "/items/1"\n\n[databases.events]\nsql = "CREATE TABLE event AS SELECT generate_series(1, 7) AS id"\n\n[variants.ten]',
        ),
        ("clients = 10", "clients = 1"),
        ("operations = 60", "operations = 20"),
        ("blocks = 2", "blocks = 2\nminimum_rounds = 3\nmaximum_rounds = 3"),
        ('services.api.environment = { POOL = "1" }', 'services.api.environment = { POOL = "2" }'),
    )
    services.write(text)
    done = services("run", "experiment.toml")
    assert done.returncode == 1, "no answer is like another, so nothing was measured"
    assert (
        "one is refused on find: not comparable: the baseline answers the same request differ" in done.stderr
    )
    before, line = report(services)["comparisons"][0]["reason"].split("in workloads.find.http, set ")
    assert ": /trace is " in before
    assert line == 'ignore = ["/trace"]'
    services.write(text.replace('timeout = "5s"', f'timeout = "5s", {line}'))
    done = services("run", "experiment.toml")
    assert done.returncode == 0, done.stderr
    result = report(services)
    assert result["run"]["failed_trials"] == 0
    assert all(counts["failed"] == 0 for counts in result["requests"])
    hits = {cost["variant"]: cost["shared_hit"] for cost in result["costs"]}
    assert hits["ten"] >= 3, "those of the database beside are counted too"


@pytest.mark.thorough
def test_services_run_beside_an_existing_server(services, tmp_path):
    from uncork.engines.embedded import EmbeddedServer

    server = EmbeddedServer({"shared_buffers": "32MB"})
    server.start()
    try:
        text = SMALL[: SMALL.index("[server.settings]")] + SMALL[SMALL.index("[stop]") :]
        services.write(text.replace("operations = 60", "operations = 30"))
        done = services("run", "experiment.toml", "--dsn", server.conninfo())
        assert done.returncode == 0, done.stderr
        (comparison,) = report(services)["comparisons"]
        assert comparison["verdict"] == "slower"
        import psycopg

        with psycopg.connect(server.conninfo()) as connection:
            names = connection.execute(
                "SELECT datname FROM pg_database WHERE datname LIKE 'uncork%'"
            ).fetchall()
        assert names == []
    finally:
        server.stop()
