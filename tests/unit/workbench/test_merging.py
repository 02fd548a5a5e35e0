"""Merging the stored parts of a load, and what nodes of a cluster sent."""

import json
import shutil
from contextlib import closing
from dataclasses import asdict
from operator import attrgetter

import pytest
from tests.fakes.load_parts import SECOND, carried_out, plan, store_part

import uncork
from uncork.engines.conninfo import Address
from uncork.errors import RunError, UsageError
from uncork.load.parts import planned_operations
from uncork.model.load import LoadOutcome, PartNode
from uncork.report.load.document import build_load_document, render_load_terminal
from uncork.report.load.tables import parts_reasons, parts_table
from uncork.store.loads import LoadReader
from uncork.store.parts import part_folder
from uncork.workbench.documents.loads import read_load
from uncork.workbench.load.merging import merge_nodes, merge_runs
from uncork.workbench.load.repeating import repeated_job
from uncork.workbench.run_record import draft, start_run


def stored(root, **parts):
    return merge_runs(root, [store_part(root, number) for number in parts.get("numbers", (1, 2, 3, 4))])


def test_merged_parts_are_the_load_of_one_process(tmp_path):
    whole = carried_out(plan(1, 1, threads=4))
    folder = stored(tmp_path)
    with closing(LoadReader(folder)) as reader:
        merged = reader.measurement()
    assert merged.totals.started == whole.totals.started > 2_000
    assert merged.totals.arrivals == whole.totals.arrivals
    assert [row.histogram for row in merged.times] == [row.histogram for row in whole.times]
    times = attrgetter("executions", "sum_ns", "min_ns", "max_ns", "p50_ns", "p99_ns", "p9999_ns")
    assert list(map(times, merged.times)) == list(map(times, whole.times))
    seconds = attrgetter("interval", "started", "succeeded", "histogram")
    assert list(map(seconds, merged.series)) == list(map(seconds, whole.series))


def test_the_accounts_of_whole_parts_close_and_nothing_is_named(tmp_path):
    result = read_load(stored(tmp_path))
    assert result.parts is not None
    for part in result.parts.parts:
        assert (part.ended, part.unknown, part.disagrees) == ("complete", 0, {})
        assert part.planned == part.started + part.not_started
    assert sum(part.started for part in result.parts.parts) == result.counts.started
    assert "parts" not in result.answer


def test_a_killed_part_is_counted_until_its_last_second_and_unknown_after(tmp_path):
    runs = [store_part(tmp_path, number, killed_after=7 if number == 3 else None) for number in (1, 2, 3, 4)]
    result = read_load(merge_runs(tmp_path, runs))
    part = result.parts.parts[2]
    assert (part.ended, part.seconds) == ("killed", 7.0)
    assert part.planned == part.started + part.not_started + part.unknown
    assert part.started > 200 and 16 <= part.unknown < 60 and part.not_started > 100
    assert result.counts.started == result.counts.succeeded + result.counts.failed
    text = " ".join(build_load_document(result).reasons)
    assert "Part 3 on host-3 was killed after second 7" in text
    assert "from 3 of 4 parts" in text
    assert result.answer.startswith("1 of 4 parts did not complete: ")


def test_a_missing_part_is_unknown_as_a_whole(tmp_path):
    result = read_load(stored(tmp_path, numbers=(1, 2, 4)))
    part = result.parts.parts[2]
    assert (part.ended, part.run, part.started, part.not_started) == ("missing", None, 0, 0)
    assert part.unknown == part.planned > 400
    assert result.run.status == "failed"
    assert any(text.startswith("Part 3 of 4 is missing") for text in build_load_document(result).reasons)


def test_a_part_with_other_latencies_is_named(tmp_path):
    runs = [store_part(tmp_path, number, latency=3 if number == 2 else 1) for number in (1, 2, 3, 4)]
    result = read_load(merge_runs(tmp_path, runs))
    assert {part.number for part in result.parts.parts if part.disagrees} == {2}
    assert result.parts.parts[1].disagrees["p50"] > 2
    assert any("Part 2 on host-2 disagrees" in text for text in build_load_document(result).reasons)


