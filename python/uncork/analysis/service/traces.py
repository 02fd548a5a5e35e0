"""Join requests with their statements by the traces that comments in a log's statements name. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from uncork.load.traceparent import group_of
from uncork.model.results.service import SentTemplate

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Traced:
    """What a log shows of one kind of request.

    `requests` is how many of its requests have a statement with their trace: exactly up to a thousand, and to
    3 % beyond. `templates` come with the longest time first.
    """

    requests: int
    templates: tuple[SentTemplate, ...]


def join_traces(
    routes: pa.Table,
    texts: Sequence[str],
    trace: str,
    sent: Mapping[str, int],
    known: Mapping[str, Mapping[str, SentTemplate]],
) -> dict[str, Traced]:
    """Return the statements of each request that the log shows with its trace, by the request's name.

    `routes` is the table ``log_routes``, and `texts` are its templates. `trace` names the load, and `sent`
    has its requests in their order, with how often each was sent. `known` are the statements that slices
    show, by request and text: they supply the rows of an execution if no plan does. A template that they do
    not have gets a number above theirs.
    """
    numbers = {template.text: template.template for of in known.values() for template in of.values()}
    beyond = 1 + max(numbers.values(), default=-1)
    found = {}
    for place, (name, many) in enumerate(sent.items(), 1):
        rows = routes.filter(pc.equal(routes["trace"], group_of(trace, place))).to_pylist()
        by_template: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            by_template[row["template"]].append(row)
        if not rows or not many:
            continue
        senders = {_sender(row): row["requests"] or 0 for row in rows}
        templates = [
            _template(
                numbers.get(texts[number], beyond + number), texts[number], of, many, known.get(name, {})
            )
            for number, of in by_template.items()
        ]
        templates.sort(key=lambda one: (-one.ns, one.text))
        found[name] = Traced(sum(senders.values()), tuple(templates))
    return found


def _sender(row: Row) -> tuple[str, ...]:
    return row["route"], row["tagged_application"], row["application"], row["server"]


def _template(
    number: int, text: str, rows: Sequence[Row], sent: int, known: Mapping[str, SentTemplate]
) -> SentTemplate:
    executions, micros = sum(row["executions"] for row in rows), sum(row["sum_us"] for row in rows)
    plans, planned = sum(row["rows_plans"] for row in rows), sum(row["rows_sum"] for row in rows)
    in_slices = known.get(text)
    from_slices = None if in_slices is None else in_slices.rows
    return SentTemplate(
        template=number,
        text=text,
        calls=executions / sent,
        calls_low=None,
        calls_high=None,
        rows=planned / plans if plans else from_slices,
        call_ns=micros * 1000 / executions if executions else 0.0,
        ns=micros * 1000 / sent,
        traced=True,
    )
