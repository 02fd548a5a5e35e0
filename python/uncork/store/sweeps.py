"""Write the run of a sweep, with its options and load steps, and read it back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from uncork.errors import StoreError
from uncork.model.sweep import SweepSpec, Verification
from uncork.model.tables.sweep import LoadStep
from uncork.store.append import append_rows
from uncork.store.documents import decoded, read_document
from uncork.store.layout import write_atomically
from uncork.store.loads import LoadReader

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
