"""What a service answers, asked whole: over HTTP/1.1, over HTTP/2 of those that speak nothing else."""

from __future__ import annotations

import pytest

from fakes.http_servers import nginx, scripted
from uncork.errors import LoadError
from uncork.load.http_trials import ask
from uncork.model.http_trial import AskedRequest
from uncork.model.service import Served

GET = AskedRequest("GET", "/json")


@pytest.mark.parametrize("kind", ["plain", "two"])
def test_answers_are_the_same_over_either_version(tmp_path, kind):
    requests = [
        GET,
        AskedRequest("POST", "/method?a=b c", (("X-Own", "mine"),), '{"a": 1}'),
        AskedRequest("GET", "/refuse"),
        AskedRequest("GET", "/small.txt"),
    ]
    with nginx(tmp_path) as server:
        found = ask(Served("api", server.ports[kind]), requests, timeout_s=5)
        again = ask(Served("api", server.ports["plain"]), requests, timeout_s=5)
    assert [answer.status for answer in found] == [200, 200, 503, 200]
    assert found[0].json == '{"items": [{"id": 7}], "ok": true}'
    assert [answer.digest for answer in found[:2]] == [answer.digest for answer in again[:2]]
    assert found[1].request == "POST /method?a=b c"
    assert found[3].size == again[3].size
    assert found[3].text and found[3].text == again[3].text
    assert found[0].text is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", "it closed the connection before its answer was complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "it closed the connection before"),
        (None, "no answer within 0.3 s"),
    ],
)
def test_a_request_without_an_answer_is_named(said, told):
    def script(connection, *_):
        connection.recv(4096)
        if said is None:
            connection.recv(4096)
        else:
            connection.sendall(said)

    with scripted(script) as port, pytest.raises(LoadError) as error:
        ask(Served("api", port), [GET], timeout_s=0.3)
    assert str(error.value).startswith(f"service api: GET /json: {told}")
