"""Which runs are compared, and how."""

import pytest

from uncork.analysis.runs.compared import compared_runs, comparison_kind, practical_share
from uncork.errors import UsageError
from uncork.model.stored_run import BASELINE
from uncork.store.layout import Manifest, closed, name_run, read_manifest, write_manifest


@pytest.fixture
def stored(tmp_path):
    """Store a run of a kind; its place in time is its number."""

    def store(number, kind, status="complete"):
        id = f"{kind}-20260531-08300{number}"
        folder = tmp_path / id
        folder.mkdir()
        started = f"2026-05-31T08:30:0{number}+00:00"
        write_manifest(folder, Manifest(id, kind, "?", status, started, 1, "", "here", "0", kind=kind))
        return folder

    return store


def test_logs_and_stacks_are_compared_as_such_and_the_rest_by_figures(stored):
    first, second = stored(1, "log"), stored(2, "log")
    load, cpu = stored(3, "load"), stored(4, "cpu")
    assert comparison_kind(first, [second]) == "logs"
    assert comparison_kind(cpu, [cpu]) == "stacks"
    assert comparison_kind(first, [load]) == comparison_kind(load, [load, load]) == "figures"
    for one in (first, cpu):
        with pytest.raises(UsageError, match="two at a time"):
            comparison_kind(one, [one, one])


def test_a_single_run_is_compared_with_the_one_that_is_called_baseline(stored, tmp_path):
    first, second = stored(1, "load"), stored(2, "load")
    with pytest.raises(UsageError, match="compare last with which run"):
        compared_runs(tmp_path, ["last"])
    name_run(tmp_path, first.name, BASELINE)
    assert compared_runs(tmp_path, ["last"]) == (first, [second])
    assert compared_runs(tmp_path, ["last", BASELINE]) == (second, [first])
    assert compared_runs(tmp_path, ["last"], against=first.name) == (first, [second])
    with pytest.raises(UsageError, match="21 runs are too many to compare"):
        compared_runs(tmp_path, ["last"] * 21, against=BASELINE)


def test_a_baseline_that_failed_after_it_was_named_is_used_only_if_the_command_names_it(stored, tmp_path):
    first, second = stored(1, "load", "running"), stored(2, "load")
    name_run(tmp_path, first.name, BASELINE)
    write_manifest(first, closed(read_manifest(first), "failed", "the server crashed", 1))
    with pytest.raises(UsageError, match=rf"named baseline, {first.name}, failed \(the server crashed\)"):
        compared_runs(tmp_path, ["last"])
    assert compared_runs(tmp_path, ["last"], against=BASELINE) == (first, [second])
    assert compared_runs(tmp_path, [first.name, "last"]) == (first, [second])


@pytest.mark.parametrize(("text", "said"), [("3", "expected a percentage"), ("0%", "must be above zero")])
def test_what_matters_in_practice_is_a_share_above_zero(text, said):
    assert practical_share("2.5%") == 0.025
    with pytest.raises(UsageError, match=f"--practical.*{said}"):
        practical_share(text)
