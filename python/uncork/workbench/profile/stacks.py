"""Profile stacks: record or import them, store them, and analyze them."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from uncork.analysis.stacks.result import StackRun, stack_result, stack_run_facts, stacks_of
from uncork.errors import UsageError
from uncork.report.stacks.answer import answer_stacks
from uncork.store.layout import check_writable
from uncork.workbench.clock import now_text
from uncork.workbench.profile.stack_recording import StackRequest, record_stacks
from uncork.workbench.profile.storing import store_evidence
from uncork.workbench.run_record import draft, start_run

__all__ = ["StackRequest", "check_stacks", "profile_stacks"]

_RATES: Final = (1, 1_000)


def check_stacks(request: StackRequest) -> None:
    """Check a request; raises UsageError if it contradicts itself, or names nothing to profile."""
    others = bool(request.pids or request.postgres)
    if request.command and others:
        raise UsageError("--command profiles the command it starts: leave out --pid and --postgres")
    if not (request.command or others or request.imports):
        raise UsageError("name what to profile: --pid, --postgres, --command, or --import of another profile")
    if not _RATES[0] <= request.rate_hz <= _RATES[1]:
        raise UsageError(f"--rate {request.rate_hz}: give from {_RATES[0]} to {_RATES[1]} samples a second")


def profile_stacks(root: Path, request: StackRequest, *, command: str, against: str = "") -> StackRun:
    """Profile what a request asks for, store it as a run under `root`, and analyze it.

    `against` names a stored run to compare with. `command` repeats the profile and holds no secret.

    Raises:
        UsageError: if a profile to import is damaged, or there is nothing to profile.
        ConnectError: if a server refuses the connection.
        SetupError: if the run's folder cannot be written.
        StoreError: if the run cannot be written, or the run compared with cannot be read.
    """
    check_writable(root)
    earlier = stacks_of(root, against) if against else None
    started, started_at = time.monotonic_ns(), now_text()
    recorded = record_stacks(request)
    facts = {**recorded.facts, "against": earlier[0] if earlier else ""}
    elapsed_ns = time.monotonic_ns() - started
    manifest = draft(
        kind="cpu",
        name=f"cpu-{_word(request.word)}",
        question=f"stacks: {request.target}",
        server=request.target,
        options={"command": command},
        started_at=started_at,
    )
    before = earlier[1] if earlier else None
    run = start_run(root, manifest, announce=False, undone="nothing was stored")
    result = store_evidence(
        run,
        recorded.status,
        elapsed_ns,
        facts,
        recorded.tables,
        lambda manifest: answer_stacks(
            stack_result(stack_run_facts(manifest), facts, recorded.tables, before)
        ),
    )
    return StackRun(run.folder, result, recorded.tables["stacks"], before, recorded.trouble)


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "process"
