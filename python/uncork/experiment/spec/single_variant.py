"""Experiment files with one variant or none, which a guard turns into two sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uncork.experiment.spec import problems


def with_variant(data: dict[str, Any]) -> dict[str, Any]:
    """Return a file's data with a baseline added if it has one variant or none."""
    variants, experiment = data.get("variants", {}), data.get("experiment", {})
    if not isinstance(variants, dict) or len(variants) > 1 or not isinstance(experiment, dict):
        return data
    ((name, variant),) = variants.items() or [(experiment.get("name", "baseline"), {})]
    if not isinstance(variant, dict):
        return data
    return {**data, "variants": {name: {**variant, "baseline": True}}}


def too_few(data: Mapping[str, Any], *, alone: bool) -> Iterator[problems.Problem]:
    """Yield a problem if an experiment has only one variant, unless it is read for a guard."""
    variants = data.get("variants")
    if not alone and isinstance(variants, dict) and len(variants) == 1:
        yield problems.Problem(
            ("variants",),
            f"expected at least 2 variants; found 1 ({', '.join(variants)}); to compare two states of one "
            "variant, use `uncork guard`",
        )
