"""Attacks on the dashboard: each is refused, and none writes, reads or runs what it should not."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import quote, urlencode

import pytest

from fakes.dashboards import copy_run, dashboard, make_load
from uncork.engines.process import identity
from uncork.store.layout import read_manifest, write_manifest

pytestmark = pytest.mark.xdist_group("serve attacks")

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
TOKEN = "a-token-of-thirty-two-characters"
SCRIPT = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{ 7 * 7 }}'
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    run = make_load(folder / "runs")
    copy_run(
        run,
        1,
        question=SCRIPT,
        server=SCRIPT,
        name=SCRIPT,
        case=SCRIPT,
        options={"command": SCRIPT},
        id="evil-1",
    )
    plan = folder / "runs" / "evil-1" / "plan.json"
    plan.write_text(
        plan.read_text().replace("http://127.0.0.1", "http://127.0.0.1/<script>alert(3)</script>")
    )
    copy_run(run, 2, id="a b<i>&'\"-20260101-100000")
    (folder / "secret.txt").write_text("the secret")
    (folder / "runs" / "secret.json").write_text("the secret")
    return folder / "runs"


@pytest.fixture(scope="module")
def served(root):
    with dashboard(root) as found:
        yield found


@pytest.fixture(scope="module")
def locked(root, tmp_path_factory):
    path = tmp_path_factory.mktemp("token") / "token"
    path.write_text(f"{TOKEN}\n")
    with dashboard(root, "--host", "0.0.0.0", "--token-file", path, "--name", "bench.example.org") as found:
        yield found


def files(root):
    return sorted((path, path.stat().st_mtime_ns) for path in root.rglob("*"))


class Tags(HTMLParser):
    """Collects the tags of a page, with their attributes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


# ---- paths ----


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../../secret.txt",
        "/runs/..%2f..%2fsecret.txt",
        "/runs/%2e%2e/%2e%2e/secret.txt",
        "/runs/..",
        "/runs/%2e%2e",
        "/runs/.",
        "/runs/%2fetc%2fpasswd",
        "/runs//etc/passwd",
        "/runs/evil-1%00/details",
        "/runs/evil-1/../../secret.txt",
        "/runs/secret.json",
        "/runs/.catalogue.json",
        "/runs/evil-1%2fmanifest.json",
        "/runs/evil-1/manifest.json",
        "/runs/evil-1/exports/..%2f1.svg",
        "/runs/evil-1/exports/-1.csv",
        "/runs/evil-1/exports/1.exe",
        "/runs/evil-1/exports/999999999999999999999.csv",
        "/static/..%2f__init__.py",
        "/static/../server.py",
        "/static/%2e%2e%2fserver.py",
        "/cases/..%2f..%2ferrors.py",
        "/cases/%2e%2e",
        "/compare?run=../secret.txt&run=evil-1",
        "/nothing",
        "/%ff%fe",
    ],
)
def test_no_path_leads_out_of_what_is_served(served, path):
    answer = served.ask(path)
    assert answer.status in (400, 404)
    assert "the secret" not in answer.text and "root:" not in answer.text
    assert "Traceback" not in answer.text


# ---- script, SQL and log text ----


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/rows",
        "/rows?have=none",
        f"/rows?q={quote(SCRIPT)}&have={quote(SCRIPT)}",
        "/runs/evil-1",
        "/runs/evil-1/details",
        "/runs/evil-1/live",
        "/cases",
        "/metrics",
        "/compare?run=evil-1&run=evil-1",
        f"/runs/{quote(SCRIPT)}",
        f"/?case={quote(SCRIPT)}",
        f"/?q={quote(SCRIPT)}",
        f"/?page={quote(SCRIPT)}",
        f"/?tag={quote(SCRIPT)}",
        "/?kind=%27%20OR%201%3D1%3B%20DROP%20TABLE%20runs%20--",
    ],
)
def test_text_of_runs_and_addresses_stays_text(served, path):
    answer = served.ask(path, headers={"Accept": "text/html"})
    assert answer.status in (200, 303, 400, 404)
    assert "<script>alert" not in answer.text and "<img src=x" not in answer.text
    assert "49" not in re.sub(r"\d{3,}|[\d.]+", "", answer.text)


