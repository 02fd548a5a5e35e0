"""Healthy databases under load get no recommended step, and sick ones the right finding first.

`tests/unit/diagnosis/test_recorded_databases.py` judges recorded watches of all of them.
"""

from collections import Counter

import pytest

from databases import GROUPS, SCENARIOS
from databases.scenario import applies, faults, lay_out, told, watch_scenario
from databases.started import Servers

pytestmark = pytest.mark.postgres
SECONDS = (2.0, 6.0)
"""Forty samples are enough on a quiet machine. A database that is judged wrongly is watched for longer,
because a machine without a free processor delays samples."""


def watched():
    """Yield the databases to watch: in `make test`, the first two sick and healthy ones of each group."""
    for group in GROUPS:
        kinds = Counter()
        for scenario in group:
            if not scenario.seldom:
                kinds[bool(scenario.expected)] += 1
                marks = pytest.mark.thorough if kinds[bool(scenario.expected)] > 2 else ()
                yield pytest.param(scenario, id=scenario.name, marks=marks)


@pytest.fixture(scope="module")
def servers():
    with Servers() as found:
        yield found


@pytest.mark.parametrize("scenario", [*watched()])
def test_the_advice_fits_the_database(servers, tmp_path, scenario):
    name = f"db{SCENARIOS.index(scenario)}"
    server = servers.of(scenario)
    if not applies(server, scenario):
        pytest.skip("this version of the server cannot have the fault")
    lay_out(server, scenario, name)
    for seconds in SECONDS:
        result = watch_scenario(server, scenario, name, tmp_path, seconds)
        if not faults(scenario, result):
            break
    assert not faults(scenario, result), "\n".join((*faults(scenario, result), *told(result)))
    assert not any("uncork" in application.name for application in result.applications)
