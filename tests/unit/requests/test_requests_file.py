"""What a requests file describes, and how its mistakes are reported."""

from pathlib import Path

import pytest

from fakes.goldens import compare_mistakes
from uncork.errors import SpecError, UsageError
from uncork.load.again import http_spec_of
from uncork.load.http import check_http, http_plan, without_secrets
from uncork.model.http import Capture, Checks, HttpServer, HttpSpec, Request, Variable
from uncork.requests.http import read_http
from uncork.requests.http_options import HttpOptions

SHOP = """\
base_url = "http://h:8080/api"
headers = { Authorization = "Bearer {token}", Accept = "*/*" }

[variables]
id = "1..200000"
color = { values = ["red", 7], order = "sequential" }
user = { file = "users.csv", per = "client" }
word = { file = "words.txt" }
pair = { rows = [{ a = "1", b = "x" }, { a = "2", b = "y" }] }

[[login]]
name = "log in"
url = "/login"
json = { user = "{user.name}", password = "${SHOP_WORD}" }
capture = { token = { json = "/token" }, csrf = { header = "X-Csrf" } }

[[login]]
path = "/start?color={color}"
capture = { page = { regex = 'id="(\\d+)"', default = "1" } }

[[requests]]
name = "read"
url = "/items/{id}"
weight = 8
checks.status = [200, 304]
checks.json = { "/id" = "{id}" }
checks.exists = "/price"
checks.contains = "a"
checks.headers = { ETag = true }

[[requests]]
url = "/items"
json = '{"id": {id}, "word": "{word}", "of": "{pair.a}{pair.b}"}'

[[requests]]
method = "PUT"
url = "http://h:8080/other?page={page}"
form = { "a b" = "x&{word}", n = 5 }
headers = { Authorization = "none" }
"""
FILES = {
    "/r/users.csv": "name,password\nann,secret1\nbob,secret2\n",
    "/r/words.txt": "a\nb\n\n",
    "/r/bare.csv": "name\n",
    "/r/ragged.csv": "a,b\n1\n",
}
ENVIRONMENT = {"SHOP_WORD": "hunter2"}


def read(text: str, **options: object) -> HttpSpec:
    def read_file(name: str) -> bytes:
        if name not in FILES and name != "/r/shop.toml":
            raise UsageError(f'could not open file "{name}": No such file or directory')
        return (text if name == "/r/shop.toml" else FILES[name]).encode()

    asked = HttpOptions(**{"urls": None, "requests_file": Path("/r/shop.toml"), **options})
    return read_http(asked, read=read_file, seed=1, environment=ENVIRONMENT)


def test_a_file_describes_logins_requests_and_values():
    spec = read(SHOP)
    assert spec.server == HttpServer("h", 8080)
    assert (spec.cookies, spec.in_order, spec.environment) == (True, False, (("SHOP_WORD", "hunter2"),))
    assert spec.variables == (
        Variable("id", 1, 200000),
        Variable("color", values=("red", "7"), in_turn=True),
        Variable("user.name", values=("ann", "bob"), per_client=True, group=2),
        Variable("user.password", values=("secret1", "secret2"), per_client=True, group=2),
        Variable("word", values=("a", "b")),
        Variable("pair.a", values=("1", "2"), group=4),
        Variable("pair.b", values=("x", "y"), group=4),
    )
    accept, token = ("Accept", "*/*"), ("Authorization", "Bearer {token}")
    json_type = ("Content-Type", "application/json")
    log_in, start = spec.login
    assert log_in == Request(
        "log in",
        "POST",
        "/api/login",
        headers=(accept, json_type),
        body=b'{"user": "{user.name}", "password": "${SHOP_WORD}"}',
        body_kind="json",
        captures=(Capture("token", "json", "/token"), Capture("csrf", "header", "X-Csrf")),
    ), "a token is not sent before it is captured"
    assert (start.name, start.path, start.headers) == (
        "GET /start?color={color}",
        "/api/start?color={color}",
        (token, accept),
    )
    assert start.captures == (Capture("page", "regex", r'id="(\d+)"', "1"),)
    items, post, put = spec.requests
    assert items == Request(
        "read",
        "GET",
        "/api/items/{id}",
        8,
        (token, accept),
        checks=Checks(
            statuses=(200, 304),
            headers=(("ETag", None),),
            json=(("/id", "{id}"),),
            exists=("/price",),
            contains=("a",),
        ),
    )
    assert (post.name, post.method, post.body_kind) == ("POST /items", "POST", "json")
    assert post.body == b'{"id": {id}, "word": "{word}", "of": "{pair.a}{pair.b}"}'
    assert (put.path, put.body, put.body_kind) == ("/other?page={page}", b"a+b=x%26{word}&n=5", "form")
    assert ("Authorization", "none") in put.headers
    assert token not in put.headers
    check_http(spec)


