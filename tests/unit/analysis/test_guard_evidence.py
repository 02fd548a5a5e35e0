"""What may explain a guard's gates: gathered from the run of both sides, and no noise of samples among it."""

import dataclasses

from fakes.guards import check, guard
from fakes.results import bare_result, comparison, variant
from uncork.analysis.guard.explanations import explained, frame_differences
from uncork.model.results.experiment import Cost, PlanFacts
from uncork.model.tables.stacks import STACK_TABLES
from uncork.model.variant_evidence import CallShare, EvidenceFacts, WaitShare
from uncork.report.guard.answer import answer_guard
from uncork.store.tables import rows_table, write_evidence

SIDES = ("baseline", "candidate")


def stacks(folder, number, side, frames, workload="list", tool="perf"):
    """Store how many samples of the processor each stack has."""
    common = {"measure": "cpu", "unit": "samples", "pid": 1, "process": "postgres", "time_ns": 0}
    named = {"backend": "client backend", "application": "", "template": ""}
    rows = [{**common, **named, "stack": stack, "value": value} for stack, value in frames.items()]
    tables = {table.name: rows_table(table.name, []) for table in STACK_TABLES}
    tables["stacks"] = rows_table("stacks", rows)
    place = {"cell": {"rows": "10"}, "workload": workload, "variant": side}
    write_evidence(folder / "evidence" / f"{number:03d}", {"place": place, "method": {"tool": tool}}, tables)


def frames_of(folder):
    return {one.name: (one.before, one.after) for one in frame_differences(folder, SIDES)}


def test_frames_whose_share_clearly_changed_are_told_the_most_first(tmp_path):
    stacks(tmp_path, 1, "baseline", {"main;search": 800, "main;sort": 200})
    stacks(tmp_path, 2, "candidate", {"main;search": 300, "main;scan": 900, "main;copy_[k]": 800})
    found = frame_differences(tmp_path, SIDES)
    assert [one.name for one in found] == ["search", "scan", "copy (kernel)", "sort"]
    assert (found[0].cell, found[0].workload, found[0].unit) == ((("rows", "10"),), "list", "share")
    assert frames_of(tmp_path)["search"] == (0.8, 0.15)


def test_shares_that_samples_alone_move_are_not_told(tmp_path):
    stacks(tmp_path, 1, "baseline", {"main;search": 60, "main;sort": 40})
    stacks(tmp_path, 2, "candidate", {"main;search": 50, "main;sort": 50})
    assert frames_of(tmp_path) == {}


def test_a_side_that_was_not_looked_at_gives_no_frames(tmp_path):
    stacks(tmp_path, 1, "baseline", {"main;search": 800})
    stacks(tmp_path, 2, "candidate", {"main;scan": 800}, tool="/proc")
    stacks(tmp_path, 3, "candidate", {"main;scan": 800}, workload="other")
    assert frames_of(tmp_path) == {}


def cost(side, **changes):
    nothing = dict.fromkeys((field.name for field in dataclasses.fields(Cost)), None)
    return Cost(**{**nothing, "cell": (), "workload": "list", "variant": side, "operations": 9, **changes})


def evidence(side, waits, calls=()):
    return EvidenceFacts((), "list", side, 9, 10**9, None, None, None, waits, calls, 0, (), (), ())


def plan(side, shape):
    return PlanFacts((), "list", side, "s1", shape, shape, "", None, None)


def run(**changes):
    changed = dataclasses.replace(
        variant("candidate"), settings={"work_mem": "4MB"}, values={"type": "candidate"}, services=("web: a",)
    )
    both = (dataclasses.replace(variant("baseline", True), values={"type": "candidate"}), changed)
    return bare_result(comparison("candidate"), variants=both, **changes)


def told(tmp_path, result):
    found = answer_guard(explained(guard(check()), tmp_path, result))
    return found, {(one.kind, one.name): (one.before, one.after) for one in found.differences}


def test_plans_costs_waits_calls_and_settings_of_both_sides_are_gathered(tmp_path):
    result = run(
        plans=(plan("baseline", "Index Scan"), plan("candidate", "Seq Scan")),
        costs=(
            cost("baseline", server_user_ns=1e6, server_system_ns=5e5, shared_hit=3.0, wal_bytes=0.0),
            cost("candidate", server_user_ns=4e6, server_system_ns=5e5, shared_hit=90.0, wal_bytes=0.0),
        ),
        evidence=(
            evidence("baseline", (WaitShare("CPU", 1e6, 1.0),), (CallShare("read", 1.0, 10.0),)),
            evidence("candidate", (WaitShare("CPU", 4e6, 0.8), WaitShare("IO: DataFileRead", 1e6, 0.2))),
        ),
    )
    found, known = told(tmp_path, result)
    assert [(one.workload, one.kind) for one in found.plans] == [("list", "changed")]
    assert "s1 of list has a different plan." in found.reasons
    assert known["cost", "server CPU"] == (1.5e6, 4.5e6)
    assert known["cost", "server CPU in the kernel"] == (5e5, 5e5)
    assert known["cost", "buffers hit"] == (3.0, 90.0)
    assert ("cost", "WAL") not in known
    assert known["wait", "IO: DataFileRead"] == (0.0, 1e6)
    assert known["call", "read"] == (1.0, 0.0)
    assert [(one.section, one.name, one.before, one.after) for one in found.settings] == [
        ("setting", "work_mem", "", "4MB"),
        ("services", "", "", "web: a"),
    ]


def test_what_differs_of_two_servers_is_told(tmp_path):
    environment = {
        "machine": {"processors": "2"},
        "server": {"version": "17.6", "setting jit": "off"},
        "server of other, candidate": {
            "version": "18.1",
            "setting jit": "off",
            "setting io_method": "worker",
        },
    }
    found, _ = told(tmp_path, run(environment=environment))
    servers = [(one.name, one.before, one.after) for one in found.settings if one.section == "server"]
    assert servers == [("version", "17.6", "18.1"), ("setting io_method", "", "worker")]
    found, _ = told(tmp_path, run(environment={"server": {"version": "17.6"}}))
    assert not [one for one in found.settings if one.section == "server"]


def test_a_side_without_figures_leaves_nothing_to_compare(tmp_path):
    _, known = told(tmp_path, run(costs=(cost("baseline", shared_hit=3.0),)))
    assert known == {}
