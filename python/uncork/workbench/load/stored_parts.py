"""Read the stored parts of a load, check that they belong together, and account for their operations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from uncork.engines import process
from uncork.errors import UsageError
from uncork.load.merging import unfinished_measurement
from uncork.load.parts import planned_operations
from uncork.load.run import INTERVAL_NS
from uncork.model.load import LoadMeasurement, LoadOutcome, PartNode
from uncork.store.layout import Manifest
from uncork.store.loads import LoadReader
from uncork.store.parts import reserved_operations, seen_intervals

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
        """What the manifest says about the part: see `uncork.workbench.load.part`."""
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
        planned = _planned(parts[0], number)
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

    In an open loop these are the arrivals until then. In a closed loop that ends after a time, only the
    server decides.
    """
    duration_ns, until_ns = plan["stop"].get("duration_ns"), node.sent_until_ns
    if planned is None or duration_ns is None or until_ns is None or plan.get("arrivals") is None:
        return planned
    cut = {"duration_ns": max(1, min(duration_ns, until_ns))}
    return min(planned, _planned_by({**plan, "stop": cut}, number) or 0)


def _planned(part: StoredPart, number: int) -> int | None:
    return _planned_by(part.plan, number, part.count)


def _planned_by(plan: Mapping[str, Any], number: int, count: int | None = None) -> int | None:
    count = plan["part"]["count"] if count is None else count
    return planned_operations({**plan, "part": {"index": number - 1, "count": count}})
