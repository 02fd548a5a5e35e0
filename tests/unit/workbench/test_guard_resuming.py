"""Which guards go on after an interruption, and what is said of those that do not."""

import os
from dataclasses import replace

import pytest

from uncork.engines import process
from uncork.errors import UsageError
from uncork.experiment.guard.sides import parse_side
from uncork.model.results.guard import GuardSide
from uncork.requests.guard import GuardRequest
from uncork.requests.source import Options
from uncork.store.layout import Attempt, Manifest, write_manifest
from uncork.workbench.guard.guards import carry_out_guard, guard_target, resume_guard
from uncork.workbench.guard.stored_request import StoredRequest, read_request, refuse_guard, write_request

TEXT = """
[experiment]
name = "guard-sorts"
question = "Still as fast?"

[variants.baseline]
baseline = true
[variants.candidate]
settings = { work_mem = "64kB" }

[setup]
sql = "CREATE TABLE t (id int)"

[workloads.sort]
sql = "SELECT 1"
duration = "100ms"

[guard]
gates = ["p50 < +5%"]
"""
ASKED = StoredRequest(
    baseline=GuardSide("baseline", "as it is", commit="1a2b3c"),
    candidate=GuardSide("candidate", "work_mem = 64kB", ("work_mem = 64kB",)),
    overridden=("the files differ",),
    command="uncork guard sorts.toml --candidate setting=work_mem:64kB",
    confirm=True,
    acknowledged="/somewhere/known.toml",
)
ENDED = Attempt("2026-06-01T10:00:00+00:00", 90 * 10**9, 3, "interrupted", "interrupted")


@pytest.fixture
def run(tmp_path):
    """The run of a guard that was interrupted after 90 seconds."""
    folder = tmp_path / "guard-sorts-20260601-100000"
    folder.mkdir()
    manifest = Manifest(
        id=folder.name, name="guard-sorts", question="Still as fast?", status="interrupted",
        started_at=ENDED.started_at, seed=1, unit="round", server="embedded", uncork_version="1",
        options=Options(budget_ns=100 * 10**9).stored(), attempts=(ENDED,),
    )  # fmt: skip
    write_manifest(folder, manifest)
    (folder / "experiment.toml").write_text(TEXT)
    write_request(folder, ASKED)
    return folder, manifest


def resume(folder, sides=(), **changes):
    def never(_session):
        raise AssertionError("nothing should be measured")

    baseline, candidate = (
        parse_side(role, sides[at : at + 1]) for at, role in enumerate(("baseline", "candidate"))
    )
    wanted = GuardRequest(folder.name, baseline, candidate, resume=True, **changes)
    return resume_guard(folder, wanted, never, lambda _: None)


def test_how_it_was_asked_is_read_back(run):
    folder, _ = run
    assert read_request(folder) == ASKED
    assert read_request(folder.parent) is None


def test_an_experiment_is_not_resumed_where_it_is_a_guards(run):
    folder, _ = run
    with pytest.raises(UsageError, match=f"resume that: uncork guard --resume {folder.name}$"):
        refuse_guard(folder)
    refuse_guard(folder.parent)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"confirms": "guard-1"}, "is the second measurement of guard guard-1, which cannot be resumed"),
        ({"checkouts": True}, "uses checkouts of commits or a working tree, which may have changed"),
    ],
)
def test_what_cannot_be_the_same_does_not_go_on_and_the_command_is_told(run, asked, told):
    folder, _ = run
    write_request(folder, replace(ASKED, **asked))
    with pytest.raises(UsageError, match=told) as caught:
        resume(folder)
    assert str(caught.value).endswith(f"; guard again: {ASKED.command}")


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("complete", "the second measurement of guard-sorts-20260601-100000 had begun"),
        ("running", "is still"),
    ],
)
def test_what_has_ended_or_runs_does_not_go_on(run, status, told):
    folder, manifest = run
    write_manifest(folder, replace(manifest, status=status, owner=process.identity(os.getpid())))
    with pytest.raises(UsageError, match=told):
        resume(folder)


def test_without_a_round_left_of_its_budget_it_asks_for_more(run):
    folder, manifest = run
    write_manifest(folder, replace(manifest, attempts=(replace(ENDED, elapsed_ns=99 * 10**9),)))
    with pytest.raises(UsageError, match=r"has used 99.* s of its budget of 100 s, .* --budget 200s"):
        resume(folder)


def test_another_server_is_refused(run):
    folder, _ = run
    with pytest.raises(UsageError, match=r"was measured on another server \(embedded\)"):
        resume(folder, ("dsn=host=a", "dsn=host=b"))


def test_what_is_no_guard_of_an_experiment_is_told(run):
    folder, _ = run
    (folder / "guard-request.json").unlink()
    with pytest.raises(
        UsageError, match="is not a guard of an experiment; resume an experiment with uncork run"
    ):
        resume(folder)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"gates": ("p50 < +5%",)}, "--gate"),
        ({"confirm": False}, "--no-confirm"),
        ({"options": Options(seed=0)}, "--seed"),
        ({"candidate": parse_side("candidate", ["setting=work_mem:1MB"])}, "--candidate"),
        ({"everything": True}, "--all"),
    ],
)
def test_what_would_make_it_another_guard_is_refused(tmp_path, asked, told):
    sides = {role: parse_side(role, []) for role in ("baseline", "candidate")}
    wanted = GuardRequest("last", **{**sides, **asked}, resume=True)
    with pytest.raises(UsageError, match=f"own options: leave out {told} "):
        carry_out_guard(tmp_path, wanted, lambda _: None, lambda _: None)


def test_either_a_target_or_a_guard_to_go_on_with_is_named():
    assert (guard_target("a.toml", None), guard_target(None, "last")) == ("a.toml", "last")
    for target, resume, told in (
        (None, None, "name an experiment file"),
        ("a.toml", "last", "leave out a.toml"),
    ):
        with pytest.raises(UsageError, match=told):
            guard_target(target, resume)
