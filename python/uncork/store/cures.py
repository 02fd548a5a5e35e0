"""Read the result of a cure, which its run holds as cure.json."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from uncork.errors import StoreError
from uncork.model.database.copy import CopiedTable, CopyFacts, NotCopied
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.missing import HiddenWork, Missing, Unplanned
from uncork.model.results.advice import LookedAt
from uncork.model.results.costly_parts import CostlyPart
from uncork.model.results.cure import (
    CURE_VERSION,
    Change,
    CureResult,
    Handed,
    Net,
    StatementEffect,
    Tried,
)
from uncork.store.layout import check_version, unreadable

CURE_FILE: Final = "cure.json"


def read_cure(folder: Path) -> CureResult:
    """Return the result of a cure. Its `id` and `folder` are those of `folder` unless it has its own.

    Raises:
        StoreError: if the file is missing or damaged, or has another format version.
    """
    path = folder / CURE_FILE
    try:
        data = json.loads(path.read_text())
        check_version(path, data, CURE_VERSION)
        own = {"id": data["id"] or folder.name, "folder": data["folder"] or str(folder)}
        return _result({**data, **own})
    except FileNotFoundError as error:
        raise StoreError(
            f"{folder.name} is a cure that ended before its first result, so it has no report; run it again"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(path, error) from error


def _result(data: Mapping[str, Any]) -> CureResult:
    chosen, copy, seen, hidden = data["chosen"], data["copy"], data["looked_at"], data["hidden"]
    return CureResult(
        **{
            **data,
            "reasons": tuple(data["reasons"]),
            "tried": tuple(map(_tried, data["tried"])),
            "usual": tuple(map(_change, data["usual"])),
            "costliest": tuple(CostlyPart(**part) for part in data["costliest"]),
            "chosen": None if chosen is None else _change(chosen),
            "copy": None if copy is None else _copy(copy),
            "bill_before": _bill(data["bill_before"]),
            "bill_after": _bill(data["bill_after"]),
            "handed": tuple(Handed(**one) for one in data["handed"]),
            "missing": tuple(Missing(**one) for one in data["missing"]),
            "looked_at": None if seen is None else _looked_at(seen),
            "hidden": None if hidden is None else HiddenWork(**hidden),
        }
    )


def _looked_at(data: Mapping[str, Any]) -> LookedAt:
    groups = (Unplanned(**{**one, "templates": tuple(one["templates"])}) for one in data["unplanned"])
    return LookedAt(**{**data, "unplanned": tuple(groups)})


def _tried(data: Mapping[str, Any]) -> Tried:
    changes = tuple(map(_change, data["changes"]))
    return Tried(**{**data, "finding": _finding(data["finding"]), "changes": changes})


def _finding(data: Mapping[str, Any]) -> Finding:
    return Finding(
        **{
            **data,
            **{name: tuple(data[name]) for name in ("objects", "templates", "evidence", "against")},
            "bill": _bill(data["bill"]),
            "candidates": tuple(
                Candidate(**{**candidate, "against": tuple(candidate["against"])})
                for candidate in data["candidates"]
            ),
        }
    )


def _bill(data: Mapping[str, Any] | None) -> Bill | None:
    return None if data is None else Bill(**{**data, "low": data["low"] or 0.0})


def _change(data: Mapping[str, Any]) -> Change:
    net = data["net"]
    return Change(
        **{
            **data,
            "net": None if net is None else Net(**_bounded(net)),
            "effects": tuple(StatementEffect(**effect) for effect in data["effects"]),
            "against": tuple(data["against"]),
            "runs": tuple(data["runs"]),
            "assumed": tuple(data["assumed"]),
        }
    )


def _bounded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields, with the infinite ends of an interval, which JSON writes as null."""
    low, high = data["low"], data["high"]
    return {**data, "low": -math.inf if low is None else low, "high": math.inf if high is None else high}


def _copy(data: Mapping[str, Any]) -> CopyFacts:
    return CopyFacts(
        **{
            **data,
            "tables": tuple(CopiedTable(**table) for table in data["tables"]),
            "missing": tuple(NotCopied(**one) for one in data["missing"]),
        }
    )
