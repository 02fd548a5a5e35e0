"""Extensions that variants need: had, loaded as the server starts, or told as lacking."""

import psycopg
import pytest

from uncork.engines import setting_check
from uncork.engines.postgres import embedded_server
from uncork.engines.setting_check import extensions_lacking, libraries_to_load

pytestmark = pytest.mark.postgres


def test_what_a_server_has_not_got_is_told(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        assert extensions_lacking(control, ["pg_prewarm"]) is None
        assert extensions_lacking(control, []) is None
        told = extensions_lacking(control, ["pg_prewarm", "no_such_extension"])
        assert told == "the extension no_such_extension is not installed on the server"


def test_a_library_that_is_not_loaded_is_told(embedded, monkeypatch):
    monkeypatch.setitem(setting_check.LIBRARIES, "pg_prewarm", "pg_prewarm")
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        told = extensions_lacking(control, ["pg_prewarm"])
        assert "add pg_prewarm to shared_preload_libraries, and restart the server" in told
        assert libraries_to_load(control, ["pg_prewarm", "no_such_extension"]) == ["pg_prewarm"]


def test_a_server_of_our_own_loads_it(monkeypatch):
    monkeypatch.setitem(setting_check.LIBRARIES, "pg_prewarm", "pg_prewarm")
    server = embedded_server({"shared_buffers": "32MB"})
    server.start()
    try:
        assert server.lacking("a") is None
        assert server.lacking("a", ["pg_prewarm"]) is None
        lacking = server.lacking("b", ["no_such_extension"])
        assert lacking == "the extension no_such_extension is not installed on the server"
        server.restart()
        loaded = server.facts()["server"]
        assert loaded
        assert server.lacking("a", ["pg_prewarm"]) is None
    finally:
        server.stop()