def test_queues_of_parts_that_all_left_arrivals_unsent_are_not_compared(tmp_path):
    rate = {"kind": "poisson", "rate": 4_000.0}
    runs = [
        store_part(tmp_path, number, latency=3 if number == 2 else 1, arrivals=rate)
        for number in (1, 2, 3, 4)
    ]
    result = read_load(merge_runs(tmp_path, runs))
    assert all(part.not_started for part in result.parts.parts)
    assert not any(part.disagrees for part in result.parts.parts)


def test_parts_that_start_apart_are_shifted_by_seconds(tmp_path):
    runs = [store_part(tmp_path, 1, 2), store_part(tmp_path, 2, 2)]
    path = tmp_path / runs[1] / "manifest.json"
    late = json.loads(path.read_text())
    late["options"]["measured_us"] += 3_100_000
    path.write_text(json.dumps(late))
    result = read_load(merge_runs(tmp_path, runs))
    assert 15 <= len(result.series) <= 16
    assert result.series[0].started < result.series[5].started


@pytest.mark.parametrize(("changes", "message"), [
    ({"number": 1}, "part 1/4 is given twice"),
    ({"count": 3}, "belong to different loads"),
    ({"version": "9"}, "differ in the build of uncork"),
    ({"seed": 6}, "differ in --random-seed"),
    ({"connection": asdict(Address("other", 5432, "u", "d"))}, "differ in the target"),
    ({"arrivals": {"kind": "poisson", "rate": 300.0}}, '"arrivals" of the plan'),
    ({"stop": {"duration_ns": 11 * SECOND}}, '"stop" of the plan'),
    ({"threads": 2}, '"threads" of the plan'),
    ({"facts": {"start_at_ns": 5}}, r"differ in --start-at \(1970-01-01T00:00:00\+00:00 and none\)"),
])  # fmt: skip
def test_runs_that_are_not_parts_of_one_load_are_refused(tmp_path, changes, message):
    first = store_part(tmp_path, 1)
    second = store_part(tmp_path, **{"number": 2, **changes})
    with pytest.raises(UsageError, match=message):
        merge_runs(tmp_path, [first, second])
    assert len(list(tmp_path.glob("part-*"))) == 2


def test_a_part_that_is_given_twice_is_named_by_its_folders(tmp_path):
    for machine in ("a", "b"):
        store_part(tmp_path / machine, 1)
    same = [str(path.parent) for path in tmp_path.glob("*/part-*/manifest.json")]
    with pytest.raises(UsageError, match="given twice") as raised:
        merge_runs(tmp_path, same)
    assert all(path in str(raised.value) for path in same)


def test_a_merged_run_is_no_part_and_is_not_repeated(tmp_path):
    folder = stored(tmp_path)
    with pytest.raises(UsageError, match="not a part of a load"):
        merge_runs(tmp_path, [folder.name])
    with pytest.raises(UsageError, match="cannot be repeated by one"):
        repeated_job(folder)


def test_python_merges_and_the_terminal_shows_the_parts(tmp_path, capsys):
    from rich.console import Console

    names = [store_part(tmp_path, number) for number in (1, 2, 3, 4)]
    run = uncork.merge(*(tmp_path / name for name in names), runs=tmp_path)
    assert run.id.startswith("part-1-merged-")
    render_load_terminal(read_load(run.folder), Console(width=200))
    shown = capsys.readouterr().out
    assert "1/4" in shown and "host-4" in shown and "unknown" in shown


def started(root):
    options = {"command": "c"}
    return start_run(root, draft(kind="load", name="l", question="q", server="s", seed=5, options=options))


def merged(root, nodes, *, killed_after=None, shifts_ns=(0, 0, 0), **changes):
    """Return the result of a load whose third part may have been killed, and the totals."""
    record = started(root)
    for number in (1, 2, 3):
        if number not in nodes:
            continue
        facts = {"start_at_ns": 7 * 10**17 + shifts_ns[number - 1]}
        after = killed_after if number == 3 else None
        run = store_part(root, number, 3, facts=facts, killed_after=after, **changes)
        shutil.move(root / run, part_folder(record.folder, number))
    totals = merge_nodes(record, nodes)
    return read_load(record.folder), totals


