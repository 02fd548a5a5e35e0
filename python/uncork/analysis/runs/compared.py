"""Decide which stored runs are compared with which, from what a person typed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from uncork.errors import UsageError
from uncork.model.stored_run import BASELINE
from uncork.model.units import parse_share
from uncork.store.layout import failure_reason, find_run, read_manifest, read_names

_MOST: Final = 20


def compared_runs(runs: Path, wanted: Sequence[str], against: str | None = None) -> tuple[Path, list[Path]]:
    """Return the folder of the run to compare with (`against`, else the first), and those of the others.

    Raises:
        UsageError: if there is none to compare with, the baseline failed, or there are too many others.
        SetupError: if one of them is not stored.
    """
    before, others = _sides(wanted, against, runs)
    folders = [find_run(runs, name) for name in others]
    first = find_run(runs, before)
    if against is None and len(wanted) == 1:
        _refuse_failed_baseline(first)
    if len(folders) > _MOST:
        raise UsageError(
            f"{len(folders)} runs are too many to compare: the limit is {_MOST}; `uncork history` shows more"
        )
    return first, folders


def _refuse_failed_baseline(folder: Path) -> None:
    """Refuse a run named baseline that has failed: nobody named it in this command."""
    manifest = read_manifest(folder)
    if manifest.status == "failed":
        raise UsageError(
            f"the run named {BASELINE}, {manifest.id}, failed{failure_reason(manifest)}; name another: "
            f"uncork runs name RUN {BASELINE}, or compare with this one all the same: --against {BASELINE}"
        )


def comparison_kind(before: Path, others: Sequence[Path]) -> Literal["figures", "logs", "stacks"]:
    """Return how runs are compared: as logs or stacks if all of them are such, else by their metrics.

    Raises:
        UsageError: if logs or stacks are more than two.
        StoreError: if one is damaged.
    """
    kinds = {read_manifest(folder).kind for folder in (before, *others)}
    if kinds not in ({"cpu"}, {"log"}):
        return "figures"
    if len(others) > 1:
        raise UsageError("logs and stacks can only be compared two at a time: name two runs")
    return "stacks" if kinds == {"cpu"} else "logs"


def practical_share(text: str) -> float:
    """Return the smallest difference that matters, from text such as ``3%``.

    Raises:
        UsageError: if the text is not a percentage.
    """
    try:
        share = parse_share(text)
    except ValueError as error:
        raise UsageError(f"--practical: {error}") from error
    if not share:
        raise UsageError("--practical must be above zero")
    return share


def _sides(wanted: Sequence[str], against: str | None, runs: Path) -> tuple[str, list[str]]:
    if against is not None:
        return against, list(wanted)
    if len(wanted) > 1:
        return wanted[0], list(wanted[1:])
    if BASELINE in read_names(runs):
        return BASELINE, list(wanted)
    raise UsageError(
        f"compare {wanted[0]} with which run? Name two runs, or name a baseline once: "
        f"uncork runs name RUN {BASELINE}"
    )
