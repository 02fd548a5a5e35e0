"""What the words after `uncork load http` ask for, and how what is wrong with them is said."""

import re
import shlex

import pytest
from typer.testing import CliRunner

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


@pytest.mark.parametrize(("words", "message"), [
    ("", "no address is given"),
    ("h:8080/a", '"h:8080/a" has no scheme; write http://h:8080/a'),
    ("127.0.0.1:8080", '"127.0.0.1:8080" has no scheme; write http://127.0.0.1:8080/'),
    ("localhost", '"localhost" has no scheme; write http://localhost/'),
    ("u:secret@h:80/a", '"h:80/a" has no scheme; write http://h:80/a'),
    ("/a", "names no server; write http://HOST:PORT/a"),
    ("ftp://h/", 'found "ftp://"'),
    ("http:///a", "names no host"),
    ("http://h:99999/", "port must be a number"),
    ("http://u:secret@h/", "leave out user and password"),
    ("http://h/a http://other/b", "a load goes to one server"),
    ("-i other.txt", "a load goes to one server"),
    ("-i bad.txt", 'bad.txt:2: invalid address "b"'),
    ("-i empty.txt", "empty.txt contains no addresses"),
    ("-i nowhere.txt", 'could not open file "nowhere.txt"'),
    ("http://h/a http://h/a", "given twice"),
    ("http://h/a@0", "no address has a weight above 0"),
    ("-k http://h/", "use https://"),
    ("--var x http://h/", "write NAME=1..1000"),
    ("--var x=9..1 http://h/", "9 is above 1"),
    ("--var x=1..2 --var x=a,b http://h/", "variable x is given twice"),
    ("-H nothing http://h/", "write -H 'NAME: VALUE'"),
    ("-d body.bin --body x http://h/", "both give a body"),
    ("--expect-status 99 http://h/", "--expect-status must be in range"),
    ("--expect-sha256 abc http://h/", "64 hexadecimal digits"),
    ("--expect-json a=1 http://h/", "write /POINTER=VALUE"),
    ("--h1 --h2 http://h/", "several versions of HTTP"),
    ("--h2 --h3 https://h/", "several versions of HTTP"),
    ("--h3 http://h/", "write https:// instead"),
    ("-p spdy http://h/", "expecting h2c or http/1.1"),
    ("--on-close cry http://h/", "expecting reconnect or stop"),
    ("-C -m 2 http://h/", "leave out -m"),
    ("-n 5 -D 1 http://h/", "not both"),
    ("-n 5 -c 6 http://h/", "-n 5 is below the 6 connections"),
    ("-c 0 http://h/", "-c/--clients must be in range"),
    ("-c many http://h/", "expecting a whole number"),
    ("-D soon http://h/", "expected a time with a unit"),
    ("-D 0 http://h/", "-D/--duration must be above 0"),
    ("--rps 0 http://h/", "--rps must be above 0"),
    ("--rps 1 -R 1 http://h/", "leave one out"),
    ("--arrivals poisson http://h/", "needs a rate"),
    ("--arrivals weekly -R 1 http://h/", "invalid arrivals"),
    ("--max-clients 5 http://h/", "requires an open loop"),
    ("--json --go-bench http://h/", "choose one"),
    ("--advise http://h/", "--advise requires --postgres CONNINFO"),
])  # fmt: skip
def test_what_is_wrong_is_said(spec_of, words, message):
    with pytest.raises(UsageError) as error:
        spec_of(words)
    assert message in str(error.value)
    assert "secret" not in str(error.value)


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


@pytest.mark.parametrize(("words", "said"), [
    ("--sweep threads http://h/", "expecting clients, rate or streams"),
    ("--sweep clients -n 5 http://h/", "-n/--requests cannot be combined with --sweep clients"),
    ("--sweep clients -R 5 http://h/", "-R/--rate cannot be combined with --sweep clients"),
    ("--sweep streams -C http://h/", "-C/--connect cannot be combined with --sweep streams"),
    ("--sweep rate --rps 5 http://h/", "--rps cannot be combined with --sweep rate"),
    ("--sweep streams --to 2.5 http://h/", "give a whole number"),
    ("--sweep clients -D 1ms http://h/", "-D: a load step must last at least 200 ms"),
    ("--budget 5s http://h/", "add --sweep clients or --sweep rate or --sweep streams"),
])  # fmt: skip
def test_what_cannot_be_swept_is_refused(sweep_of, words, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        sweep_of(words)


def test_processes_are_numbers(asked_for):
    assert asked_for("--service-pid 7 --service-pid 8 http://h/")[0].service_pid == [7, 8]
    with pytest.raises(UsageError, match="--service-pid"):
        asked_for("--service-pid nginx http://h/")