def nodes(*shifts_ns, **third):
    return {
        number: PartNode(f"host-{number}", shift, 400_000, 1_000, **(third if number == 3 else {}))
        for number, shift in enumerate(shifts_ns, start=1)
    }


def closes(part):
    return part.planned == part.started + part.not_started + part.unknown


def test_starts_by_different_clocks_are_the_same_start(tmp_path):
    shifts = (-250_000_000, 0, 3 * SECOND)
    # The parts began at one moment, which their manifests give by their own clocks.
    with pytest.raises(Exception, match="differ in --start-at"):
        merged(tmp_path, nodes(0, 0, 0), shifts_ns=shifts)
    result, totals = merged(tmp_path, nodes(*shifts), shifts_ns=shifts)
    assert totals.outcome is LoadOutcome.COMPLETE
    assert all(closes(part) and part.unknown == 0 for part in result.parts.parts)
    assert [part.clock_offset_ns for part in result.parts.parts] == list(shifts)
    cells = [[value.text for value in row] for row in parts_table(result).rows]
    assert "−250.0 ± 0.4 ms" in cells[0] and "+3000.0 ± 0.4 ms" in cells[2]


def test_a_lost_node_may_have_sent_what_arrived_until_its_lease_ended(tmp_path):
    third = {"lost": "its machine is gone", "lost_ns": 6 * SECOND, "sent_until_ns": 9 * SECOND}
    result, totals = merged(tmp_path, nodes(0, 0, 0, **third), killed_after=5)
    part = result.parts.parts[2]
    assert totals.outcome is LoadOutcome.NODE_LOST
    assert (part.ended, part.lost_s, closes(part)) == ("lost", 6.0, True)
    until = planned_operations({**plan(3, 3), "stop": {"duration_ns": 9 * SECOND}})
    assert part.unknown == until - part.started > 0
    assert part.not_started == part.planned - until > 0
    (sentence,) = (one for one in parts_reasons(result) if "was lost" in one)
    assert sentence.startswith("Part 3 on host-3 was lost at second 6 (its machine is gone): ")
    assert sentence.endswith("From then on, the load came from 2 of 3 nodes.")


def test_in_a_closed_loop_nothing_bounds_what_a_lost_node_sent(tmp_path):
    third = {"lost": "its machine is gone", "lost_ns": 6 * SECOND, "sent_until_ns": 9 * SECOND}
    result, _ = merged(tmp_path, nodes(0, 0, 0, **third), killed_after=5, arrivals=None, max_clients=None)
    part = result.parts.parts[2]
    assert (part.planned, part.unknown, part.not_started) == (None, None, None)
    assert any("how many more were sent is not known" in one for one in parts_reasons(result))


def test_a_killed_process_is_accounted_for_by_its_own_counts(tmp_path):
    third = {"lost": "the process of its part ended: signal 9", "lost_ns": 5 * SECOND}
    result, _ = merged(tmp_path, nodes(0, 0, 0, **third), killed_after=5)
    part = result.parts.parts[2]
    assert part.unknown == 16 and closes(part)  # the operations that the fake reserves ahead


def test_a_node_that_sent_nothing_back_is_missing_but_bounded(tmp_path):
    known = nodes(0, 0, 0, lost="it does not answer", lost_ns=2 * SECOND, sent_until_ns=6 * SECOND)
    record = started(tmp_path)
    for number in (1, 2):
        shutil.move(tmp_path / store_part(tmp_path, number, 3), part_folder(record.folder, number))
    merge_nodes(record, known)
    part = read_load(record.folder).parts.parts[2]
    assert (part.ended, part.started, part.host) == ("lost", 0, "host-3")
    assert closes(part)
    assert 0 < part.unknown < part.planned


def test_without_any_part_there_is_nothing_to_merge(tmp_path):
    with pytest.raises(RunError, match="all nodes were lost before they sent anything"):
        merge_nodes(started(tmp_path), nodes(0, 0))
