"""Merge the parts of a load into one run: of stored runs (`uncork merge`), or of the nodes of a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from uncork.engines import process
from uncork.errors import RunError, UsageError
from uncork.load.merging import MeasuredPart, merged_measurement, unfinished_measurement
from uncork.load.parts import planned_operations
from uncork.load.run import INTERVAL_NS
from uncork.model.load import LoadMeasurement, LoadOutcome, PartNode
from uncork.model.tables.load import LoadTotals
from uncork.store.layout import Manifest, find_run
from uncork.store.loads import LoadReader, write_environment, write_measurement, write_plan
from uncork.store.parts import keep_part, part_folder, reserved_operations, seen_intervals, write_merged
from uncork.workbench.load.sessions import load_ending
from uncork.workbench.run_record import RunRecord, draft, start_run


def merge_runs(root: Path, runs: Sequence[str]) -> Path:
    """Merge the runs of a load's parts into a new run; return its folder.

    The new run keeps the parts. Parts that are missing, or were killed, are accounted for: what
    they may have sent is unknown.

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


# ---- the stored parts of a load, and the account of their operations ----


_OWN: Final = frozenset(
    {"part", "deadline_ns", "watch_pid", "sample", "log", "progress_intervals", "connection", "http", "seed"}
)
"""Fields of a plan that parts may have of their own, or that are compared by other names."""
_SHOWN: Final = 80
_ADDRESS: Final = ("host", "port", "user", "database", "authority")


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A stored part. `finished` means that it wrote its result; otherwise it was killed, or lost.

    `node` is what its coordinator knows, if it had one.
    """

    folder: Path
    manifest: Manifest
    plan: Mapping[str, Any]
    environment: Mapping[str, Mapping[str, str]]
    measured: LoadMeasurement
    finished: bool
    number: int
    count: int
    node: PartNode | None = None

    @property
    def id(self) -> str:
        """The id of the part's run."""
        return self.manifest.id

    @property
    def place(self) -> str:
        """The part's folder: parts that started together often have the same id."""
        return str(self.folder)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the manifest says about the part: see `uncork.workbench.load.sessions`."""
        found: Mapping[str, Any] = self.manifest.options["part"]
        return found

    @property
    def began_us(self) -> int:
        """When the measured part began, by the coordinator's wall clock, else by the part's own."""
        late_us = (self.measured.totals.start_late_ns or 0) // 1000
        return int(self.manifest.options["measured_us"]) + late_us - self.offset_ns // 1000

    @property
    def start_at_ns(self) -> int | None:
        """When the part was to start, by the same clock."""
        start_ns = self.facts.get("start_at_ns")
        return None if start_ns is None else start_ns - self.offset_ns

    @property
    def offset_ns(self) -> int:
        """How far the part's clock is ahead of the coordinator's; 0 without a coordinator."""
        return 0 if self.node is None else self.node.offset_ns


def read_part(folder: Path, node: PartNode | None = None) -> StoredPart:
    """Return a stored part; `node` is what its coordinator knows about it.

    Raises:
        UsageError: if the run is no part of a load, still running, or ended before it connected.
        StoreError: if the run is damaged.
    """
    with closing(LoadReader(folder)) as reader:
        manifest = reader.manifest
        facts = manifest.options.get("part")
        if manifest.kind != "load" or facts is None or (facts["count"] < 2 and node is None):
            what = "a load that was sent whole" if manifest.kind == "load" else f"of kind {manifest.kind}"
            raise UsageError(
                f"{folder} is {what}, not a part of a load; parts are sent by `uncork load sql --shard 1/4`"
            )
        finished = (folder / "load_totals").is_dir()
        if not finished and node is None and process.is_same(manifest.owner):
            raise UsageError(f"{folder} is still running; merge the parts when all have ended")
        if not (folder / "plan.json").is_file():
            raise UsageError(f"{folder} ended before it began to connect; leave it out")
        if finished:
            measured = reader.measurement()
        else:
            series = seen_intervals(folder)
            seconds = len({row.interval for row in series})
            measured = (
                unfinished_measurement(series, f"killed after second {seconds}")
                if node is None
                else unfinished_measurement(series, f"lost after second {seconds}", LoadOutcome.NODE_LOST)
            )
        return StoredPart(
            folder,
            manifest,
            reader.plan(),
            reader.environment(),
            measured,
            finished,
            facts["number"],
            facts["count"],
            node,
        )


def check_parts(parts: Sequence[StoredPart]) -> None:
    """Raise UsageError unless the runs are parts of one load."""
    first = parts[0]
    seen: dict[int, StoredPart] = {}
    for part in parts:
        if part.count != first.count:
            raise UsageError(
                f"{part.place} is part {part.number}/{part.count}, but {first.place} is part "
                f"{first.number}/{first.count}: they belong to different loads"
            )
        if part.number in seen:
            raise UsageError(
                f"part {part.number}/{part.count} is given twice: {seen[part.number].place} and "
                f"{part.place}; leave one out"
            )
        seen[part.number] = part
        for what, mine, others in _compared(part, first):
            if mine != others:
                raise UsageError(
                    f"{part.place} and {first.place} are not parts of one load: they differ in {what} "
                    f"({' and '.join(_difference(mine, others))})"
                )
    for part in parts:
        for other in parts:
            end_us = other.began_us + max(other.measured.totals.elapsed_ns, INTERVAL_NS) // 1000
            if part.finished and other.finished and part.began_us > end_us:
                raise UsageError(
                    f"{part.place} began after {other.place} had ended; "
                    "start all parts with the same --start-at"
                )


def _compared(part: StoredPart, first: StoredPart) -> Iterator[tuple[str, str, str]]:
    """Yield what parts of one load have in common, and what each of two has."""
    for what, get in (
        ("the build of uncork", _build),
        ("the target", _target),
        ("--random-seed", lambda one: str(one.plan["seed"])),
        ("--start-at", _start),
    ):
        yield what, get(part), get(first)
    for name in sorted({*part.plan, *first.plan} - _OWN):
        yield f'"{name}" of the plan', _json(part.plan.get(name)), _json(first.plan.get(name))
    http, others = (
        {key: value for key, value in (stored_part.plan.get("http") or {}).items() if key not in _ADDRESS}
        for stored_part in (part, first)
    )
    yield "the requests", _json(http), _json(others)


def _start(part: StoredPart) -> str:
    start_ns = part.start_at_ns
    return "none" if start_ns is None else datetime.fromtimestamp(start_ns / 1e9, UTC).isoformat()


def _build(part: StoredPart) -> str:
    return f"{part.manifest.uncork_version} {part.environment.get('core', {}).get('version', '')}".strip()


def _target(part: StoredPart) -> str:
    address = part.plan.get("http") or part.plan["connection"]
    return ":".join(str(address[name]) for name in _ADDRESS if name in address)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _difference(one: str, other: str) -> tuple[str, ...]:
    """Return two texts for a message: long ones only around their first difference."""
    if max(len(one), len(other)) <= _SHOWN:
        return one, other
    pairs = enumerate(zip(one, other, strict=False))
    differs = next((place for place, (mine, its) in pairs if mine != its), min(len(one), len(other)))
    begin = max(0, differs - _SHOWN // 4)
    return tuple(f"{'…' if begin else ''}{text[begin : begin + _SHOWN]}…" for text in (one, other))


def shifts_of(parts: Sequence[StoredPart]) -> list[int]:
    """Return for each part in which interval of the whole load it began."""
    start = min(part.began_us for part in parts)
    return [round((part.began_us - start) * 1000 / INTERVAL_NS) for part in parts]


def accounts_of(
    parts: Sequence[StoredPart], shifts: Sequence[int], nodes: Mapping[int, PartNode]
) -> Iterator[dict[str, Any]]:
    """Yield the account of each part, so that ``planned = started + not_started + unknown``.

    `nodes` holds the coordinator's facts about each part, including parts that stored nothing.
    """
    given = {part.number: (part, shift) for part, shift in zip(parts, shifts, strict=True)}
    start_us = min(part.began_us for part in parts)
    for number in range(1, parts[0].count + 1):
        node = nodes.get(number)
        planned = _planned_by(parts[0].plan, number, parts[0].count)
        known = {} if node is None else {"node": asdict(node)}
        if number not in given:
            most = planned if node is None else _begun_at_most(parts[0].plan, number, planned, node)
            rest = None if planned is None or most is None else planned - most
            account = {"started": 0, "not_started": rest, "unknown": most}
            yield {"number": number, "stored": False, "planned": planned, **account, **known}
            continue
        part, shift = given[number]
        started = part.measured.totals.started
        most = started if part.finished else _begun_by(part, planned)
        unknown = None if most is None else max(0, most - started)
        ended = None if planned is None or unknown is None else max(0, planned - started - unknown)
        yield {
            "number": number,
            "stored": True,
            "run": part.id,
            "host": part.facts.get("host", ""),
            "finished": part.finished,
            "shift": shift,
            "began_after_ns": (part.began_us - start_us) * 1000,
            "planned": planned,
            "started": started,
            "not_started": ended,
            "unknown": unknown,
            **known,
        }


def _begun_by(part: StoredPart, planned: int | None) -> int | None:
    """Return how many operations an unfinished part began at most; None if nothing bounds them."""
    if part.node is None or part.node.sent_until_ns is None:
        return reserved_operations(part.folder)
    return _begun_at_most(part.plan, part.number, planned, part.node)


def _begun_at_most(plan: Mapping[str, Any], number: int, planned: int | None, node: PartNode) -> int | None:
    """Return how many operations a lost part may have begun until its lease ended.

    In an open loop these are the arrivals until then. In a closed loop that ends after a time, only
    the server decides.
    """
    duration_ns, until_ns = plan["stop"].get("duration_ns"), node.sent_until_ns
    if planned is None or duration_ns is None or until_ns is None or plan.get("arrivals") is None:
        return planned
    cut = {"duration_ns": max(1, min(duration_ns, until_ns))}
    return min(planned, _planned_by({**plan, "stop": cut}, number) or 0)


def _planned_by(plan: Mapping[str, Any], number: int, count: int | None = None) -> int | None:
    count = plan["part"]["count"] if count is None else count
    return planned_operations({**plan, "part": {"index": number - 1, "count": count}})
