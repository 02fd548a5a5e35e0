"""Accepted changes: a file that lists them, and their effect on broken gates. Pure.

The file is TOML, kept with the experiment in the repository::

    [[change]]
    gate = "latency_p99 < +5%"
    workload = "orders"              # default: all
    reason = "each order is now checked against the stock"
    date = "2026-05-31"
    by = "Ada"                       # optional
    until = "2026-12-31"             # the last day on which it is valid; default: no end
    limit = "+12%"                   # the largest accepted change; default: no limit

A broken gate with such an entry raises no alarm, unless it is worse than `limit` or `until` has passed.
"""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from uncork.errors import UsageError
from uncork.experiment.draft_text import toml
from uncork.experiment.spec.gates import parse_gate, write_bound
from uncork.experiment.spec.problems import Problem, hint, in_order, line_of, toml_message
from uncork.model.results.guard import Acknowledgement, Gate, GateCheck, GateOutcome, known_metric, metric_of

FILE_NAME: Final = "uncork-acknowledged.toml"
HEADER: Final = (
    "# Accepted changes: `uncork guard` raises no alarm for them. `uncork acknowledge` adds entries.\n"
)
_KEYS: Final = ("gate", "workload", "reason", "date", "by", "until", "limit")
_REQUIRED: Final = ("gate", "reason", "date")


@dataclass(frozen=True, slots=True)
class Known:
    """Checks after applying the accepted changes, and the entries that are no longer needed."""

    checks: tuple[GateCheck, ...]
    unused: tuple[Acknowledgement, ...]


def parse_acknowledged(text: str, *, file: str) -> tuple[Acknowledgement, ...]:
    """Parse a file of accepted changes. Raises UsageError with every problem and its line."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(toml_message(file, text, error)) from error
    entries = data.get("change", [])
    problems = [
        Problem((key,), f'unknown key "{key}"; the file may contain only [[change]] entries')
        for key in data
        if key != "change"
    ]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        problems.append(Problem(("change",), "expected [[change]] entries"))
        entries = []
    for number, entry in enumerate(entries, start=1):
        problems += _problems(entry, number)
    if problems:
        raise UsageError("\n".join(_place(problem, file, text) for problem in in_order(problems, text)))
    return tuple(map(_entry, entries))


def acknowledge(checks: Iterable[GateCheck], known: Sequence[Acknowledgement], today: datetime.date) -> Known:
    """Turn broken gates into acknowledged ones if an entry matches and is still valid.

    A broken gate stays broken if it exceeds an entry's limit or if the entry has expired; its reason then
    says so. An entry is unused if its gate is checked nowhere, or is kept everywhere.
    """
    found = tuple(checks)
    decided = tuple(_acknowledged(check, known, today) for check in found)
    workloads = {check.workload for check in found}
    unused = tuple(
        entry
        for entry in known
        if (not entry.workload or entry.workload in workloads)
        and all(check.outcome is GateOutcome.KEPT for check in found if _speaks_of(entry, check))
    )
    return Known(decided, unused)


def acknowledgement_of(
    check: GateCheck, *, reason: str, date: datetime.date, by: str = "", until: str = "", limit: str = ""
) -> Acknowledgement:
    """Return the entry for a broken gate; the default limit is its bad end. Raises UsageError."""
    if not reason.strip():
        raise UsageError("--reason: is empty; say why the change is accepted")
    gate, allowed = check.gate, _default_limit(check)
    if limit:
        try:
            allowed = parse_limit(limit, gate)
        except ValueError as error:
            raise UsageError(f"--limit: {error}") from error
    if until:
        try:
            last = datetime.date.fromisoformat(until)
        except ValueError as error:
            raise UsageError(f'--until: expected a date such as 2026-12-31; found "{until}"') from error
        if last < date:
            raise UsageError(f"--until: {until} has passed; today is {date}")
    text = gate.text if gate.text else gate.metric
    return Acknowledgement(text, check.workload, reason.strip(), date.isoformat(), by, until, allowed)


def entry_text(entry: Acknowledgement) -> str:
    """Return an entry as TOML; parsing it gives the same entry."""
    fields: dict[str, str] = {"gate": entry.gate, "workload": entry.workload, "reason": entry.reason}
    fields |= {"date": entry.date, "by": entry.by, "until": entry.until}
    fields["limit"] = limit_words(entry)
    lines = (f"{name} = {toml(value)}\n" for name, value in fields.items() if value)
    return f"\n[[change]]\n{''.join(lines)}"


def limit_words(entry: Acknowledgement) -> str:
    """Return an entry's limit in the notation of gates; empty if there is no limit."""
    return "" if entry.limit is None else write_bound(replace(parse_gate(entry.gate), limit=entry.limit))


def parse_limit(text: str, gate: Gate) -> float:
    """Parse how far a broken gate may go. Raises ValueError if that is no wider bound."""
    metric = known_metric(gate)
    if metric is None or gate.bound == "unchanged":
        raise ValueError(f'"{gate.text}" has no bound, so it cannot have a limit')
    try:
        limit = parse_gate(f"{gate.metric} {gate.relation} {text}")
    except UsageError as error:
        raise ValueError(str(error).split(": ", 1)[1]) from error
    if limit.workload or limit.bound != gate.bound:
        raise ValueError(f'expected a limit in the form of the gate "{gate.text}"; found "{text}"')
    if not _worse(gate, limit.limit, gate.limit):
        raise ValueError(f'{text} is within the gate\'s own bound "{gate.text}"; give a wider one')
    return limit.limit


def wider(acknowledgement: Acknowledgement, other: Acknowledgement, gate: Gate) -> Acknowledgement:
    """Return the more permissive of two entries for a gate."""
    if acknowledgement.limit is None or other.limit is None:
        return acknowledgement if acknowledgement.limit is None else other
    return other if _worse(gate, other.limit, acknowledgement.limit) else acknowledgement


