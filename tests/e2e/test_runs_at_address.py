"""Runs at an address, from the command line: a server that speaks S3, and two machines that share it."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from bench.servers.s3_server import s3_server


class Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def hello():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def s3():
    with s3_server() as server:
        yield server


@pytest.fixture
def machine(uncork, s3):
    """Run the command as on a machine of that name: with a cache of its own."""

    def run(name, *arguments, runs="s3://bench/team"):
        cache = str(uncork.folder / name)
        return uncork(*arguments, env={**s3.environment, "UNCORK_CACHE": cache, "UNCORK_RUNS": runs})

    return run


def load(machine, name, hello, **options):
    return machine(name, "load", "http", "-c", "1", "-D", "0.3", hello, "--json", **options)


def test_a_team_stores_lists_opens_asks_tags_and_prunes(machine, uncork):
    results = uncork.write(json.dumps({"results": [{"command": "true", "times": [0.1, 0.2]}]}), "result.json")
    done = machine("one", "import", results, "--at", "2026-03-01")
    assert done.returncode == 0
    id = done.stdout.split(":")[0]
    assert done.stderr == f"uncork: stored at s3://bench/team: {id}\n"
    listed = machine("two", "runs")
    assert listed.stderr == "" and [line.split()[0] for line in listed.stdout.splitlines()[1:]] == [id]
    assert (
        machine("two", "sql", "last", "SELECT subject FROM figures LIMIT 1", "--csv").stdout
        == "subject\ntrue\n"
    )
    assert machine("two", "runs", "tag", "last", "nightly").stdout == f"{id}: nightly\n"
    assert machine("two", "import", results, "--at", "2026-03-02").returncode == 0
    shown = machine("one", "runs", "prune", "--keep", "0", "--yes")
    assert "1 of 2 runs" in shown.stderr and "removed" in shown.stderr
    query = "SELECT run, tags, count(*) > 0 AS some FROM runs JOIN figures USING (run) GROUP BY ALL"
    asked = machine("two", "sql", "all", query, "--json")
    assert json.loads(asked.stdout) == {"run": id, "tags": ["nightly"], "some": True}


@pytest.mark.thorough
def test_what_cannot_be_sent_is_kept_and_pushed_later(machine, s3, hello, uncork):
    process = Thread(target=s3.stop)

    class Last(Hello):
        """Stops the store with the first request: the run goes on, and cannot be sent."""

        def do_GET(self):
            if process.ident is None:
                process.start()
            super().do_GET()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Last)
    Thread(target=server.serve_forever, daemon=True).start()
    done = load(machine, "one", f"http://127.0.0.1:{server.server_port}/")
    server.shutdown()
    server.server_close()
    process.join()
    store = next((uncork.folder / "one" / "stores").iterdir())
    assert done.returncode == 0 and json.loads(done.stdout)["answer"]
    said = [line for line in done.stderr.splitlines() if "s3://" in line]
    assert len(said) == 1 and "Could not connect" in said[0]
    assert said[0].endswith(
        f"; 1 run is not stored at s3://bench/team yet; kept in {store}; upload with "
        "`uncork runs push --runs s3://bench/team`"
    )
    assert "Traceback" not in done.stderr
    gone = machine("one", "runs")
    assert gone.returncode == 1 and "s3://bench/team: cannot list it" in gone.stderr
    s3.start()
    waiting = machine("one", "runs")
    assert "1 run is not stored at s3://bench/team yet" in waiting.stderr
    pushed = machine("one", "runs", "push")
    assert pushed.returncode == 0 and "stored at s3://bench/team: load-127.0.0.1-" in pushed.stderr
    assert len(machine("two", "runs").stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ("s3://", "names no bucket or host"),
        ("nobody://x/y", 'unknown scheme "nobody"'),
        ("s3://nosuch/x", "s3://nosuch/x: does not exist"),
    ],
)
def test_a_wrong_address_is_told_before_anything_is_measured(machine, hello, runs, said):
    done = load(machine, "one", hello, runs=runs)
    assert done.returncode == 1 and said in done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""
