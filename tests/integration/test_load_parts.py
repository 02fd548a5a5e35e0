"""Parts of a load on a real server: they send what one process sends."""

from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import psycopg
import pytest

from uncork.engines.conninfo import resolve
from uncork.load.http import run_http
from uncork.load.run import run_load
from uncork.model.http import HttpServer, HttpSpec, Request, Variable
from uncork.model.load import Arrivals, LoadPart, LoadScript, LoadSpec

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.thorough]


def test_parts_send_the_requests_of_one_process(recording_server):
    address, seen = recording_server
    spec = HttpSpec(
        server=HttpServer("127.0.0.1", address),
        requests=(Request("a", "GET", "/a/{id}", weight=3), Request("b", "GET", "/b/{id}/{turn}/{own}")),
        variables=(
            Variable("id", 1, 1_000_000),
            Variable("turn", 1, 90, in_turn=True),
            Variable("own", 1, 1_000_000, per_client=True),
        ),
        clients=4,
        threads=4,
        seed=7,
        operations=400,
    )
    for arrivals in (Arrivals("poisson", 800.0), Arrivals("bursts", 800.0, 3)):
        requests = []
        for count in (1, 4):
            seen.clear()
            for number in range(1, count + 1):
                part = LoadPart(number, count)
                measured = run_http(replace(spec, arrivals=arrivals, threads=4 // count, part=part))
                assert measured.totals.failed == 0
            requests.append(sorted(seen))
        assert len(requests[0]) == 400
        # Which client is free first depends on the server, and with it the client's own value.
        shown = [["/".join(path.split("/")[:4]) for path in sent] for sent in requests]
        assert shown[0] == shown[1]


def test_clients_of_parts_draw_the_numbers_of_one_process(embedded):
    address = asdict(resolve(embedded.conninfo()))
    text = "\\set drawn random(1, 1000000)\nINSERT INTO drawn VALUES (:client_id, :drawn);\n"
    spec = LoadSpec((LoadScript("s", 1, text),), clients=8, threads=4, seed=7, operations_each=15)
    drawn = []
    with psycopg.connect(embedded.conninfo(), autocommit=True) as watch:
        for count in (1, 4):
            watch.execute("DROP TABLE IF EXISTS drawn; CREATE TABLE drawn (client int, value int)")
            for number in range(1, count + 1):
                run_load(replace(spec, threads=4 // count, part=LoadPart(number, count)), address)
            drawn.append(watch.execute("SELECT client, value FROM drawn ORDER BY 1, 2").fetchall())
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 8 * 15 and len({value for _, value in drawn[0]}) > 100


@pytest.fixture
def recording_server():
    """Yield the port of a server, and the list of the paths that it is asked for."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, seen
    server.shutdown()
    server.server_close()
