from dataclasses import replace
from pathlib import Path

import pytest

from uncork.model.stored_run import RunFilter, StoredRun, select

RUN = StoredRun(
    folder=Path("runs/types-20260301-101500"), id="types-20260301-101500", name="types",
    question="Which type holds a UUID best?", kind="experiment", status="complete",
    started_at="2026-03-01T10:15:00+00:00", elapsed_ns=10**9, rounds=5, reason="done",
    case="cluster-names", server="embedded", seed=7, uncork_version="0.1.0",
    command="uncork rerun types-20260301-101500", commit=None, tags=("nightly", "release-2"),
    names=("baseline",), stamp="1",
)  # fmt: skip


@pytest.mark.parametrize(("wanted", "found"), [
    (RunFilter(), True),
    (RunFilter(text="uuid TYPES"), True),
    (RunFilter(text="nightly baseline cluster"), True),
    (RunFilter(text="uuid mysql"), False),
    (RunFilter(kind="experiment", status="complete", tag="release-2", case="cluster-names"), True),
    (RunFilter(kind="load"), False),
    (RunFilter(status="killed"), False),
    (RunFilter(tag="release"), False),
    (RunFilter(tag="baseline"), True),
    (RunFilter(case="clair"), False),
    (RunFilter(text="' OR 1=1 --"), False),
])  # fmt: skip
def test_a_filter_chooses(wanted, found):
    assert (select([RUN], wanted) == [RUN]) is found


@pytest.mark.parametrize(("text", "known"), [("2026-03-01T10:15:00", True), ("", False), ("soon", False)])
def test_a_start_that_cannot_be_read_is_none(text, known):
    at = replace(RUN, started_at=text).started()
    assert (at is not None and at.tzinfo is not None) is known
