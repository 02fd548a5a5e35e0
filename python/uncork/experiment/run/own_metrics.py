"""Ask for the metrics of the experiment file, whose queries and commands run after each trial."""

from __future__ import annotations

import math
from collections.abc import Mapping

from uncork.errors import SetupError
from uncork.experiment.plan.order import texts_for
from uncork.experiment.plan.placement import Placement
from uncork.experiment.ports import Server
from uncork.experiment.spec.data_checks import OwnMetric
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.services import fill_texts
from uncork.experiment.spec.sqltext import substitute
from uncork.model.trial import Trial


def own_metrics(spec: Spec, server: Server, trial: Trial, home: Placement) -> dict[str, float | None]:
    """Return the numbers of the file's metrics, of the data at `home` as the trial left it; None for NULL.

    Raises:
        SetupError: if a query or a command fails, or returns something else than a number.
    """
    texts = texts_for(spec, trial.cell, trial.arm.variant)
    found: dict[str, float | None] = {}
    for name, metric in spec.metrics.items():
        where = f"metric {name}, variant {trial.arm.variant}{trial.cell.at}"
        try:
            if metric.command is None:
                answered = server.column(*home, substitute(metric.sql or "", texts).strip().rstrip(";"))
                text, source = answered[0] if answered else None, "the query returned"
            else:
                text = _printed(spec, metric, server, trial, home, texts)
                source = f"the last line of {metric.command[0]} is"
        except SetupError as error:
            raise SetupError(f"{where}: {error}") from error
        found[name] = _number_of(text, where, source)
    return found


def _printed(
    spec: Spec,
    metric: OwnMetric,
    server: Server,
    trial: Trial,
    home: Placement,
    texts: Mapping[str, str],
) -> str:
    """Return the last line that the command of a metric prints."""
    command = metric.command or ()
    return server.command(
        *home,
        [fill_texts(word, dict(texts)) for word in command],
        {word: spec.files[word] for word in command if word in spec.files},
        {"VARIANT": trial.arm.variant, "WORKLOAD": trial.workload},
        metric.timeout,
    )


def _number_of(text: str | None, where: str, source: str) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SetupError(f'{where}: {source} "{text[:40]}"; expecting a number')
    return number
