"""Healthy databases under load get no recommended step, and sick ones the right finding first."""

import pytest

from databases import SCENARIOS
from databases.scenario import applies, faults, lay_out, told, watch_scenario
from databases.started import Servers

pytestmark = pytest.mark.postgres
SECONDS = (2.0, 6.0)
"""Forty samples are enough on a quiet machine. A database that is judged wrongly is watched for longer,
because a machine without a free processor delays samples."""


WATCHED = [one for one in SCENARIOS if not one.seldom]


@pytest.fixture(scope="module")
def servers():
    with Servers() as found:
        yield found


@pytest.mark.parametrize("number", range(len(WATCHED)), ids=[one.name for one in WATCHED])
def test_the_advice_fits_the_database(servers, tmp_path, number):
    scenario, name = WATCHED[number], f"db{number}"
    server = servers.of(scenario)
    if not applies(server, scenario):
        pytest.skip("this version of the server cannot have the fault")
    lay_out(server, scenario, name)
    for seconds in SECONDS:
        result = watch_scenario(server, scenario, name, tmp_path, seconds)
        if not faults(scenario, result):
            break
    assert not faults(scenario, result), "\n".join((*faults(scenario, result), *told(result)))
    assert not any("uncork" in one.name for one in result.applications)
