"""Merging what nodes of a cluster sent: wrong clocks do not matter, and lost nodes are accounted for."""

import shutil

import pytest
from tests.fakes.load_parts import SECOND, plan, store_part

from uncork.errors import RunError
from uncork.load.parts import planned_operations
from uncork.model.load import LoadOutcome, PartNode
from uncork.report.load.parts import parts_reasons, parts_table
from uncork.store.parts import part_folder
from uncork.workbench.documents.loads import read_load
from uncork.workbench.load.merging import merge_nodes
from uncork.workbench.run_record import draft, start_run


def merged(root, nodes, *, killed_after=None, shifts_ns=(0, 0, 0), **changes):
    """Return the result of a load whose third part may have been killed, and the totals."""
    manifest = draft(
        kind="load", name="load", question="load: s", server="u@db:5432/d", seed=5, options={"command": "c"}
    )
    record = start_run(root, manifest)
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
    manifest = draft(kind="load", name="l", question="q", server="s", seed=5, options={"command": "c"})
    record = start_run(tmp_path, manifest)
    for number in (1, 2):
        shutil.move(tmp_path / store_part(tmp_path, number, 3), part_folder(record.folder, number))
    merge_nodes(record, known)
    part = read_load(record.folder).parts.parts[2]
    assert (part.ended, part.started, part.host) == ("lost", 0, "host-3")
    assert closes(part)
    assert 0 < part.unknown < part.planned


def test_without_any_part_there_is_nothing_to_merge(tmp_path):
    manifest = draft(kind="load", name="l", question="q", server="s", seed=5, options={})
    record = start_run(tmp_path, manifest)
    with pytest.raises(RunError, match="all nodes were lost before they sent anything"):
        merge_nodes(record, nodes(0, 0))
