"""Files of a single variant, or of none: what a guard makes two sides of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uncork.experiment.spec import problems

__all__ = ["too_few", "with_variant"]


def with_variant(data: dict[str, Any]) -> dict[str, Any]:
    """Return a file's content with a baseline, where it has one variant or none."""
    variants, experiment = data.get("variants", {}), data.get("experiment", {})
    if not isinstance(variants, dict) or len(variants) > 1 or not isinstance(experiment, dict):
        return data
    ((name, variant),) = variants.items() or [(experiment.get("name", "baseline"), {})]
    if not isinstance(variant, dict):
        return data
    return {**data, "variants": {name: {**variant, "baseline": True}}}


def too_few(data: Mapping[str, Any], *, alone: bool) -> Iterator[problems.Problem]:
    """Say that an experiment has but one variant, unless it is read for a guard."""
    variants = data.get("variants")
    if not alone and isinstance(variants, dict) and len(variants) == 1:
        yield problems.Problem(
            ("variants",),
            f"expected at least 2; found 1 ({', '.join(variants)}); for two states of one variant there is "
            "`uncork guard`",
        )
