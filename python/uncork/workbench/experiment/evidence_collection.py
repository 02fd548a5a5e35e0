"""Collect evidence for a variant: run its load, untimed, while sessions and processes are sampled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from uncork.analysis.experiment.stored import EVIDENCE_FOLDER
from uncork.engines.conninfo import Address
from uncork.errors import UncorkError
from uncork.experiment.ports import Load
from uncork.experiment.run.evidence_trials import evidence_request
from uncork.model.engine import POSTGRESQL
from uncork.model.http_trial import HttpTrial, TrialRequest
from uncork.model.measurement import Measurement
from uncork.model.trial import Cell
from uncork.model.variant_evidence import Sampling
from uncork.profile.proc_watch import process_name, tree
from uncork.profile.syscalls import count_syscalls
from uncork.store.tables import rows_table, write_evidence
from uncork.workbench.profile.stack_recording import StackRequest, record_stacks
from uncork.workbench.signals import uninterrupted

_CONNECTED_S: Final = 0.3
"""How long to wait for the load's connections: a trace follows only processes that exist when it starts."""


class LocalEvidence:
    """Implements the runner's `Evidence` port: samples on this machine, and stores the result."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / EVIDENCE_FOLDER

    def gather(
        self,
        place: tuple[Cell, str, str],
        kinds: Sequence[str],
        request: TrialRequest,
        load: Load,
        lengths: Sampling,
    ) -> str | None:
        """Run the load, sample meanwhile, and store the result; return why that was not possible, or None."""
        target = request.target
        if target.engine != POSTGRESQL:
            return f"uncork cannot sample the processes of {target.engine} yet"
        connection: dict[str, Any] = {**target.connection}
        address = replace(Address(**connection), database=target.database)
        wanted = StackRequest(
            postgres=address, seconds=lengths.watch_ns / 1e9, call_graph="dwarf", code="stacks" in kinds
        )
        try:
            with ThreadPoolExecutor(1) as sender:
                sending = sender.submit(load.run, evidence_request(request, lengths.watch_ns))
                recorded = record_stacks(wanted)
                measured = sending.result()
            if recorded.status == "interrupted":
                raise KeyboardInterrupt
            tables = dict(recorded.tables)
            facts = {**recorded.facts, "load": _load_facts(measured)}
            if "syscalls" in kinds:
                rows = self._count(request, load, lengths.syscalls_ns, facts)
                tables["stack_syscalls"] = rows_table("stack_syscalls", rows)
                facts["answers"] = _answers(request)
        except UncorkError as error:
            return str(error)
        cell, workload, variant = place
        facts["place"] = {"cell": dict(cell.levels), "workload": workload, "variant": variant}
        number = sum(1 for _ in self._folder.glob("*")) if self._folder.is_dir() else 0
        with uninterrupted():
            write_evidence(self._folder / f"{number + 1:03d}", facts, tables)
        return None if measured.succeeded else "no operation succeeded meanwhile"

    def _count(
        self, request: TrialRequest, load: Load, length_ns: int, facts: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Count system calls during a separate load."""
        if request.target.pid is None:
            facts["method"]["cannot_see"].append("system calls: the server's processes are not visible here")
            return []
        with ThreadPoolExecutor(1) as sender:
            sending = sender.submit(load.run, evidence_request(request, length_ns))
            time.sleep(_CONNECTED_S)
            pids = sorted(tree([request.target.pid]))
            counted = count_syscalls([pid for pid in pids if process_name(pid)], length_ns / 1e9)
            measured = sending.result()
        if counted.lack:
            facts["method"]["cannot_see"].append(f"system calls: {counted.lack}")
        facts["syscalls"] = {"by": counted.tool, "watched_ns": counted.watched_ns, **_load_facts(measured)}
        return [
            {**row, "process": row["process"] or process_name(row["pid"]) or "", "template": ""}
            for row in counted.rows
        ]


def _answers(request: TrialRequest) -> int:
    """Return how many answers the server sends per operation, to count operations in a trace.

    0 if only the service knows how many statements a request takes.
    """
    if isinstance(request, HttpTrial):
        return 0
    statements = request.statements
    if any(statement.batch is not None and statement.batch.pipelined for statement in statements):
        return 1
    times = sum(1 if statement.batch is None else statement.batch.times for statement in statements)
    return times + (2 if request.transaction else 0)


def _load_facts(measured: Measurement) -> dict[str, int]:
    return {"operations": measured.succeeded, "elapsed_ns": measured.elapsed_ns}
