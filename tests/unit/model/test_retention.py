from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from uncork.model.stored_run import Retention, prunable
from unit.model.test_stored_run import RUN

NOW = datetime(2026, 3, 31, tzinfo=UTC)
PLAIN = replace(RUN, tags=(), names=())


def run(day, **changes):
    return replace(
        PLAIN, **{"id": f"run-{day:02}", "started_at": f"2026-03-{day:02}T00:00:00+00:00", **changes}
    )


RUNS = [run(day) for day in range(1, 31)]


def days(found):
    return [int(one.id[-2:]) for one in found]


@pytest.mark.parametrize(("rule", "going"), [
    (Retention(), []),
    (Retention(keep=28), [1, 2]),
    (Retention(keep=0), list(range(1, 31))),
    (Retention(keep=100), []),
    (Retention(older_than=timedelta(days=28)), [1, 2]),
    (Retention(keep=29, older_than=timedelta(days=28)), [1]),
    (Retention(keep=2, older_than=timedelta(days=28)), [1, 2]),
    (Retention(keep=0, kind="load"), []),
])  # fmt: skip
def test_what_neither_part_keeps_may_go(rule, going):
    assert days(prunable(RUNS, rule, NOW)) == going


@pytest.mark.parametrize(
    "changes",
    [{"tags": ("a",)}, {"names": ("baseline",)}, {"status": "running"}, {"started_at": "some day"}],
)
def test_what_is_named_tagged_or_running_stays(changes):
    kept = run(3, **changes)
    assert kept not in prunable([*RUNS[:2], kept, *RUNS[3:]], Retention(keep=0), NOW)


def test_each_name_and_kind_keeps_its_newest():
    others = [run(day, name="other") for day in (1, 2)] + [run(1, kind="load")]
    going = prunable([*RUNS, *others], Retention(keep=1), NOW)
    assert len(going) == 29 + 1 and others[1] not in going and others[2] not in going


def test_what_stays_by_its_tag_counts_among_the_newest():
    runs = [*RUNS[:29], run(30, tags=("a",))]
    assert days(prunable(runs, Retention(keep=2), NOW)) == list(range(1, 29))
