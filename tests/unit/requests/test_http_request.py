"""What the words after `uncork load http` ask for, and how what is wrong with them is said."""

import shlex

import pytest
from typer.testing import CliRunner

from fakes.goldens import compare_answers
from uncork.cli.app import app
from uncork.cli.load import http as verbs
from uncork.cli.places import redacted_command
from uncork.errors import UsageError
from uncork.load.http import http_plan, without_secrets
from uncork.model.http import Checks, HttpServer, HttpSpec, Request, Variable, request_text
from uncork.model.load import Arrivals
from uncork.requests.http import read_http, sweep_of_http
from uncork.requests.http_options import HttpOptions
from uncork.requests.sweep import sweep_request

FILES = {
    "urls.txt": b"# a list\nhttp://h:8080/a\n/b?c=d\n\n",
    "other.txt": b"http://h/a\n/b\nhttp://other/b\n",
    "bad.txt": b"/a\nb\n",
    "empty.txt": b"\n",
    "body.bin": b"\x00\xff",
    "ids.txt": b"7\n8\n",
    "trace.txt": b"0\n0.5\n",
}


@pytest.fixture
def asked_for(monkeypatch):
    """Return what a command line asks for, unread and read, through the command line itself."""

    def read(words: str) -> tuple[HttpOptions, HttpSpec]:
        seen: list[HttpOptions] = []
        monkeypatch.setattr(verbs, "load_http", seen.append)
        done = CliRunner().invoke(app, ["load", "http", *shlex.split(words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output

        def read_file(name: str) -> bytes:
            if name not in FILES:
                raise UsageError(f'could not open file "{name}": No such file or directory')
            return FILES[name]

        return seen[0], read_http(seen[0], read=read_file, seed=9)

    return read


@pytest.fixture
def spec_of(asked_for):
    """Return the load that a command line asks for."""
    return lambda words: asked_for(words)[1]


@pytest.fixture
def sweep_of(asked_for):
    """Return the sweep that a command line asks for."""
    return lambda words: sweep_request(sweep_of_http(*asked_for(words)))


def test_one_address_is_sent_one_request(spec_of):
    spec = spec_of("http://h:8080/a?b=c")
    assert spec == HttpSpec(
        HttpServer("h", 8080), (Request("/a?b=c", "GET", "/a?b=c"),), seed=9, operations=1
    )
    assert spec.server.authority == "h:8080"
    assert HttpServer("h", 443, tls=True).authority == "h"
    assert HttpServer("::1", 80).authority == "[::1]"


def test_h2loads_words_mean_what_they_mean_there(spec_of):
    words = "-n 100 -c 10 -m 5 -t 2 --rps 3 -H 'X-A: b:c' -d body.bin https://h/"
    spec = spec_of(words)
    assert (spec.operations, spec.clients, spec.streams, spec.threads) == (100, 10, 5, 2)
    assert spec.arrivals == Arrivals("constant", 30.0), "h2load's rate is that of each client"
    assert spec.requests == (Request("/", "POST", "/", 1, (("X-A", "b:c"),), b"\x00\xff"),)
    assert spec.version == "negotiated"
    assert spec_of("--h1 https://h/").version == "1.1"
    assert spec_of("http://h/").version == "1.1"
    assert spec_of("-p h2c http://h/").version == spec_of("--h2 http://h/").version == "2"
    assert spec_of("--h3 https://h/").version == spec_of("--http3 https://h/").version == "3"
    timed = spec_of("-D 1m --warm-up-time 500ms http://h/")
    assert (timed.duration_ns, timed.warmup_ns, timed.operations) == (60 * 10**9, 5 * 10**8, None)


def test_addresses_come_with_weights_and_from_files(spec_of):
    spec = spec_of("http://h/a@3 http://h/b@home /c")
    assert [(one.name, one.weight) for one in spec.requests] == [("/a", 3), ("/b@home", 1), ("/c", 1)]
    spec = spec_of("-i urls.txt")
    assert spec.server == HttpServer("h", 8080)
    assert spec.requests == (Request("urls.txt", "GET", "{url}"),)
    assert spec.variables == (Variable("url", values=("/a", "/b?c=d"), in_turn=True),)


def test_variables_and_checks(spec_of):
    spec = spec_of(
        "--var id=1..9 --var w=+a,b --var f=@ids.txt --expect-status 200,204 --expect-header 'X: y' "
        "--expect-header Z --expect-size 5 --expect-json /a/0=7 --expect-json /b=word http://h/{id}"
    )
    assert spec.variables == (
        Variable("id", 1, 9),
        Variable("w", values=("a", "b"), in_turn=True),
        Variable("f", values=("7", "8")),
    )
    assert spec.requests[0].checks == Checks(
        (200, 204), (("X", "y"), ("Z", None)), 5, None, (("/a/0", 7), ("/b", "word"))
    )


def test_timeouts_and_arrivals(spec_of):
    assert spec_of("http://h/").request_timeout_ns == 30 * 10**9
    assert spec_of("--timeout 0 http://h/").request_timeout_ns is None
    assert spec_of("--timeout 1.5 http://h/").request_timeout_ns == 1_500_000_000
    assert spec_of("-L 20 -R 5 http://h/").latency_limit_ns == 20_000_000
    trace = spec_of("--arrivals trace:trace.txt http://h/")
    assert trace.arrivals == Arrivals("trace", offsets_ns=(0, 500_000_000))
    assert http_plan(trace)["stop"] == {"operations": 2}
    assert spec_of("-R 5 --arrivals bursts:4 http://h/").arrivals == Arrivals("bursts", 5.0, 4)


def refusal(read, words):
    with pytest.raises(UsageError) as error:
        read(words)
    assert "secret" not in str(error.value)
    return str(error.value)


def test_what_is_wrong_is_said(spec_of):
    compare_answers("requests/http_words", lambda words: refusal(spec_of, words))


def test_secret_headers_are_not_kept(spec_of):
    spec = spec_of("-H 'Authorization: Bearer hush' -H 'X-B: c' -H 'Cookie: hush' http://h/")
    assert "hush" in str(http_plan(spec))
    stored = without_secrets(http_plan(spec))
    assert "hush" not in str(stored)
    assert "X-B: c" in request_text(stored["scripts"][0]["request"])
    words = ["load", "http", "-H", "Authorization: Bearer hush", "-Hcookie:hush", "--header=X-API-Key: hush"]
    assert "hush" not in redacted_command(words)
    assert redacted_command(["load", "http", "-H", "X-B: c"]) == "uncork load http -H 'X-B: c'"


def test_a_sweep_begins_where_the_load_is_and_ends_somewhere(sweep_of, spec_of):
    assert sweep_of("http://h/") is None
    wanted = sweep_of("--sweep clients -c 4 -D 500ms --objective p99<9ms http://h/")
    assert (wanted.spec.axis, wanted.start, wanted.spec.end) == ("clients", 4.0, 512.0)
    assert (wanted.spec.step_ns, wanted.spec.objectives[0].text) == (5 * 10**8, "p99 < 9ms")
    wanted = sweep_of("--sweep streams --h2 -m 2 --to 32 http://h/")
    assert (wanted.spec.axis, wanted.start, wanted.spec.end, wanted.spec.step_ns) == (
        "streams",
        2,
        32,
        2 * 10**9,
    )
    assert sweep_of("--sweep rate http://h/").start is None, "a short closed loop finds it"
    assert sweep_of("--sweep rate -R 50 http://h/").start == 50
    assert spec_of("--sweep rate http://h/").max_clients == 64, "or it could send one at a time only"


def test_what_cannot_be_swept_is_refused(sweep_of):
    compare_answers("requests/http_sweeps", lambda words: refusal(sweep_of, words))


def test_processes_are_numbers(asked_for):
    assert asked_for("--service-pid 7 --service-pid 8 http://h/")[0].service_pid == [7, 8]
    with pytest.raises(UsageError, match="--service-pid"):
        asked_for("--service-pid nginx http://h/")