def test_a_report_with_script_in_its_name_runs_only_its_own(served):
    answer = served.ask("/runs/evil-1")
    assert answer.status == 200 and "&lt;script&gt;alert(1)" in answer.text
    policy = answer.headers["content-security-policy"]
    assert re.search(r"script-src 'sha256-[^']+';", policy) and "script-src 'unsafe" not in policy
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("path", ["/", "/cases", "/runs/evil-1/details", "/nothing"])
def test_pages_run_no_script_but_files_of_ours(served, path):
    answer = served.ask(path)
    policy = dict(
        part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'" and policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["form-action"] == "'self'" and policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    tags = Tags()
    tags.feed(answer.text)
    assert "style" not in {name for name, _ in tags.found}
    assert all(
        attributes["src"].startswith("/static/") for name, attributes in tags.found if name == "script"
    )
    assert not [
        name for _, attributes in tags.found for name in attributes if name.startswith(("on", "style"))
    ]


def test_an_odd_id_is_found_through_its_link(served):
    text = served.ask("/").text
    link = re.search(r'href="(/runs/a%20b[^"]+)"', text)[1]
    assert served.ask(f"{link}/details").status == 200
    export = served.ask(f"{link}/exports/1.csv")
    assert export.status == 200
    assert export.headers["content-disposition"] == 'attachment; filename="a_b_i____-20260101-100000-1.csv"'


def test_figures_for_prometheus_keep_to_their_lines(root):
    with dashboard(root) as found:
        broken = root / "evil-1" / "manifest.json"
        before = broken.read_text()
        broken.write_text(json.dumps({**json.loads(before), "kind": 'a"} 1\nuncork_evil 1\n'}))
        try:
            text = found.ask("/metrics").text
            found.ask("/runs/evil-1?x")  # it is read again
        finally:
            broken.write_text(before)
        assert not re.search(r"^uncork_evil", text, re.MULTILINE)


def test_what_another_site_asks_for_is_not_packed_so_that_its_size_tells_nothing(served):
    for path in ("/?q=evil", "/rows?q=evil"):
        packed = {"Accept-Encoding": "gzip, br", "Sec-Fetch-Site": "same-origin"}
        assert served.ask(path, headers=packed).headers["content-encoding"] == "gzip"
        answer = served.ask(path, headers={**packed, "Sec-Fetch-Site": "cross-site"})
        assert answer.headers["content-encoding"] is None and "evil-1" in answer.text


# ---- sizes ----


@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("/?q=" + "a" * 5_000, {}, None, 414),
        ("/" + "a" * 5_000, {}, None, 414),
        ("/" + "a" * 60_000, {}, None, 414),
        ("/", {"X-Long": "a" * 60_000}, None, 431),
        ("/runs/evil-1/tags", FORM, b"a" * 20_000, 413),
        ("/runs/evil-1/tags", {**FORM, "Content-Length": "99999999999999"}, b"a", 413),
        ("/runs/evil-1/tags", {**FORM, "Content-Length": "-5"}, b"a", 400),
        ("/runs/evil-1/tags", {**FORM, "Content-Length": "ten"}, b"a", 400),
    ],
)
def test_what_is_too_large_is_refused(served, path, headers, body, status):
    before = files(served.root)
    assert served.ask(path, method="POST" if body else "GET", headers=headers, body=body).status == status
    assert files(served.root) == before


def test_a_body_without_length_is_cut_off(served):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("POST", "/runs/evil-1/tags", iter([b"a" * 10_000] * 50), FORM, encode_chunked=True)
    assert connection.getresponse().status in (400, 403, 413)
    connection.close()
    assert served.ask("/").status == 200


