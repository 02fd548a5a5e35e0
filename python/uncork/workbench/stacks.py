"""Profile stacks: record or import them, keep what was seen, say what it means."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncork.errors import StoreError, UncorkError, UsageError
from uncork.model.results.stacks import StackResult, StackRunFacts
from uncork.model.tables.stacks import STACK_TABLES
from uncork.store.evidence import read_evidence
from uncork.store.layout import Manifest, find_run, read_manifest
from uncork.workbench.evidence import Seen, now_text, store_evidence
from uncork.workbench.stack_recording import StackRequest, record_stacks
from uncork.workbench.stack_results import stack_result

__all__ = ["StackRequest", "StackRun", "check_stacks", "profile_stacks", "stored_stacks"]

_RATES: Final = (1, 1_000)


@dataclass(frozen=True, slots=True)
class StackRun:
    """A profile of stacks: where its run is, what a report says of it, its stacks and those before.

    `trouble` says why it broke off, if it did.
    """

    folder: Path
    result: StackResult
    stacks: pa.Table
    before: pa.Table | None
    trouble: str


def check_stacks(request: StackRequest) -> None:
    """Refuse what contradicts itself, or asks for nothing; raises UsageError."""
    others = bool(request.pids or request.postgres)
    if request.command and others:
        raise UsageError("--command profiles what it starts: leave out --pid and --postgres")
    if not (request.command or others or request.imports):
        raise UsageError("say what to profile: --pid, --postgres, --command, or --import of another profile")
    if not _RATES[0] <= request.rate_hz <= _RATES[1]:
        raise UsageError(
            f"--rate {request.rate_hz}: from {_RATES[0]} to {_RATES[1]} samples a second are possible"
        )


def profile_stacks(root: Path, request: StackRequest, *, command: str, against: str = "") -> StackRun:
    """Profile what is asked for, store it as a run under `root`, and say what it means.

    `against` names a stored run to compare with; `command` repeats all this and holds no secret.

    Raises:
        UsageError: if a profile to import is broken, or there is nothing to profile.
        ConnectError: if a server refuses us.
        SetupError: if the run cannot be laid out.
        StoreError: if it cannot be written, or the run compared with cannot be read.
    """
    earlier = _stacks_of(root, against) if against else None
    started, started_at = time.monotonic_ns(), now_text()
    recorded = record_stacks(request)
    facts = {**recorded.facts, "against": earlier[0] if earlier else ""}
    seen = Seen(
        kind="cpu",
        name=f"cpu-{_word(request.word)}",
        question=f"stacks: {request.target}",
        server=request.target,
        status=recorded.status,
        started_at=started_at,
        elapsed_ns=time.monotonic_ns() - started,
        command=command,
        facts=facts,
        tables=recorded.tables,
    )
    before = earlier[1] if earlier else None
    folder, result = store_evidence(
        root, seen, lambda manifest: stack_result(_run_facts(manifest), facts, recorded.tables, before)
    )
    return StackRun(folder, result, recorded.tables["stacks"], before, recorded.trouble)


def stored_stacks(folder: Path, *, against: str = "") -> StackRun:
    """Return what a report says of a stored profile of stacks, compared as it was or as asked for.

    Raises:
        StoreError: if its files are damaged.
    """
    facts, tables = read_evidence(folder, STACK_TABLES)
    wanted = against or facts["against"]
    before = None
    try:
        if wanted:
            name, before = _stacks_of(folder.parent, wanted)
            facts = {**facts, "against": name}
    except UncorkError:
        if against:
            raise
    result = stack_result(_run_facts(read_manifest(folder)), facts, tables, before)
    return StackRun(folder, result, tables["stacks"], before, "")


def _stacks_of(root: Path, name: str) -> tuple[str, pa.Table]:
    folder = find_run(root, name)
    kind = read_manifest(folder).kind
    if kind != "cpu":
        raise StoreError(
            f"run {folder.name} is of kind {kind}, and stacks are compared with those of kind cpu"
        )
    _, tables = read_evidence(folder, STACK_TABLES)
    return folder.name, tables["stacks"]


def _run_facts(manifest: Manifest) -> StackRunFacts:
    options: Mapping[str, Any] = manifest.options
    return StackRunFacts(
        id=manifest.id,
        status=manifest.status,
        started_at=manifest.started_at,
        elapsed_ns=sum(sitting.elapsed_ns for sitting in manifest.sittings),
        target=manifest.server,
        reproduce=str(options.get("command", "uncork profile cpu")),
        uncork_version=manifest.uncork_version,
    )


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "process"
