"""Rules name what is wrong with databases of known health, judged by watches that were recorded once.

`tests/integration/test_database_advice.py` watches them anew. After a change of what a watch stores, record
again: ``bench/database_advice.py --record --seconds 3``.
"""

import pytest

from databases import SCENARIOS
from databases.recorded import recorded, replay
from databases.scenario import faults, told

ELSEWHERE = {
    *(scenario.name for scenario in SCENARIOS if 18 not in scenario.versions or scenario.compiled),
    "statements that lock dozens of tables and indexes",
}
"""Databases whose faults the recorded server cannot have: in PostgreSQL 18, or with two processors."""
RECORDED = [scenario for scenario in SCENARIOS if scenario.name not in ELSEWHERE]


@pytest.mark.parametrize("scenario", RECORDED, ids=lambda scenario: scenario.name)
def test_the_advice_fits_the_recorded_database(scenario):
    result = replay(scenario.name)
    assert not faults(scenario, result), "\n".join((*faults(scenario, result), *told(result)))


def test_every_database_is_recorded():
    assert {scenario.name for scenario in RECORDED} == recorded()
