"""Exclude statements from a captured workload. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from uncork.model.database.workload import CapturedWorkload, NotCaptured


def without_statements(workload: CapturedWorkload, reasons: Mapping[int, str]) -> CapturedWorkload:
    """Return a workload without some statements, by template; they are missing for the given reasons."""
    gone = [statement for statement in workload.statements if statement.template in reasons]
    missing = [
        *(
            NotCaptured(statement.template, statement.sql, reasons[statement.template], statement.share)
            for statement in gone
        ),
        *(
            replace(captured, reason=reasons.get(captured.template, captured.reason))
            for captured in workload.missing
        ),
    ]
    return replace(
        workload,
        statements=tuple(statement for statement in workload.statements if statement.template not in reasons),
        missing=tuple(sorted(missing, key=lambda one: (-one.share, one.template))),
    )
