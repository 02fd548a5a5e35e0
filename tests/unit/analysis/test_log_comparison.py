"""Two logs side by side: applications, lengths, counts."""

from __future__ import annotations

import pytest

from fakes.answered import compare_log_results
from fakes.logs import line, result


def updates(count, ms, application="libvuln"):
    return "".join(
        line(f"UPDATE t SET a = {number}", at_ms=number % 1000, ms=ms, application=application)
        for number in range(count)
    )


def lookups(count, ms=0.5):
    return "".join(
        line(f"SELECT a FROM t WHERE id = {number}", at_ms=number, ms=ms, application="quay", pid=8)
        for number in range(count)
    )


@pytest.fixture
def comparison(tmp_path):
    before = result(tmp_path / "before.log", updates(300, 2.0) + lookups(100))
    after = result(tmp_path / "after.log", updates(1, 50.0) + lookups(99) + line("SELECT 1", at_ms=5, ms=1.0))
    return compare_log_results(before, after)


def test_applications_stand_side_by_side_with_their_shares(comparison):
    libvuln, quay, app = comparison.applications
    assert (libvuln.name, quay.name, app.name) == ("libvuln", "quay", "app")
    assert (libvuln.before.executions, libvuln.after.executions) == (300, 1)
    assert libvuln.before.of_executions == pytest.approx(0.75)
    assert libvuln.before.of_time == pytest.approx(600 / 650)
    assert libvuln.after.mean_ns == pytest.approx(50e6)
    assert (app.before.executions, app.before.mean_ns, app.before.of_time) == (0, None, 0.0)
    for place in ("before", "after"):
        parts = [getattr(one, place) for one in comparison.applications]
        period = getattr(comparison, place)
        assert sum(part.executions for part in parts) == period.executions == sum(period.histogram)
        assert sum(part.sum_ns for part in parts) == period.sum_ns
        assert sum(part.of_executions for part in parts) == pytest.approx(1)
        assert sum(part.of_time for part in parts) == pytest.approx(1)
