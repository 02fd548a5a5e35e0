"""Exclude statements from a captured workload. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from uncork.model.database.workload import CapturedWorkload, NotCaptured

__all__ = ["without_statements"]


def without_statements(workload: CapturedWorkload, reasons: Mapping[int, str]) -> CapturedWorkload:
    """Return a workload without some statements, by template; they are missing for the given reasons."""
    gone = [one for one in workload.statements if one.template in reasons]
    missing = [
        *(NotCaptured(one.template, one.sql, reasons[one.template], one.share) for one in gone),
        *(replace(one, reason=reasons.get(one.template, one.reason)) for one in workload.missing),
    ]
    return replace(
        workload,
        statements=tuple(one for one in workload.statements if one.template not in reasons),
        missing=tuple(sorted(missing, key=lambda one: (-one.share, one.template))),
    )