def test_many_fields_are_refused(served):
    body = urlencode([(f"f{number}", "") for number in range(500)])
    assert served.ask("/runs/evil-1/tags", method="POST", headers=FORM, body=body).status == 403


def test_bytes_that_are_no_request_are_refused(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as it:
        it.sendall(b"\x16\x03\x01\x00\xff no request \r\n\r\n")
        assert b" 400 " in it.recv(200)
    assert served.ask("/").status == 200


# ---- other sites, other names ----


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "",
        "a@localhost",
        "[::1",
        "127.0.0.1:99999999",
        "a b",
    ],
)
def test_a_name_that_is_not_ours_is_refused(served, host):
    assert served.ask("/", headers={"Host": host}).status in (400, 421)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "[::1]:80", "LOCALHOST:1", "10.1.2.3", "localhost."]
)
def test_addresses_and_our_names_are_known(served, host):
    assert served.ask("/", headers={"Host": host}).status == 200


def form_of(served, headers=None):
    """Open a page with a form; return its key and the cookies that came with it."""
    answer = served.ask("/runs/evil-1/details", headers=headers)
    return re.search(r'name="key" value="(\w+)"', answer.text)[1], answer.cookies()


def test_a_form_of_ours_sets_a_tag_and_takes_it_away(served):
    key, cookies = form_of(served)
    headers = {
        **FORM,
        "Cookie": cookies,
        "Origin": served.address.rstrip("/"),
        "Sec-Fetch-Site": "same-origin",
    }
    answer = served.ask(
        "/runs/evil-1/tags", method="POST", headers=headers, body=urlencode({"key": key, "add": "kept"})
    )
    assert (answer.status, answer.headers["location"]) == (303, "/runs/evil-1/details#tags")
    assert (served.root / "evil-1" / "tag.kept").is_file()
    assert "kept" in served.ask("/?tag=kept").text
    body = urlencode({"key": key, "remove": "kept"})
    assert served.ask("/runs/evil-1/tags", method="POST", headers=headers, body=body).status == 303
    assert not (served.root / "evil-1" / "tag.kept").exists()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_sent_by_another_site_is_refused(served, headers):
    before = files(served.root)
    key, cookies = form_of(served)
    answer = served.ask(
        "/runs/evil-1/tags",
        method="POST",
        headers={**FORM, "Cookie": cookies, **headers},
        body=urlencode({"key": key, "add": "evil"}),
    )
    assert answer.status == 403 and files(served.root) == before


@pytest.mark.parametrize(
    "what", ["no key", "wrong key", "key of another", "no cookie", "multipart", "json", "get", "put"]
)
def test_a_form_without_its_key_is_refused(served, what):
    before = files(served.root)
    key, cookies = form_of(served)
    other, _ = form_of(served)
    headers, method = {**FORM, "Cookie": cookies}, "POST"
    values = {"key": key, "add": "evil"}
    if what == "no key":
        del values["key"]
    elif what == "wrong key":
        values["key"] = "0" * 64
    elif what == "key of another":
        values["key"] = other
    elif what == "no cookie":
        del headers["Cookie"]
    elif what in ("multipart", "json"):
        headers["Content-Type"] = (
            "multipart/form-data; boundary=x" if what == "multipart" else "application/json"
        )
    else:
        method = what.upper()
    path = "/runs/evil-1/tags" + (f"?{urlencode(values)}" if what == "get" else "")
    answer = served.ask(path, method=method, headers=headers, body=urlencode(values))
    assert answer.status in (403, 405) and files(served.root) == before


@pytest.mark.parametrize("tag", ["../evil", "a/b", ".evil", "<b>", "a" * 64, "\x00", "ä"])
def test_what_is_no_tag_is_refused(served, tag):
    before = files(served.root)
    key, cookies = form_of(served)
    for field in ("add", "remove"):
        body = urlencode({"key": key, field: tag})
        answer = served.ask(
            "/runs/evil-1/tags", method="POST", headers={**FORM, "Cookie": cookies}, body=body
        )
        assert answer.status == 400 and "is not a valid tag" in answer.text
    assert files(served.root) == before


