"""The JSON that oha writes, with all times in seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import is_known, share, throughput, time
from uncork.profile.imported.strict import Value

_CUT_OFF: Final = "aborted due to deadline"
"""Requests under way when the time was over; oha's success rate does not count them either."""
_PERCENTILES: Final = (
    ("latencyPercentiles", ""),
    ("firstBytePercentiles", "first byte "),
)
_OK: Final = range(200, 400)


def read(data: Any) -> ImportedRun | None:
    """Return the results of oha; None if the data is not its output.

    Raises:
        ValueError: if a value is missing or wrong.
    """
    if not isinstance(data, dict) or not {"summary", "latencyPercentiles"} <= set(data):
        return None
    return ImportedRun(tool="oha", question="oha: HTTP requests", figures=tuple(_figures(Value(data))))


def _figures(document: Value) -> Iterator[Figure]:
    summary = document["summary"]
    statuses = {code: value.count() for code, value in document["statusCodeDistribution"].items()}
    answered, seconds = sum(statuses.values()), summary["total"].number(0.0)
    if answered and seconds > 0:
        # Not oha's requestsPerSec, which counts refused connections as well.
        yield throughput(answered / seconds)
    mean = summary.get("average")  # null if no request succeeded
    if mean is not None and mean.number(0.0) > 0:
        yield time("mean", mean.number() * 1e9)
    for key, prefix in _PERCENTILES:
        table = document.get(key)
        for name, value in table.items() if table is not None else ():
            percent = re.fullmatch(r"p(\d+(?:\.\d+)?)", name)
            known = percent is not None and is_known(float(percent[1]) / 100, answered)
            if value.found is not None and known and value.number(0.0) > 0:
                yield time(f"{prefix}{name}", value.number() * 1e9)
    details = document.get("details")
    connect = None if details is None else details["DNSDialup"].get("average")
    if connect is not None and connect.number(0.0) > 0:
        yield time("connect mean", connect.number() * 1e9)
    yield from _shares(document, statuses)


def _shares(document: Value, statuses: Mapping[str, int]) -> Iterator[Figure]:
    errors = {text: value.count() for text, value in document["errorDistribution"].items()}
    lost = sum(count for text, count in errors.items() if text != _CUT_OFF)
    wrong = sum(count for code, count in statuses.items() if not (code.isdigit() and int(code) in _OK))
    answered = sum(statuses.values())
    yield from share("failed", wrong + lost, answered + lost)
    if lost:
        yield from share("error of connections", lost, answered + lost)
