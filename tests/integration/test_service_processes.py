"""Services as processes: started, watched, ended with all that they started, whatever they do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.reapers import kill_with_reaper
from uncork.engines.places import servers_folder
from uncork.engines.services import local as service_process
from uncork.engines.services.inspection import listening_program
from uncork.engines.services.local import LocalServices, remove_leftover_services, session_of
from uncork.errors import ServiceCrash
from uncork.load.trials import run_trial
from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.model.http_trial import HttpTrial
from uncork.model.measurement import Outcome
from uncork.model.server import Target
from uncork.model.service import ServiceJob

CONNECTION = {"host": "127.0.0.1", "port": 5432, "user": "app", "database": "postgres", "password": "s3cret!"}
DATABASE = Target("shop", CONNECTION)
SECONDS = 10**9

ECHO = """
import http.server, json, os, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = json.dumps(dict(os.environ, FOLDER_IS=os.getcwd())).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
print("I know", os.environ["DATABASE_URL"], flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
http.server.HTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Handler).serve_forever()
"""
STUBBORN = ECHO.replace(
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))",
    """
import subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import signal, time\\nsignal.signal(15, 1)\\ntime.sleep(600)"])
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
""",
)


def job(text=ECHO, **facts):
    facts.setdefault("timeout_ns", 10 * SECONDS)
    return ServiceJob("api", ("{python}", "service.py"), files={"service.py": text}, **facts)


@pytest.fixture
def services(tmp_path):
    found = LocalServices(tmp_path / "services")
    yield found
    found.stop()
    assert not list(servers_folder().glob("svc-*")), "folders were left behind"


def get(served, path="/"):
    import http.client
    import json

    connection = http.client.HTTPConnection(served.host, served.port, timeout=5)
    connection.request("GET", path)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_service_is_told_what_it_needs_and_nothing_else(services, monkeypatch, tmp_path):
    monkeypatch.setenv("MY_TOKEN", "not for it")
    variables = (
        *(("POOL", "10"), ("API_KEY", "hidden-key"), ("MINE", "${MY_TOKEN}"), ("DSN", "{database_url}")),
        ("PARTS", "{database_host} {database_port} {database_name} {database_user} {database_password}"),
        ("BASE", "http://{host}:{port}/{folder}"),
    )
    one = job(environment=variables, ready="/health")
    front = ServiceJob("front", ("{python}", "service.py"), files={"service.py": ECHO}, after=("api",))
    served = services.serve("wide", [one, front], DATABASE, {"events": Target("uncork_b0", CONNECTION)})
    told = get(served)
    assert served.name == "front"
    assert told.pop("FOLDER_IS") == told["FOLDER"]
    assert told["DATABASE_URL"] == "postgresql://app:s3cret%21@127.0.0.1:5432/shop?sslmode=prefer"
    assert told["DATABASE_URL_EVENTS"].startswith("postgresql://app:s3cret%21@127.0.0.1:5432/uncork_b0")
    assert told["SERVICE_API"].startswith("http://127.0.0.1:")
    assert "MY_TOKEN" not in told
    first = get(replace(served, port=int(told["SERVICE_API"].rpartition(":")[2])))
    assert first["MINE"] == "not for it" and first["DSN"] == first["DATABASE_URL"]
    assert first["PARTS"] == "127.0.0.1 5432 shop app s3cret!"
    assert first["BASE"] == f"http://127.0.0.1:{first['PORT']}/{first['FOLDER']}"
    assert len(served.pids) == 2
    user_ns, system_ns = services.cpu_ns(served)
    assert user_ns > 0
    assert system_ns >= 0
    services.release()
    assert not listens(served.port)
    log = (tmp_path / "services" / "wide.api.log").read_text()
    assert log.startswith("I know ***")
    assert "s3cret" not in log


def test_a_variable_of_our_own_environment_that_is_not_set_is_named(services, monkeypatch):
    monkeypatch.delenv("MY_TOKEN", raising=False)
    jobs = [job(environment=(("MINE", "${MY_TOKEN}"),))]
    told = "the variable MY_TOKEN, which service api needs, is not set: export it"
    assert services.lacking(jobs, []) == told
    monkeypatch.setenv("MY_TOKEN", "1")
    assert services.lacking(jobs, []) is None


def test_the_program_that_listens_is_the_one_that_started_its_workers(services):
    started = services.serve("base", [job(environment=(("POOL", "10"), ("API_KEY", "hidden")))], DATABASE, {})
    program = listening_program(started.host, started.port)
    assert program is not None
    assert program.command[0].endswith(Path(sys.executable).name) and program.command[1:] == ("service.py",)
    assert program.environment["POOL"] == "10" and program.environment["API_KEY"] is None
    assert "s3cret" not in repr(program) and Path(program.folder).is_dir()
    assert listening_program("192.0.2.1", started.port) is None, "another machine"
    services.release()
    assert listening_program(started.host, started.port) is None


def test_equal_jobs_on_the_same_data_are_one_process(services):
    first = services.serve("base", [job()], DATABASE, {})
    assert services.serve("base#2", [job()], DATABASE, {}) == first
    other = services.serve("narrow", [job(environment=(("POOL", "1"),))], DATABASE, {})
    elsewhere = services.serve("base", [job()], Target("shop2", CONNECTION), {})
    assert len({first.port, other.port, elsewhere.port}) == 3
    services.release("shop")
    assert not listens(first.port)
    assert not listens(other.port)
    assert listens(elsewhere.port)


def test_services_that_begin_together_are_those_that_are_served(services):
    chain = [
        job(),
        ServiceJob("front", ("{python}", "service.py"), files={"service.py": ECHO}, after=("api",)),
    ]
    narrow = [job(environment=(("POOL", "1"),))]
    for label, jobs in (("base", chain), ("base#2", chain), ("narrow", narrow)):
        services.begin(label, jobs, DATABASE, {})
    assert len(services._running) == 2, "what needs another service waits for it"
    first, again = (services.serve(label, chain, DATABASE, {}) for label in ("base", "base#2"))
    other = services.serve("narrow", narrow, DATABASE, {})
    assert first == again
    assert all(listens(one.port) for one in (first, other))
    assert len(services._running) == 3


def test_a_service_that_began_and_ended_says_why_when_it_is_needed(services):
    broken = [job("import sys\nprint('no such table')\nsys.exit(3)")]
    services.begin("wide", broken, DATABASE, {})
    with pytest.raises(ServiceCrash, match=r"no such table\) before it was ready"):
        services.serve("wide", broken, DATABASE, {})


def test_a_service_that_ends_before_it_is_ready_says_why(services):
    text = "import sys\nprint('cannot reach', __import__('os').environ['DATABASE_URL'])\nsys.exit(3)"
    with pytest.raises(ServiceCrash) as crash:
        services.serve("wide", [job(text)], DATABASE, {})
    assert str(crash.value) == (
        "service api of wide ended (exit status 3: cannot reach ***) before it was ready"
    )


def test_a_service_that_never_gets_ready_says_what_it_was_asked(services):
    text = "import time\nprint('warming up', flush=True)\ntime.sleep(60)"
    with pytest.raises(ServiceCrash) as crash:
        services.serve("wide", [job(text, ready="/health", timeout_ns=SECONDS)], DATABASE, {})
    assert "was not ready within 1 s (GET /health: Connection refused: warming up)" in str(crash.value)
    services.release()
    assert not list(Path("/proc").glob("[0-9]*/cwd/warming"))


def test_a_service_that_is_ready_only_later_is_waited_for(services):
    text = "import time\ntime.sleep(0.7)\n" + ECHO
    assert get(services.serve("wide", [job(text, ready="/")], DATABASE, {}))["HOST"] == "127.0.0.1"


def test_a_missing_program_is_told(services):
    lost = ServiceJob("api", ("no-such-program",))
    assert services.lacking([lost], ["nginx-that-is-not-here"]) == (
        "the program nginx-that-is-not-here is not on the PATH; "
        "the program no-such-program, which service api starts, is not on the PATH"
    )
    assert services.lacking([lost], []) == (
        "the program no-such-program, which service api starts, is not on the PATH"
    )
    assert services.lacking([job()], ["python:no_such_module"]) == (
        "the Python module no_such_module is not installed: install the package that provides it into "
        f"{sys.executable}"
    )
    assert services.lacking([job()], ["python:psycopg"]) is None
    both = services.lacking([job()], ["python:no_module_a", "nginx-that-is-not-here", "python:no_module_b"])
    assert both == (
        "the Python modules no_module_a and no_module_b are not installed: install the packages that provide "
        f"them into {sys.executable}; the program nginx-that-is-not-here is not on the PATH"
    )
    with pytest.raises(ServiceCrash, match="cannot start no-such-program: No such file or directory"):
        services.serve("wide", [lost], DATABASE, {})


def test_a_service_that_died_is_told_once_and_then_started_anew(services):
    served = services.serve("wide", [job()], DATABASE, {})
    assert services.exit_reason(served) is None
    os.kill(served.pids[0], signal.SIGKILL)
    deadline = time.monotonic() + 5
    while services.exit_reason(served) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert services.exit_reason(served).startswith("service api of wide ended (signal SIGKILL: I know ***")
    with pytest.raises(ServiceCrash, match="signal SIGKILL"):
        services.serve("wide", [job()], DATABASE, {})
    assert listens(services.serve("wide", [job()], DATABASE, {}).port)


def test_a_trial_ends_with_the_service_that_it_loads(services):
    exits = ECHO.replace("        body =", "        os._exit(7)\n        body =")
    served = services.serve("wide", [job(exits)], DATABASE, {})
    server = HttpServer(served.host, served.port)
    load = HttpSpec(server=server, requests=(Request("all", "GET", "/"),), clients=4, operations=100)
    begun = time.monotonic()
    measured = run_trial(HttpTrial(DATABASE, served, load, warmup_operations=0, deadline_ns=60 * SECONDS))
    assert time.monotonic() - begun < 5, "a lost connection is opened again for 10 s while the service runs"
    assert (measured.outcome, measured.succeeded) == (Outcome.CONNECTION_LOST, 0)
    assert services.exit_reason(served).startswith("service api of wide ended (exit status 7")


def test_what_ignores_sigterm_is_killed_with_all_that_it_started(services, monkeypatch):
    monkeypatch.setattr(service_process, "END_S", 0.5)
    served = services.serve("wide", [job(STUBBORN)], DATABASE, {})
    folder = get(served)["FOLDER"]
    family = {*session_of(served.pids[0]), *service_process.of_folder(Path(folder))}
    assert len(family) == 3, "itself, a child, and one that left for a session of its own"
    services.release()
    assert not [pid for pid in family if Path(f"/proc/{pid}").exists() and _alive(pid)]
    assert not Path(folder).exists()


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_talkative_service_does_not_fill_the_disk(services, tmp_path, monkeypatch):
    monkeypatch.setattr(service_process, "LOG_BYTES", 10_000)
    text = "print(('x' * 99 + '\\n') * 50_000, flush=True)\n" + ECHO
    served = services.serve("wide", [job(text)], DATABASE, {})
    assert get(served)
    services.release()
    log = (tmp_path / "services" / "wide.api.log").read_bytes()
    assert 10_000 <= len(log) < 15_000
    assert log.endswith(b"(the rest of the output was not kept)\n")


def test_processor_time_is_that_of_all_processes(services):
    burn = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'for _ in range(10**8): pass'])\n"
    served = services.serve("wide", [job(burn + ECHO)], DATABASE, {})
    deadline = time.monotonic() + 20
    while sum(services.cpu_ns(served)) < 3e8 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert sum(services.cpu_ns(served)) >= 3e8
    services.release()
    assert session_of(served.pids[0]) == []


@pytest.mark.parametrize("with_reaper", [False, True], ids=["by the reaper", "by the next start"])
def test_services_of_a_killed_run_are_ended(tmp_path, with_reaper):
    program = (
        "import sys, time\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\n"
        "from integration.test_service_processes import *\n"
        f"served = LocalServices(Path({str(tmp_path)!r})).serve('wide', [job()], DATABASE, {{}})\n"
        "print(served.port, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        port = int(owner.stdout.readline())
        if with_reaper:
            kill_with_reaper(owner.pid)
        else:
            owner.kill()
    if with_reaper:
        assert listens(port)
        remove_leftover_services()
    deadline = time.monotonic() + 5
    while (listens(port) or any(servers_folder().glob("svc-*"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not listens(port)
    assert not list(servers_folder().glob("svc-*"))


def test_a_service_that_gets_http3_must_listen_on_udp(services):
    with pytest.raises(ServiceCrash, match=r"nothing listens on UDP port \d+, which HTTP/3 requires"):
        services.serve("a", [job(udp=True, timeout_ns=SECONDS)], DATABASE, {})
