"""Write the run of a load or of a sweep of loads, and read it back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from uncork.errors import StoreError
from uncork.model.load import FailureTotals, LoadMeasurement, LoadOutcome, http_totals
from uncork.model.sweep import SweepSpec, Verification
from uncork.model.tables.load import IntervalStatus, LoadInterval, LoadTimes, LoadTotals
from uncork.model.tables.sweep import LoadStep
from uncork.model.units import count_words
from uncork.store.documents import decoded, read_document
from uncork.store.layout import write_atomically
from uncork.store.query import RunReader
from uncork.store.snapshots import read_snapshots
from uncork.store.system import SystemWriter
from uncork.store.tables import append_rows, read_rows

_COUNTED: Final = ("errors", "connect_errors", "retries")
"""Columns of totals that hold counts by SQLSTATE as JSON."""


def write_plan(folder: Path, plan: Mapping[str, Any]) -> None:
    """Write the load plan. The caller must remove the password first."""
    write_atomically(folder / "plan.json", json.dumps(plan, ensure_ascii=False, indent=1) + "\n")


def write_environment(folder: Path, facts: Mapping[str, Mapping[str, str]]) -> None:
    """Write facts about server, machine and core."""
    write_atomically(folder / "environment.json", json.dumps(facts, indent=2) + "\n")


def write_measurement(folder: Path, measured: LoadMeasurement) -> None:
    """Write a measurement. Totals are written last, so they exist only with everything else.

    Raises StoreError if the disk is full or the folder cannot be written.
    """
    if measured.times:
        rows = [{"position": place, **asdict(row)} for place, row in enumerate(measured.times)]
        append_rows(folder, "load_statements", rows)
    if measured.series:
        append_rows(folder, "load_series", [asdict(row) for row in measured.series])
    if measured.statuses:
        append_rows(folder, "load_statuses", [asdict(row) for row in measured.statuses])
    if measured.system is not None:
        SystemWriter(folder).append([({}, measured.system)])
    totals = asdict(measured.totals)
    counted: dict[str, str | None] = {name: json.dumps(dict(totals[name])) for name in _COUNTED}
    counted["failures"] = json.dumps(totals["failures"])
    counted["http"] = None if totals["http"] is None else json.dumps(totals["http"])
    append_rows(folder, "load_totals", [{**totals, "outcome": str(totals["outcome"]), **counted}])


class LoadReader(RunReader):
    """One stored load.

    Raises:
        StoreError: from any method, if the run's files are damaged.
    """

    def plan(self) -> dict[str, Any]:
        """Return the load plan, which has no password."""
        return self._document("plan.json", dict[str, Any])

    def measurement(self) -> LoadMeasurement:
        """Return the measurement.

        Raises:
            StoreError: also if the load has not ended yet.
        """
        totals = read_rows(self.folder, "load_totals")
        if not totals:
            seen = len(read_snapshots(self.folder))
            hint = f"; `uncork serve` shows its {count_words(seen, 'snapshot')}" if seen else ""
            raise StoreError(
                f"run {self.manifest.id} has no result: it is running, or was killed before its end{hint}"
            )
        times = sorted(read_rows(self.folder, "load_statements"), key=lambda row: row.pop("position"))
        series = (LoadInterval(**row) for row in read_rows(self.folder, "load_series"))
        statuses = (IntervalStatus(**row) for row in read_rows(self.folder, "load_statuses"))
        return LoadMeasurement(
            _totals(totals[-1]),
            tuple(LoadTimes(**row) for row in times),
            tuple(sorted(series, key=lambda row: (row.interval, row.script))),
            tuple(sorted(statuses, key=lambda row: (row.interval, row.status))),
        )


def _totals(row: dict[str, Any]) -> LoadTotals:
    counted = {name: json.loads(row[name]) for name in _COUNTED}
    nested: dict[str, Any] = {
        "http": None if row["http"] is None else http_totals(json.loads(row["http"])),
        "failures": tuple(FailureTotals(**load) for load in json.loads(row["failures"])),
    }
    return LoadTotals(**{**row, **counted, **nested, "outcome": LoadOutcome(row["outcome"])})


# ---- sweeps of loads ----

_VERIFIED: Final = "sweep-verified.json"


def write_sweep(folder: Path, spec: SweepSpec) -> None:
    """Write the options of a sweep."""
    write_atomically(folder / "sweep.json", json.dumps(asdict(spec), indent=1) + "\n")


def append_load_step(folder: Path, step: LoadStep) -> None:
    """Append a load step, atomically.

    Raises StoreError if the disk is full or the folder cannot be written.
    """
    append_rows(folder, "sweep_visits", [{**asdict(step), "errors": json.dumps(dict(step.errors))}])


def write_verification(folder: Path, found: Verification) -> None:
    """Write the load that followed a sweep."""
    write_atomically(folder / _VERIFIED, json.dumps(asdict(found), indent=1) + "\n")


class SweepReader(LoadReader):
    """One stored sweep.

    Raises:
        StoreError: from any method, if the run's files are damaged.
    """

    def sweep(self) -> SweepSpec:
        """Return the options of the sweep."""
        return self._document("sweep.json", lambda data: decoded(SweepSpec, data))

    def verification(self) -> Verification | None:
        """Return the load that followed the sweep; None if none did."""
        return read_document(
            self.folder / _VERIFIED, lambda data: Verification(**{**data, "step": LoadStep(**data["step"])})
        )

    def steps(self) -> tuple[LoadStep, ...]:
        """Return the load steps in order.

        Raises:
            StoreError: also if there are none yet.
        """
        rows = self._rows("SELECT * EXCLUDE (filename) FROM sweep_visits ORDER BY number")
        if not rows:
            raise StoreError(
                f"run {self.manifest.id} has no result: it was killed before its first load step ended"
            )
        return tuple(LoadStep(**{**row, "errors": json.loads(row["errors"])}) for row in rows)
