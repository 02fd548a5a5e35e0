"""One embedded server for the tests of this folder that only need some server."""

from __future__ import annotations

import pytest

from uncork.engines.embedded import EmbeddedServer


@pytest.fixture(scope="session")
def embedded():
    server = EmbeddedServer({"shared_buffers": "64MB"})
    server.start()
    yield server
    server.stop()
