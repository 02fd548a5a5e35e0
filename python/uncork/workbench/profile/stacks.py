"""Profile stacks: record or import them, keep what was seen, say what it means."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from uncork.analysis.stacks.result import StackRun, stack_result, stack_run_facts, stacks_of
from uncork.errors import UsageError
from uncork.report.stacks.answer import answer_stacks
from uncork.workbench.profile.seen import Seen, now_text, store_evidence
from uncork.workbench.profile.stack_recording import StackRequest, record_stacks

__all__ = ["StackRequest", "check_stacks", "profile_stacks"]

_RATES: Final = (1, 1_000)


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
    earlier = stacks_of(root, against) if against else None
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
        root,
        seen,
        lambda manifest: answer_stacks(
            stack_result(stack_run_facts(manifest), facts, recorded.tables, before)
        ),
    )
    return StackRun(folder, result, recorded.tables["stacks"], before, recorded.trouble)


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "process"