# ---- tokens ----


def test_whoever_is_not_on_this_machine_needs_a_token(root):
    command = [
        sys.executable,
        "-m",
        "uncork",
        "serve",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--runs",
        str(root),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "--token-file" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "path",
    ["/", "/rows", "/first", "/runs/evil-1", "/runs/evil-1/events", "/metrics", "/cases", "/nothing"],
)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Bearer "},
        {"Cookie": "uncork-{port}=0"},
        {"Cookie": f"uncork-{{port}}={TOKEN}"},
    ],
)
def test_nothing_is_told_without_the_token(locked, path, headers):
    sent = {name: value.format(port=locked.port) for name, value in headers.items()}
    answer = locked.ask(path, headers=sent)
    assert answer.status == 401 and "evil-1" not in answer.text and "load" not in answer.text


def test_whoever_knows_the_token_is_let_in(locked):
    assert locked.ask("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
    first = locked.ask("/runs/evil-1/details", headers={"Accept": "text/html"})
    assert (first.status, first.headers["location"]) == (303, "/sign-in?to=%2Fruns%2Fevil-1%2Fdetails")
    asked = locked.ask(first.headers["location"])
    key, cookies = re.search(r'name="key" value="(\w+)"', asked.text)[1], asked.cookies()
    values = {"key": key, "to": "/runs/evil-1/details"}
    headers = {**FORM, "Cookie": cookies}
    wrong = locked.ask(
        "/sign-in", method="POST", headers=headers, body=urlencode({**values, "token": "x" * 32})
    )
    assert wrong.status == 401 and not wrong.cookies() and "The token is wrong" in wrong.text
    right = locked.ask("/sign-in", method="POST", headers=headers, body=urlencode({**values, "token": TOKEN}))
    assert (right.status, right.headers["location"]) == (303, "/runs/evil-1/details")
    assert "HttpOnly" in right.headers["set-cookie"] and TOKEN not in right.headers["set-cookie"]
    page = locked.ask("/runs/evil-1/details", headers={"Cookie": right.cookies(), "Accept": "text/html"})
    assert page.status == 200 and TOKEN not in page.text


@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\n/x"]
)
def test_signing_in_leads_nowhere_else(locked, to):
    asked = locked.ask("/sign-in?" + urlencode({"to": to}))
    key = re.search(r'name="key" value="(\w+)"', asked.text)[1]
    body = urlencode({"key": key, "to": to, "token": TOKEN})
    answer = locked.ask("/sign-in", method="POST", headers={**FORM, "Cookie": asked.cookies()}, body=body)
    assert (answer.status, answer.headers["location"]) == (303, "/")


def test_the_name_given_is_known_and_others_are_not(locked):
    known = {"Authorization": f"Bearer {TOKEN}"}
    assert locked.ask("/", headers={**known, "Host": "bench.example.org"}).status == 200
    assert locked.ask("/", headers={**known, "Host": "evil.example"}).status == 421


def test_a_short_token_is_refused(root):
    command = [sys.executable, "-m", "uncork", "serve", "--port", "0", "--runs", str(root)]
    environment = {**os.environ, "UNCORK_TOKEN": "short"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 1 and "at least 16 characters" in done.stderr


pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


def test_a_stream_ends_with_the_dashboard_and_no_traceback_is_left(tmp_path):
    run = make_load(tmp_path)
    write_manifest(run, replace(read_manifest(run), status="running", owner=identity(os.getpid())))
    with dashboard(tmp_path) as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        connection.request("GET", f"/runs/{run.name}/events")
        answer = connection.getresponse()
        assert answer.status == 200 and answer.readline().startswith(b"event: ")
    answer.read()  # it ends as answers do, not broken off
    connection.close()
