"""The progress of a load that ends after a number of operations."""

import pytest

from uncork.cli import console
from uncork.cli.load.finish import counted_progress
from uncork.model.load import LoadProgress


@pytest.fixture(autouse=True)
def pace(monkeypatch):
    """Show each line of progress."""
    monkeypatch.setattr(console, "_shared_pace", console.Pace(0.0))


def snapshot(elapsed_s, succeeded, failed=0, skipped=0):
    counts = (succeeded, failed, skipped, 0, 0, 1)
    return LoadProgress(int(elapsed_s * 1e9), 1.0, *counts, 0.0, 0.0, 0, 0, 0, 0)


def test_the_operations_that_have_ended_are_counted(capsys):
    with counted_progress(200, "requests") as show:
        show(snapshot(1, 20))
        show(snapshot(10, 30, failed=4, skipped=6))
        show(snapshot(11, 40))
    assert capsys.readouterr().err == (
        "uncork: 60 of 200 requests (30 %), 30.0 requests/s\n"
        "uncork: 100 of 200 requests (50 %), 40.0 requests/s\n"
    )


def test_a_load_that_lasts_a_time_has_no_count():
    with counted_progress(None, "requests") as show:
        assert show is None
