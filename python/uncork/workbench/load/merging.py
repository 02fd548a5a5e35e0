"""Merge the parts of a load into one run: of stored runs (`uncork merge`), or of the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncork.errors import RunError
from uncork.load.merging import MeasuredPart, merged_measurement
from uncork.model.load import PartNode
from uncork.model.tables.load import LoadTotals
from uncork.store.layout import find_run
from uncork.store.loads import write_environment, write_measurement, write_plan
from uncork.store.parts import keep_part, part_folder, write_merged
from uncork.workbench.load.sql import load_ending
from uncork.workbench.load.stored_parts import (
    StoredPart,
    accounts_of,
    check_parts,
    read_part,
    shifts_of,
)
from uncork.workbench.run_record import RunRecord, draft, start_run


def merge_runs(root: Path, runs: Sequence[str]) -> Path:
    """Merge the runs of a load's parts into a new run; return its folder.

    The new run keeps the parts. Parts that are missing, or were killed, are accounted for: what they may have
    sent is unknown.

    Raises:
        UsageError: if the runs are not parts of one load, or one is still running.
        SetupError, StoreError: if there is no such run, a run is damaged, or the result cannot be written.
    """
    parts = sorted((read_part(find_run(root, run)) for run in runs), key=lambda part: part.number)
    check_parts(parts)
    first = parts[0]
    manifest = draft(
        kind="load",
        name=f"{first.manifest.name}-merged",
        question=f"{first.manifest.question}, in {first.count} parts",
        seed=first.manifest.seed,
        server=first.manifest.server,
        options=_options(parts),
        started_at=min(part.manifest.started_at for part in parts),
        commit=lambda: first.manifest.commit,
        branch=lambda: first.manifest.branch,
    )
    with start_run(root, manifest, undone="nothing was merged") as record:
        for part in parts:
            place = keep_part(part.folder, record.folder, part.number)
            if not part.finished:  # it was killed before it could write these
                write_measurement(place, part.measured)
        _write(record, parts, {})
    return record.folder


def merge_nodes(record: RunRecord, nodes: Mapping[int, PartNode]) -> LoadTotals:
    """Merge the parts that nodes have sent, which the run keeps already; end the run, and return its totals.

    Raises:
        RunError: if no node has sent anything.
        UsageError: if the parts do not belong together.
        StoreError: if a part is damaged, or the result cannot be written.
    """
    places = {number: part_folder(record.folder, number) for number in nodes}
    parts = [
        read_part(place, nodes[number]) for number, place in places.items() if (place / "plan.json").is_file()
    ]
    if not parts:
        raise RunError("all nodes were lost before they sent anything; send the load again")
    check_parts(parts)
    for part in parts:
        if not part.finished:
            write_measurement(part.folder, part.measured)
    record.change(options={**record.manifest.options, **_options(parts)})
    return _write(record, parts, nodes)


def _options(parts: Sequence[StoredPart]) -> dict[str, Any]:
    commands = dict.fromkeys(str(part.manifest.options.get("command", "")) for part in parts)
    return {
        "command": "\n".join(commands),
        "measured_us": min(part.began_us for part in parts),
        "merged": [part.id for part in parts],
    }


def _write(record: RunRecord, parts: Sequence[StoredPart], nodes: Mapping[int, PartNode]) -> LoadTotals:
    """Write the whole load of the parts, and end its run."""
    first, shifts = parts[0], shifts_of(parts)
    measured = merged_measurement(
        [
            MeasuredPart(part.number, part.measured, shift, int(part.facts.get("machine", 0)))
            for part, shift in zip(parts, shifts, strict=True)
        ]
    )
    whole = first.plan["threads"] * first.count
    write_plan(record.folder, {**first.plan, "threads": whole, "part": {}, "log": None})
    # A part that the server refused knows less of it than the others.
    write_environment(record.folder, max((part.environment for part in parts), key=len))
    accounts = list(accounts_of(parts, shifts, nodes))
    write_merged(record.folder, {"count": first.count, "parts": accounts})
    write_measurement(record.folder, measured)
    missing = first.count - len(parts)
    status, reason = load_ending(measured.totals)
    if missing and status == "complete":
        status, reason = "failed", f"{missing} of {first.count} parts are missing"
    record.end(status, reason, measured.totals.elapsed_ns)
    return measured.totals
