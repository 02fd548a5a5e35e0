"""The doctor on a real server, shortly."""

from uncork.requests.server import ServerChoice
from uncork.workbench.experiment.resolution import LEAST_BUDGET_NS, measure_resolution


def test_the_doctor_resolves_a_short_and_a_long_statement_over_several_lives_of_a_server():
    found = measure_resolution(ServerChoice(), LEAST_BUDGET_NS)
    assert found.restarts
    assert found.rounds >= 3
    short, long = found.statements
    assert short.operation_ns < 1e6 < long.operation_ns
    for one in found.statements:
        assert one.cycle > 0.0
        assert all(width is not None and 0.0 < width < 2.0 for width in one.half_widths)
        assert one.half_widths[0] > one.half_widths[-1]
    assert "PostgreSQL" in found.server
