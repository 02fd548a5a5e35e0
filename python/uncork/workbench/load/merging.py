"""Merge the runs of the parts of a load into one run: `uncork merge`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from uncork.engines import process
from uncork.errors import StoreError, UsageError
from uncork.load.merging import MeasuredPart, merged_measurement, unfinished_measurement
from uncork.load.parts import planned_operations
from uncork.load.run import INTERVAL_NS
from uncork.model.load import LoadMeasurement
from uncork.store.layout import Manifest, find_run
from uncork.store.loads import LoadReader, write_environment, write_measurement, write_plan
from uncork.store.parts import part_folder, reserved_operations, seen_intervals, write_merged
from uncork.workbench.load.sql import load_ending
from uncork.workbench.run_record import draft, start_run

__all__ = ["merge_runs"]

_OWN: Final = frozenset(
    {"part", "deadline_ns", "watch_pid", "sample", "log", "progress_intervals", "connection", "http", "seed"}
)
"""Fields of a plan that parts may have of their own, or that are compared by other names."""
_SHOWN: Final = 80
_ADDRESS: Final = ("host", "port", "user", "database", "authority")


@dataclass(frozen=True, slots=True)
class _Part:
    """A stored part. `finished` means that it wrote its result; otherwise it was killed."""

    folder: Path
    manifest: Manifest
    plan: Mapping[str, Any]
    environment: Mapping[str, Mapping[str, str]]
    measured: LoadMeasurement
    finished: bool
    number: int
    count: int

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def place(self) -> str:
        """The part's folder: parts that started together often have the same id."""
        return str(self.folder)

    @property
    def facts(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.manifest.options["part"]
        return found

    @property
    def began_us(self) -> int:
        """When the measured part began, by the part's own wall clock."""
        return int(self.manifest.options["measured_us"]) + (self.measured.totals.start_late_ns or 0) // 1000


def merge_runs(root: Path, runs: Sequence[str]) -> Path:
    """Merge the runs of a load's parts into a new run; return its folder.

    The new run keeps the parts. Parts that are missing, or were killed, are accounted for: what they may have
    sent is unknown.

    Raises:
        UsageError: if the runs are not parts of one load, or one is still running.
        SetupError, StoreError: if there is no such run, a run is damaged, or the result cannot be written.
    """
    parts = sorted((_read(find_run(root, run)) for run in runs), key=lambda part: part.number)
    _check(parts)
    first = parts[0]
    shifts = _shifts(parts)
    measured = merged_measurement(
        [
            MeasuredPart(part.number, part.measured, shift, int(part.facts.get("machine", 0)))
            for part, shift in zip(parts, shifts, strict=True)
        ]
    )
    options: dict[str, Any] = {
        "command": "\n".join(str(part.manifest.options.get("command", "")) for part in parts),
        "measured_us": min(part.began_us for part in parts),
        "merged": [part.id for part in parts],
    }
    manifest = draft(
        kind="load",
        name=f"{first.manifest.name}-merged",
        question=f"{first.manifest.question}, in {first.count} parts",
        seed=first.manifest.seed,
        server=first.manifest.server,
        options=options,
        started_at=min(part.manifest.started_at for part in parts),
        commit=lambda: first.manifest.commit,
    )
    with start_run(root, manifest, undone="nothing was merged") as record:
        for part in parts:
            _keep(record.folder, part)
        whole = first.plan["threads"] * first.count
        write_plan(record.folder, {**first.plan, "threads": whole, "part": {}, "log": None})
        # A part that the server refused knows less of it than the others.
        write_environment(record.folder, max((part.environment for part in parts), key=len))
        write_merged(record.folder, {"count": first.count, "parts": list(_accounts(parts, shifts))})
        write_measurement(record.folder, measured)
        missing = first.count - len(parts)
        status, reason = load_ending(measured.totals)
        if missing and status == "complete":
            status, reason = "failed", f"{missing} of {first.count} parts are missing"
        record.end(status, reason, measured.totals.elapsed_ns)
    return record.folder


def _read(folder: Path) -> _Part:
    with closing(LoadReader(folder)) as reader:
        manifest = reader.manifest
        facts = manifest.options.get("part")
        if manifest.kind != "load" or facts is None or facts["count"] < 2:
            what = "a load that was sent whole" if manifest.kind == "load" else f"of kind {manifest.kind}"
            raise UsageError(
                f"{folder} is {what}, not a part of a load; parts are sent by `uncork load sql --shard 1/4`"
            )
        finished = (folder / "load_totals").is_dir()
        if not finished and process.is_same(manifest.owner):
            raise UsageError(f"{folder} is still running; merge the parts when all have ended")
        if not (folder / "plan.json").is_file():
            raise UsageError(f"{folder} ended before it began to connect; leave it out")
        if finished:
            measured = reader.measurement()
        else:
            series = seen_intervals(folder)
            seconds = len({row.interval for row in series})
            measured = unfinished_measurement(series, f"killed after second {seconds}")
        return _Part(
            folder,
            manifest,
            reader.plan(),
            reader.environment(),
            measured,
            finished,
            facts["number"],
            facts["count"],
        )


def _check(parts: Sequence[_Part]) -> None:
    """Raise UsageError unless the runs are parts of one load."""
    first = parts[0]
    seen: dict[int, _Part] = {}
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


def _compared(part: _Part, first: _Part) -> Iterator[tuple[str, str, str]]:
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
        {key: value for key, value in (one.plan.get("http") or {}).items() if key not in _ADDRESS}
        for one in (part, first)
    )
    yield "the requests", _json(http), _json(others)


def _start(part: _Part) -> str:
    start_ns = part.facts.get("start_at_ns")
    return "none" if start_ns is None else datetime.fromtimestamp(start_ns / 1e9, UTC).isoformat()


def _build(part: _Part) -> str:
    return f"{part.manifest.uncork_version} {part.environment.get('core', {}).get('version', '')}".strip()


def _target(part: _Part) -> str:
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


def _shifts(parts: Sequence[_Part]) -> list[int]:
    """Return for each part in which interval of the whole load it began."""
    start = min(part.began_us for part in parts)
    return [round((part.began_us - start) * 1000 / INTERVAL_NS) for part in parts]


def _keep(folder: Path, part: _Part) -> None:
    """Copy a part into the merged run; a killed part gets the tables that it could not write."""
    place = part_folder(folder, part.number)
    try:
        shutil.copytree(part.folder, place)
    except OSError as error:
        raise StoreError(f"cannot copy {part.folder}: {error}") from error
    if not part.finished:
        write_measurement(place, part.measured)


def _accounts(parts: Sequence[_Part], shifts: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the account of each part, so that ``planned = started + not_started + unknown``."""
    given = {part.number: (part, shift) for part, shift in zip(parts, shifts, strict=True)}
    start_us = min(part.began_us for part in parts)
    for number in range(1, parts[0].count + 1):
        planned = _planned(parts[0], number)
        if number not in given:
            account = {"started": 0, "not_started": 0, "unknown": planned}
            yield {"number": number, "stored": False, "planned": planned, **account}
            continue
        part, shift = given[number]
        started = part.measured.totals.started
        unknown = 0 if part.finished else max(0, reserved_operations(part.folder) - started)
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
            "not_started": None if planned is None else max(0, planned - started - unknown),
            "unknown": unknown,
        }


def _planned(part: _Part, number: int) -> int | None:
    plan = {**part.plan, "part": {"index": number - 1, "count": part.count}}
    return planned_operations(plan)