def test_the_command_line_replaces_the_server_and_adds_to_the_file():
    spec = read(
        SHOP.replace("http://h:8080/other", "/other"),
        urls=["http://other/v2"],
        header=[("X-Run", "1"), ("Accept", "a/b")],
        var=[("id", "5..6")],
        expect_status=(201,),
    )
    assert (spec.server, spec.requests[0].path) == (HttpServer("other", 80), "/v2/items/{id}")
    assert spec.requests[1].headers[:2] == (("X-Run", "1"), ("Accept", "a/b"))
    assert spec.variables[0] == Variable("id", 5, 6)
    assert [one.checks.statuses for one in spec.requests] == [(200, 304), (201,), (201,)]
    assert read("order = 'sequential'\ncookies = false\n" + SHOP).in_order
    positional = HttpOptions(urls=["/r/shop.toml"])
    same = read_http(positional, read=lambda _: b'requests = ["http://h/a"]', seed=1)
    assert same.requests == (Request("GET http://h/a", "GET", "/a"),)


def test_a_stored_plan_repeats_the_load_and_holds_no_secret():
    spec = read(SHOP.replace("per = 'client'", ""))
    stored = without_secrets(http_plan(spec))
    text = str(stored)
    assert "hunter2" not in text
    assert "secret1" not in text
    assert "Bearer {token}" in text, "names are no secret"
    assert "'none'" not in text, "the value of a secret header may be one"
    with pytest.raises(UsageError, match=r"user\.password} are secret"):
        http_spec_of(stored, [("Authorization", "x")], ENVIRONMENT)
    plain = SHOP.replace('user = { file = "users.csv", per = "client" }', 'user = ["a"]')
    plain = plain.replace("{user.name}", "{user}").replace('headers = { Authorization = "none" }\n', "")
    spec = read(plain)
    stored = without_secrets(http_plan(spec))
    assert http_spec_of(stored, (), ENVIRONMENT) == spec
    with pytest.raises(UsageError, match="environment variable SHOP_WORD"):
        http_spec_of(stored)
    literal = without_secrets(http_plan(read(plain.replace("${SHOP_WORD}", "hunter2"))))
    assert "hunter2" not in str(literal)
    with pytest.raises(UsageError, match='"log in" has a secret'):
        http_spec_of(literal)


def test_mistakes_are_reported_with_line_and_key():
    compare_mistakes("requests/file_mistakes", SHOP, read, 1)


def test_a_step_of_the_login_needs_what_earlier_steps_capture():
    with pytest.raises(
        SpecError, match=r"login\.0: uses {token}, which no earlier step of the login captures"
    ):
        read(SHOP.replace('url = "/login"', 'url = "/login/{token}"'))


@pytest.mark.parametrize(("options", "message"), [
    ({"method": "PUT"}, "-X/--method describes one request"),
    ({"body": "x"}, "--body describes one request"),
    ({"urls": ["http://a/", "http://b/"]}, "at most one address"),
    ({"urls": ["b.toml"]}, "a load has one requests file"),
])  # fmt: skip
def test_options_that_contradict_a_file_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        read(SHOP, **options)
    with pytest.raises(UsageError, match="does not name a server"):
        read("requests = ['/a']")
