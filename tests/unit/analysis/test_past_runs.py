"""Which comparable runs of a store stand for the past of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.answered import compare_runs
from fakes.load_results import CLOSED_SPEC
from fakes.stored_loads import store_load
from uncork.analysis.load.figures import load_figures
from uncork.analysis.runs import past as past_runs
from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import BASELINE, BROKEN, find_past
from uncork.store.catalogue import set_tag
from uncork.store.layout import find_run, name_run
from uncork.store.remote import mirrors
from uncork.store.remote.address import parse_address
from uncork.store.remote.mirror import open_mirror
from uncork.workbench.documents.loads import read_load
from uncork.workbench.publishing import push_runs


@pytest.fixture
def stored(tmp_path):
    return [store_load(tmp_path / "runs", number) for number in range(6)]


def past(stored, **options):
    found = find_past(stored[0].parent, run_figures(stored[-1]), without=[stored[-1].name], **options)
    return [run.id for run in found.runs], found.baseline and found.baseline.id


def test_all_like_runs_but_the_one_itself_and_the_broken_ones(stored):
    set_tag(stored[1], BROKEN, present=True)
    (stored[2] / "plan.json").write_text("{")
    assert past(stored) == ([stored[place].name for place in (0, 3, 4)], None)


def test_of_very_many_the_newest_and_the_one_named_baseline(stored, monkeypatch):
    monkeypatch.setattr(past_runs, "MOST_COMPARABLE", 3)
    assert past(stored) == ([run.name for run in stored[2:5]], None)
    name_run(stored[0].parent, stored[0].name, BASELINE)
    assert past(stored) == ([stored[place].name for place in (0, 3, 4)], stored[0].name)


@pytest.mark.usefixtures("nothing_in_memory")
def test_of_runs_at_an_address_only_those_that_are_alike_are_fetched_wholly(stored, tmp_path):
    other = store_load(stored[0].parent, 7, spec=replace(CLOSED_SPEC, clients=5))
    address = parse_address("memory://bench/team", {})
    try:
        push_runs(stored[0].parent, open_mirror(address, tmp_path / "one").root)
        there = open_mirror(address, tmp_path / "two").root
        before, after = (find_run(there, run.name) for run in stored[-2:])
        compare_runs(there, before, [after])
    finally:
        mirrors._opened.clear()
    assert (there / other.name / "plan.json").exists()
    assert not (there / other.name / "load_totals").exists()
    assert all((there / run.name / "figures.json").exists() for run in stored[:-2])


def test_figures_are_those_of_the_whole_result(stored):
    assert run_figures(stored[0]).figures == tuple(load_figures(read_load(stored[0])))