def same_gate(text: str, gate: Gate) -> bool:
    """Return whether a text means this gate, in any wording and ignoring a workload in it."""
    try:
        other = parse_gate(text)
    except UsageError:
        return " ".join(text.split()).lower() == gate.text.lower()
    return (other.metric, other.bound, other.relation, other.limit) == (
        *(gate.metric, gate.bound, gate.relation, gate.limit),
    )


def _acknowledged(check: GateCheck, known: Sequence[Acknowledgement], today: datetime.date) -> GateCheck:
    if check.outcome is not GateOutcome.BROKEN:
        return check
    reasons = []
    for entry in known:
        if not _speaks_of(entry, check):
            continue
        refusal = _refusal(entry, check, today)
        if refusal is None:
            return replace(check, outcome=GateOutcome.ACKNOWLEDGED, acknowledgement=entry)
        reasons.append(refusal)
    return replace(check, reason="; ".join((check.reason, *reasons))) if reasons else check


def _speaks_of(entry: Acknowledgement, check: GateCheck) -> bool:
    return (not entry.workload or entry.workload == check.workload) and same_gate(entry.gate, check.gate)


def _refusal(entry: Acknowledgement, check: GateCheck, today: datetime.date) -> str | None:
    if entry.until and datetime.date.fromisoformat(entry.until) < today:
        return f"it was acknowledged only until {entry.until}"
    if entry.limit is None:
        return None
    found = _found(check)
    if found is None or not _worse(check.gate, found, entry.limit):
        return None
    return f"this exceeds the {limit_words(entry)} that was acknowledged on {entry.date}"


def _found(check: GateCheck) -> float | None:
    return check.candidate if check.gate.bound == "value" else check.ratio


def _worse(gate: Gate, value: float, than: float) -> bool:
    sign = 1.0 if metric_of(gate).better == "lower" else -1.0
    return sign * value > sign * than + 1e-9 * abs(than)


def _default_limit(check: GateCheck) -> float | None:
    """Return the bad end of the interval, rounded outwards: to a tenth of a percent, values to 3 digits."""
    metric, found = known_metric(check.gate), _found(check)
    if metric is None or found is None or check.gate.bound == "unchanged":
        return None
    up = metric.better == "lower"
    end = check.high if up else check.low
    end = found if end is None else max(found, end) if up else min(found, end)
    step = (
        10.0 ** (len(f"{abs(end):.0f}") - 3)
        if check.gate.bound == "value" and metric.unit != "share"
        else 1e-3
    )
    rounded = round(end / step) * step
    if (rounded < end) if up else (rounded > end):
        rounded += step if up else -step
    limit = round(rounded, 9)
    return limit if _worse(check.gate, limit, check.gate.limit) else None


def _problems(entry: Mapping[str, Any], number: int) -> Iterator[Problem]:
    place = ("change", str(number))
    for key in entry:
        if key not in _KEYS:
            yield Problem((*place, key), f'unknown key "{key}"{hint(key, set(_KEYS))}')
    for key in _REQUIRED:
        if key not in entry:
            yield Problem((*place, key), "is required but missing; add it")
    for key in _KEYS:
        value = entry.get(key)
        if key in ("date", "until") and isinstance(value, datetime.date | datetime.datetime):
            continue
        if value is not None and not (isinstance(value, str) and value.strip()):
            yield Problem((*place, key), f"expected text in quotes; found {_short(value)}")
            return
    for key in ("date", "until"):
        value = entry.get(key)
        if isinstance(value, str):
            try:
                datetime.date.fromisoformat(value)
            except ValueError:
                yield Problem((*place, key), f'expected a date such as "2026-05-31"; found "{value}"')
    if isinstance(entry.get("gate"), str):
        yield from _gate_problems(entry, place)


def _gate_problems(entry: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[Problem]:
    try:
        gate = _gate(entry["gate"])
    except UsageError as error:
        yield Problem((*place, "gate"), str(error))
        return
    if gate.workload and entry.get("workload", gate.workload) != gate.workload:
        yield Problem(
            (*place, "workload"), f'the gate applies to "{gate.workload}", not to "{entry["workload"]}"'
        )
    if isinstance(entry.get("limit"), str):
        try:
            parse_limit(entry["limit"], gate)
        except ValueError as error:
            yield Problem((*place, "limit"), str(error))


_UNWRITTEN: Final[Collection[str]] = ("same answer",)
"""Gates that every guard has without being written."""


def _gate(text: str) -> Gate:
    plain = " ".join(text.split()).lower()
    return Gate(plain, "answer", "unchanged", "=", 1.0) if plain in _UNWRITTEN else parse_gate(text)


def _entry(entry: Mapping[str, Any]) -> Acknowledgement:
    gate = _gate(entry["gate"])
    limit = entry.get("limit")
    return Acknowledgement(
        gate=entry["gate"].strip(),
        workload=entry.get("workload", gate.workload),
        reason=entry["reason"].strip(),
        date=_date(entry["date"]),
        by=entry.get("by", "").strip(),
        until=_date(entry["until"]) if "until" in entry else "",
        limit=None if limit is None else parse_limit(limit, gate),
    )


def _date(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        value = value.date()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _place(problem: Problem, file: str, text: str) -> str:
    """Return a problem as text; entries count from 1."""
    if len(problem.key) < 2:
        return problem.text(file, text)
    table, number, key = problem.key
    line = line_of(text, (table, str(int(number) - 1), key))
    return f"{file}:{line}: change {number}: {key}: {problem.message}"


def _short(value: object) -> str:
    text = json.dumps(value) if isinstance(value, bool | int | float | str) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
