"""Read the trials of a stored run back into a ledger."""

from __future__ import annotations

from uncork.experiment.plan.order import cells
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.spec.schema import Spec
from uncork.model.trial import Arm, Trial
from uncork.store.hosts import hosts_and_waves
from uncork.store.query import RunReader


def stored_ledger(reader: RunReader, spec: Spec) -> Ledger:
    """Return a ledger with every trial of a stored run; refusals are not included.

    Raises:
        StoreError: if the run's files are damaged.
    """
    hosts, waves = hosts_and_waves(reader.folder)
    ledger = Ledger(spec, "block" if reader.manifest.unit == "block" else "round", hosts, waves)
    known = {cell.name: cell for cell in cells(spec)}
    for row in reader.values():
        arm = Arm(row.variant, row.again)
        trial = Trial(row.round, row.block, row.position, known[row.cell], row.workload, arm)
        ledger.add_value(trial, row.value, row.succeeded, row.started, long_slices=row.long_slices)
    return ledger


def judged_ledger(reader: RunReader, spec: Spec) -> Ledger:
    """Return a ledger with every trial and refusal of a stored run.

    Raises:
        StoreError: if the run's files are damaged.
    """
    ledger = stored_ledger(reader, spec)
    known = {cell.name: cell for cell in cells(spec)}
    for row in reader.refusals():
        ledger.refused[known[row.cell], row.workload, row.variant] = row.reason
    return ledger
