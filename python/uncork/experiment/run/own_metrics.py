"""Ask for the metrics of the experiment file, whose queries run after each trial."""

from __future__ import annotations

import math

from uncork.errors import SetupError
from uncork.experiment.plan.order import texts_for
from uncork.experiment.plan.placement import Placement
from uncork.experiment.ports import Server
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.sqltext import substitute
from uncork.model.trial import Trial

__all__ = ["own_metrics"]


def own_metrics(spec: Spec, server: Server, trial: Trial, home: Placement) -> dict[str, float | None]:
    """Return the numbers of the file's metrics, of the data at `home` as the trial left it; None for NULL.

    Raises:
        SetupError: if a query fails, or returns something else than a number.
    """
    texts = texts_for(spec, trial.cell, trial.arm.variant)
    found: dict[str, float | None] = {}
    for name, metric in spec.metrics.items():
        where = f"metric {name}, variant {trial.arm.variant}{trial.cell.at}"
        try:
            answered = server.column(*home, substitute(metric.sql or "", texts).strip().rstrip(";"))
        except SetupError as error:
            raise SetupError(f"{where}: {error}") from error
        found[name] = _number_of(answered[0] if answered else None, where)
    return found


def _number_of(text: str | None, where: str) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SetupError(f'{where}: the query returned "{text[:40]}"; expecting a number')
    return number
