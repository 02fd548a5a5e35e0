"""A stream that follows a run, when the dashboard ends."""

import http.client
import os
from dataclasses import replace

import pytest

from fakes.dashboards import dashboard, make_load
from uncork.engines.process import identity
from uncork.store.layout import read_manifest, write_manifest

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
