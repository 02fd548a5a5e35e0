"""Effects as fields of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from uncork.model.results.experiment import Comparison, RankEffect
from uncork.model.trial import Cell
from uncork.model.verdict import Verdict
from uncork.stats.compare import AnyEffect, Effect
from uncork.stats.proportion import ShareEffect
from uncork.stats.ranks import contradiction


def effect_numbers(effect: AnyEffect | None) -> dict[str, Any]:
    """Return an effect as fields of a `Comparison`; None if there is none, and for infinite bounds."""
    found: dict[str, Any] = dict.fromkeys(("ratio", "low", "high", "std_dev", "e_value"))
    if effect is None:
        return found
    if isinstance(effect, ShareEffect):
        bounded = math.isfinite(effect.half_width)
        return found | {
            "std_dev": _finite(effect.std_dev),
            "e_value": _finite(effect.e_value),
            "difference": effect.difference,
            "difference_low": effect.low if bounded else None,
            "difference_high": effect.high if bounded else None,
        }
    numbers = {name: _finite(float(getattr(effect, name))) for name in found}
    return numbers | ({} if math.isfinite(effect.high) else {"low": None})


def beside_itself(
    effects: Iterable[tuple[tuple[Cell, str], AnyEffect]],
    baseline: str,
    values: Mapping[tuple[str, str, str], float],
) -> tuple[Comparison, ...]:
    """Return the baseline's effects against itself, by cell and workload, as comparisons."""
    return tuple(
        Comparison(
            cell=cell.levels,
            workload=workload,
            variant=baseline,
            verdict=Verdict.NO_PRACTICAL_DIFFERENCE,
            reason="the baseline against itself",
            rounds=effect.rounds,
            value=values.get((cell.name, workload, baseline)),
            baseline_value=values.get((cell.name, workload, baseline)),
            warnings=effect.warnings,
            **effect_numbers(effect),
        )
        for (cell, workload), effect in effects
    )


def contradicting(effect: AnyEffect | None, ranks: RankEffect | None) -> tuple[str, ...]:
    """Return a warning if an effect contradicts its ranks; else nothing."""
    if ranks is None or not isinstance(effect, Effect):
        return ()
    if not contradiction(effect.ratio, effect.low, effect.high, ranks):
        return ()
    return (
        f"a few {effect.kind}s decide the effect: by ranks (Hodges-Lehmann) it is a factor of "
        f"{ranks.ratio:.3g}, {ranks.low:.3g} to {ranks.high:.3g}; look at the values by {effect.kind}",
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
