"""Recorded traffic becomes a requests file without static files and without secrets."""

import json
from pathlib import Path

import pytest

from fakes.goldens import compare
from uncork.errors import UsageError
from uncork.load.http import check_http
from uncork.requests.http import read_http
from uncork.requests.http_files.har import convert_har
from uncork.requests.http_options import HttpOptions

UUID = "3f2b8a56-1c2d-4e5f-8a9b-0c1d2e3f4a5b"


def entry(
    method: str, url: str, *, body: object = None, status: int = 200, mime: str = "application/json", **more
):
    request = {
        "method": method,
        "url": url if "://" in url else f"https://shop.example{url}",
        "headers": [
            {"name": ":method", "value": method},
            {"name": "User-Agent", "value": "Firefox"},
            {"name": "Accept", "value": "application/json"},
            {"name": "Authorization", "value": "Bearer eyJsecret"},
            {"name": "Cookie", "value": "sid=verysecret"},
            *more.get("headers", ()),
        ],
    }
    if body is not None:
        posted = body if isinstance(body, str) else json.dumps(body)
        kind = "application/x-www-form-urlencoded" if isinstance(body, str) else "application/json"
        request["postData"] = {"mimeType": f"{kind}; charset=utf-8", "text": posted}
    found = {"request": request, "response": {"status": status, "content": {"mimeType": mime}}}
    return {**found, **({"_resourceType": more["resource"]} if "resource" in more else {})}


TRAFFIC = [
    entry("GET", "/", mime="text/html", resource="document"),
    entry("GET", "/app.js", mime="text/javascript"),
    entry("GET", "/logo", mime="image/png"),
    entry("GET", "/style", mime="text/html", resource="stylesheet"),
    entry("GET", "https://cdn.example/data"),
    entry("OPTIONS", "/accounts/1"),
    entry("GET", "/accounts/17"),
    entry("GET", "/accounts/18", status=304),
    entry("GET", "/accounts/18"),
    entry("GET", f"/users/5/orders/{UUID}?page=1&lang=en&access_token=verysecret"),
    entry("GET", f"/users/6/orders/{UUID}?page=2&lang=en&access_token=verysecret"),
    entry("POST", "/transfers",
          body={"from": 1, "to": "a{b}", "note": "x", "password": "verysecret"}, status=201),
    entry("POST", "/transfers",
          body={"from": 2, "to": "a{b}", "note": "it's", "password": "verysecret"}, status=201),
    entry("POST", "/login", body="user=ann&password=verysecret&next=%2F"),
]  # fmt: skip


def har(entries) -> str:
    return json.dumps({"log": {"version": "1.2", "entries": entries}})


def read(entries):
    text = har(entries)
    names = ("TOKEN", "COOKIE", "ACCESS_TOKEN", "PASSWORD")
    return read_http(
        HttpOptions(urls=["t.har"]),
        read=lambda _: text.encode(),
        seed=1,
        environment=dict.fromkeys(names, "given"),
    )


def test_traffic_becomes_a_requests_file_word_for_word():
    """UNCORK_BLESS=1 rewrites the file; read the difference first. It holds no secret."""
    found = convert_har("t.har", har(TRAFFIC))
    assert "verysecret" not in found.text and "eyJsecret" not in found.text
    assert found.notes == (
        "left out 3 static files, 1 preflight request",
        "left out 1 request to other servers: https://cdn.example",
    )
    compare(Path(__file__).parents[2] / "golden" / "requests" / "har.toml", found.text)


def test_the_requests_file_of_traffic_is_sent_as_it_is():
    spec = read(TRAFFIC)
    check_http(spec)
    assert spec.server.place == "https://shop.example"
    assert {one.name: one.weight for one in spec.requests} == {
        **{"GET /": 1, "GET /accounts/{account_id}": 3, "GET /users/{user_id}/orders/{order_id}": 2},
        **{"POST /transfers": 2, "POST /login": 1},
    }
    groups = {one.name: one.group for one in spec.variables if one.name.startswith("get_users_orders.")}
    assert len(groups) == 3 and len(set(groups.values())) == 1, "the values of one request stay together"
    bodies = {one.name: one.body for one in spec.requests}
    assert bodies["POST /login"] == b"user=ann&password=${PASSWORD}&next=%2F"
    assert bodies["POST /transfers"] == (
        b'{"from": {post_transfers.from}, "to": "a{{b}", "note": "{post_transfers.note}", '
        b'"password": "${PASSWORD}"}'
    )


@pytest.mark.parametrize(("text", "message"), [
    ("{", "t.har is neither TOML nor a HAR file"),
    ('{"a": 1}', 'it has no "log" with "entries"'),
    (har([{"response": {}}]), r"log.entries\[0\] is not as HAR 1.2 requires"),
    (har([entry("GET", "/a.css")]), "t.har has no request to send: 1 static file"),
    (har([]), "it has no entries"),
])  # fmt: skip
def test_files_that_cannot_be_converted_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        read_http(HttpOptions(requests_file=Path("t.har"), urls=None), read=lambda _: text.encode(), seed=1)
