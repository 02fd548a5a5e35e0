"""The progress of a run: what it has stored so far."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from uncork.model.stored_run import StoredRun
from uncork.model.units import count_words, format_count, format_duration
from uncork.report.blocks import Spark
from uncork.store.layout import PARTS, read_manifest
from uncork.store.query import RunReader
from uncork.store.snapshots import SNAPSHOTS, read_snapshots

_SHOWN: Final = 12
"""Snapshots that the table lists."""
_LOAD_COLUMNS: Final = (
    *("at", "operations a second", "failed", "median latency", "99th percentile", "longest", "clients"),
)
_DRAWN: Final = 300
"""Snapshots that are drawn: five minutes, with a snapshot every second."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is: a sentence, a table and small charts. `idle_s` is the time since it last stored data.

    Columns from `numbers` on are numbers. With `sentences`, the last column has sentences, whose lines wrap.
    """

    sentence: str
    caption: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    sparks: tuple[Spark, ...] = ()
    numbers: int = 0
    sentences: bool = False
    idle_s: float = 0.0


def has_progress(run: StoredRun) -> bool:
    """Say whether a run, or one of its parts, has snapshots."""
    return any(read_snapshots(folder) for folder in (run.folder, *(run.folder / PARTS).glob("*/")))


def run_progress(run: StoredRun) -> RunProgress:
    """Return what a run has stored so far. Raises StoreError if its files are damaged."""
    return replace(_progress(run), idle_s=max(0.0, time.time() - _last_change_s(run.folder)))


def _progress(run: StoredRun) -> RunProgress:
    if run.kind in ("cure", "together"):
        return (_cure if run.kind == "cure" else _together)(run)
    if run.kind in ("load", "database"):
        snapshots = read_snapshots(run.folder)
        if not snapshots:
            return RunProgress("Nothing is stored yet: the first snapshot comes after a second.")
        return (_load if run.kind == "load" else _database)(run, snapshots)
    with closing(RunReader(run.folder)) as reader:
        if run.kind == "experiment":
            return _experiment(reader)
        if run.kind == "sweep":
            return _sweep(reader)
    return RunProgress("There is nothing to show yet: it stores its results when it ends.")


def _experiment(reader: RunReader) -> RunProgress:
    totals, rounds = reader.totals(), reader.last_round()
    failed = f", {format_count(totals['failed'])} of them failed" if totals["failed"] else ""
    trials = count_words(totals["trials"], "trial")
    sentence = (
        f"{trials} stored{failed}, in {count_words(rounds, 'round')}."
        if rounds
        else "No trial is stored yet."
    )
    rows = reader.ask(_TRIALS)[1]
    columns = ("workload", "cell", "variant", "trials", "failed", "median latency", "operations a second")
    return RunProgress(
        sentence,
        "Measured so far; the report adds verdicts with their intervals",
        columns,
        tuple(_experiment_row(row) for row in rows),
        numbers=3,
    )


def _experiment_row(row: Sequence[Any]) -> tuple[str, ...]:
    workload, cell, variant, again, trials, failed, p50_ns, rate = row
    return (
        *(workload, cell, f"{variant} (again)" if again else variant),
        *(format_count(trials), format_count(failed)),
        "" if p50_ns is None else format_duration(p50_ns),
        "" if rate is None else format_count(round(rate)),
    )


def _load(run: StoredRun, snapshots: Sequence[Mapping[str, Any]]) -> RunProgress:
    rates = [_rate(snapshot, "succeeded") for snapshot in snapshots]
    last, failed = snapshots[-1], sum(snapshot["failed"] for snapshot in snapshots)
    elapsed = format_duration(last["elapsed_ns"])
    whole, now = _wanted_ns(run.folder), _now(run)
    of = "" if whole is None else f" of {format_duration(whole)}"
    sentence = (
        f"{elapsed}{of}: {format_count(round(rates[-1]))} operations a second {now}, 99 % under "
        f"{format_duration(last['p99_ns'])}; {_failures(failed)} since it began."
    )
    rows = tuple(_load_row(snapshot) for snapshot in reversed(snapshots[-_SHOWN:]))
    sparks = tuple(_load_sparks(snapshots, now))
    caption = f"The last {count_words(len(rows), 'snapshot')}, newest first"
    return RunProgress(sentence, caption, _LOAD_COLUMNS, rows, sparks)


def _load_row(snapshot: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        format_duration(snapshot["elapsed_ns"]),
        format_count(round(_rate(snapshot, "succeeded"))),
        format_count(snapshot["failed"]),
        *(format_duration(snapshot[name]) for name in ("p50_ns", "p99_ns", "max_ns")),
        format_count(snapshot["clients"]),
    )


def _load_sparks(snapshots: Sequence[Mapping[str, Any]], now: str, name: str = "") -> Iterator[Spark]:
    """Yield small charts of a load: throughput, latency, and failures if there are any."""

    def many(value: float) -> str:
        return format_count(round(value))

    def title(text: str) -> str:
        return f"{name}: {text[:1].lower()}{text[1:]} {now}" if name else f"{text} {now}"

    rates = [_rate(snapshot, "succeeded") for snapshot in snapshots]
    yield _spark(title("Operations a second"), snapshots, rates, many)
    late = [snapshot["p99_ns"] for snapshot in snapshots]
    yield _spark(title("99th percentile"), snapshots, late, format_duration)
    if any(snapshot["failed"] for snapshot in snapshots):
        lost = [_rate(snapshot, "failed") for snapshot in snapshots]
        yield _spark(title("Failed a second"), snapshots, lost, many)


def _together(run: StoredRun) -> RunProgress:
    """Return the progress of loads that run together: the newest snapshot of each load that has not ended."""
    folders = {name: run.folder / PARTS / name for name in read_manifest(run.folder).options["loads"]}
    sent = {name: found for name, folder in folders.items() if (found := read_snapshots(folder))}
    if not sent:
        ended = any((folder / "load_totals").is_dir() for folder in folders.values())
        sentence = "The loads have ended." if ended else "The loads start together, when all are ready."
        return RunProgress(sentence)
    now, last = _now(run), {name: found[-1] for name, found in sent.items()}
    lengths = [_wanted_ns(folder) for folder in folders.values()]
    whole = "" if None in lengths else f" of {format_duration(max(filter(None, lengths)))}"
    elapsed = format_duration(max(wave["elapsed_ns"] for wave in last.values()))
    rates = [
        f"{name} {format_count(round(_rate(one, 'succeeded')))} operations a second {now}, 99 % under "
        f"{format_duration(one['p99_ns'])}"
        for name, one in last.items()
    ]
    failed = sum(counts["failed"] for found in sent.values() for counts in found)
    return RunProgress(
        f"{elapsed}{whole}: {'; '.join(rates)}; {_failures(failed)} since they began.",
        "The newest snapshot of each load",
        ("load", *_LOAD_COLUMNS),
        tuple((name, *_load_row(one)) for name, one in last.items()),
        tuple(spark for name, found in sent.items() for spark in _load_sparks(found, now, name)),
        numbers=1,
    )


def _database(run: StoredRun, snapshots: Sequence[Mapping[str, Any]]) -> RunProgress:
    last = snapshots[-1]
    names = list(dict.fromkeys(name for snapshot in snapshots for name, _ in snapshot["classes"]))
    classes = ", ".join(f"{name} {number:.1f}" for name, number in last["classes"]) or "none"
    sentence = (
        f"{format_duration(last['elapsed_ns'])}: {last['sessions']:.1f} sessions busy on average in the last "
        f"second ({classes})."
    )
    rows = tuple(
        (
            format_duration(snapshot["elapsed_ns"]),
            f"{snapshot['sessions']:.1f}",
            *(f"{dict(snapshot['classes']).get(name, 0.0):.1f}" for name in names),
        )
        for snapshot in reversed(snapshots[-_SHOWN:])
    )
    busy = [snapshot["sessions"] for snapshot in snapshots]
    spark = _spark(f"Busy sessions {_now(run)}", snapshots, busy, lambda value: f"{value:.1f}")
    caption = f"The last {count_words(len(rows), 'snapshot')}, newest first"
    return RunProgress(sentence, caption, ("at", "busy", *names), rows, (spark,))


def _cure(run: StoredRun) -> RunProgress:
    snapshots = read_snapshots(run.folder)
    if not snapshots:
        return RunProgress("Nothing is stored yet: the cure has just begun.")
    last = snapshots[-1]
    at = f"{format_duration(last['elapsed_ns'])} of at most {format_duration(last['budget_ns'])}"
    sentence = (
        f"{at}: {last['step']}." if run.status == "running" else f"It ended after {at}: {last['step']}."
    )
    told = [snapshot for snapshot in snapshots if snapshot["text"]]
    rows = tuple(
        (format_duration(line["elapsed_ns"]), line["step"].partition(": ")[0], line["text"])
        for line in reversed(told[-_SHOWN:])
    )
    caption = f"The last {count_words(len(rows), 'message')}, newest first"
    return RunProgress(sentence, caption, ("at", "step", "message"), rows, numbers=3, sentences=True)


def _spark(
    title: str,
    snapshots: Sequence[Mapping[str, Any]],
    values: Sequence[float],
    show: Callable[[float], str],
) -> Spark:
    """Return a small chart of the newest values; its title has the last, lowest and highest value."""
    shown, first = values[-_DRAWN:], snapshots[-len(values[-_DRAWN:])]
    words = f"{title}: {show(shown[-1])}, from {show(min(shown))} to {show(max(shown))}"
    ends = (format_duration(first["elapsed_ns"]), format_duration(snapshots[-1]["elapsed_ns"]))
    return Spark(words, tuple(shown), ends)


def _now(run: StoredRun) -> str:
    return "now" if run.status == "running" else "at the end"


def _rate(snapshot: Mapping[str, Any], name: str) -> float:
    return float(snapshot[name] / snapshot["seconds"]) if snapshot["seconds"] else 0.0


def _failures(number: int) -> str:
    return "none failed" if not number else f"{format_count(number)} failed"


def _wanted_ns(folder: Path) -> int | None:
    try:
        wanted = json.loads((folder / "plan.json").read_text())["stop"].get("duration_ns")
    except (OSError, ValueError, KeyError, AttributeError):
        return None
    return None if wanted is None else int(wanted)


def _sweep(reader: RunReader) -> RunProgress:
    rows = reader.ask(_VISITS)[1]
    sentence = f"{count_words(len(rows), 'load step')} stored." if rows else "No load step is stored yet."
    columns = ("step", "level", "operations a second", "median latency", "99th percentile", "failed")
    shown = tuple(
        (
            *(str(number), f"{level:g}", format_count(round(rate or 0))),
            *("" if ns is None else format_duration(ns) for ns in (p50_ns, p99_ns)),
            format_count(failed),
        )
        for number, level, rate, p50_ns, p99_ns, failed in rows
    )
    caption = "Load steps so far, newest first"
    return RunProgress(sentence, caption, columns, shown, tuple(_throughputs(rows)), numbers=0)


def _throughputs(rows: Sequence[Sequence[Any]]) -> Iterator[Spark]:
    rates = tuple(float(row[2] or 0) for row in reversed(rows))
    if rates:
        highest = f"at most {format_count(round(max(rates)))}"
        ends = ("first step", f"step {len(rates)}")
        yield Spark(f"Operations a second by load step: {highest}", rates, ends)


def _last_change_s(folder: Path) -> float:
    parts = (folder / PARTS).glob("*/")
    folders = (folder, *parts)
    places = (path for each in folders for path in each.iterdir() if path.is_dir() or path.name == SNAPSHOTS)
    return max(place.stat().st_mtime for place in (*folders, *places))


_TRIALS = """
SELECT workload, cell, variant, again, count(*), count(*) FILTER (outcome <> 'complete'),
       exp(avg(ln(p50_ns)) FILTER (outcome = 'complete' AND p50_ns > 0)),
       1e9 * sum(succeeded) FILTER (outcome = 'complete')
         / nullif(sum(elapsed_ns) FILTER (outcome = 'complete'), 0)
  FROM trials GROUP BY ALL ORDER BY workload, cell, variant, again
"""
_VISITS = """
SELECT number, level, succeeded / nullif(elapsed_ns / 1e9, 0), p50_ns, p99_ns, failed
  FROM sweep_visits ORDER BY number DESC
"""
