"""The metrics of the experiment file, as a table."""

from __future__ import annotations

from collections.abc import Iterable

from uncork.model.results.experiment import OwnMetricFacts
from uncork.report.blocks import Column, Section, Table, Value
from uncork.report.experiment.view import View
from uncork.report.figures import number_text
from uncork.report.words import cell_words


def own_metric_sections(view: View) -> Iterable[Section]:
    """Yield the section on the metrics of the file; none if it has none."""
    if view.result.own_metrics:
        yield Section("own-metrics", "Metrics of the file", (_table(view),))


def _table(view: View) -> Table:
    """Return a table with a row per metric, workload and cell, and a column per variant."""
    found = {
        (own_metric.name, own_metric.workload, own_metric.cell, own_metric.variant): own_metric
        for own_metric in view.result.own_metrics
    }
    columns = [Column(name, header=True) for name in ("metric", "workload", "cell")]
    columns += [Column(name, number=True) for name in view.variants]
    rows = []
    for name, workload, cell in dict.fromkeys(key[:3] for key in found):
        row = [Value(name), Value(workload), Value(cell_words(cell, view.factors))]
        row += [_value(found.get((name, workload, cell, variant))) for variant in view.variants]
        rows.append(tuple(row))
    return Table("Mean over the trials, and the range if they differ", tuple(columns), tuple(rows))


def _value(one: OwnMetricFacts | None) -> Value:
    if one is None:
        return Value("", tone="muted")
    ends = "" if one.least == one.most else f"{number_text(one.least)} to {number_text(one.most)}"
    return Value(number_text(one.mean), note=ends)
