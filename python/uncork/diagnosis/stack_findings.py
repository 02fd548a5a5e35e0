"""Find out from sampled stacks how much processor time the kernel takes, and for which calls. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uncork.model.results.stacks import EntryFacts, MeasureFacts, StackFinding, StackResult
from uncork.model.units import series_words, share_text

SYSTEM_TIME: Final = 1 / 3
"""Kernel share of processor time above which it is a finding."""
_MOST: Final = 3
_LEAST: Final = 0.05
_CALL_PREFIXES: Final = ("__x64_sys_", "__arm64_sys_", "__do_sys_", "__se_sys_", "ksys_", "do_sys_")
_FAULTS: Final = frozenset(
    {"exc_page_fault", "do_user_addr_fault", "asm_exc_page_fault", "do_page_fault", "do_mem_abort"}
)


def entry_words(measure: MeasureFacts, entries: Sequence[EntryFacts]) -> list[str]:
    """Return which calls make up the kernel's part of a measure, and which functions made them."""
    return [
        f"{share_text(entry.share / measure.kernel)} of it in {_call_words(entry.kernel)}"
        + (f", entered by {entry.user}" if entry.user else "")
        + (f" for {entry.caller}" if entry.caller not in ("", entry.user) else "")
        for entry in entries
        if measure.kernel
    ]


def find_system_time(result: StackResult) -> tuple[StackFinding, ...]:
    """Return a finding if the kernel takes more than a third of processor time."""
    share = result.system_share
    if share is None or share <= SYSTEM_TIME:
        return ()
    measure = next((measure for measure in result.measures if measure.name == "cpu"), None)
    every = () if measure is None else measure.entries
    entries = [entry for entry in every if entry.share >= _LEAST * share][:_MOST]
    if result.method.tool == "/proc" or not entries or measure is None or not measure.kernel:
        text = (
            f"The kernel takes {share_text(share)} of the CPU, for system calls, page faults or "
            "waking other processes. Run perf as root to see which."
        )
        return (StackFinding("system time", text, share, ()),)
    of_kernel = [frame for frame in measure.frames if frame.kernel and frame.own >= _LEAST / 5]
    hot = sorted(of_kernel, key=lambda frame: -frame.own)[:_MOST]
    hottest = series_words([f"{frame.name} {share_text(frame.own)}" for frame in hot])
    frames = f". Its hottest frames: {hottest}" if hot else ""
    ways = "; ".join(entry_words(measure, entries))
    text = f"The kernel takes {share_text(share)} of the CPU: {ways}{frames}."
    names = [(entry.caller or entry.user, entry.user, entry.kernel) for entry in entries]
    named = dict.fromkeys(name for of_entry in names for name in of_entry if name)
    places = dict.fromkeys([*named, *(frame.name for frame in hot)])
    return (StackFinding("system time", text, share, tuple(places)),)


def _call_words(kernel: str) -> str:
    """Return what the kernel was called for: the name of a system call, or page faults."""
    if kernel in _FAULTS:
        return "page faults"
    for prefix in _CALL_PREFIXES:
        if kernel.startswith(prefix):
            return kernel.removeprefix(prefix)
    return kernel
