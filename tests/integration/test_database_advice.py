"""Healthy databases under load get no recommended step, and sick ones the right finding first."""

import pytest
from bench.database_advice import SCENARIOS, SETTINGS, is_right, lay_out, told, watch_scenario

from uncork.engines.embedded import EmbeddedServer

pytestmark = pytest.mark.postgres
SECONDS = 2.0
"""Enough for forty samples; `bench/database_advice.py` watches for longer, and on other versions."""


@pytest.fixture(scope="module")
def server():
    found = EmbeddedServer(dict(SETTINGS))
    found.start()
    yield found
    found.stop()


@pytest.mark.parametrize("number", range(len(SCENARIOS)), ids=[one.name for one in SCENARIOS])
def test_the_advice_fits_the_database(server, tmp_path, number):
    scenario, name = SCENARIOS[number], f"db{number}"
    lay_out(server, scenario, name)
    result = watch_scenario(server, scenario, name, tmp_path, SECONDS)
    assert is_right(scenario, result), "\n".join(told(result))
    assert not any("uncork" in one.name for one in result.applications)
