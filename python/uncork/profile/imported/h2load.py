"""The output of h2load, including newer versions, which add a median and percentiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import share, throughput, time, time_ns

_END: Final = re.compile(r"^finished in (\S+), ([\d.]+) req/s", re.MULTILINE)
_ROWS: Final = {"request": "", "connect": "connect ", "TTFB": "first byte ", "to 1st byte": "first byte "}
_COLUMNS: Final = {"mean": "mean", "median": "p50", "p50": "p50", "p95": "p95", "p99": "p99"}


def read(text: str) -> ImportedRun | None:
    """Return the results of h2load; None if the text is not its output."""
    end = _END.search(text)
    if end is None:
        return None
    options = {}
    clients = re.search(r"(\d+) total client\(s\)\. (.*)$", text, re.MULTILINE)
    if clients:
        options = {"clients": clients[1], "ends after": clients[2].rstrip(".")}
    protocol = re.search(r"^Application protocol: (\S+)", text, re.MULTILINE)
    if protocol:
        options["protocol"] = protocol[1]
    return ImportedRun(
        tool="h2load",
        question=f"h2load: {protocol[1] if protocol else 'HTTP'} by {options.get('clients', '?')} clients",
        figures=tuple(_figures(text, float(end[2]))),
        asked=options,
    )


def _figures(text: str, rate: float) -> Iterator[Figure]:
    counts = {
        name: int(count)
        for line in re.findall(r"^requests: (.*)$", text, re.MULTILINE)
        for count, name in re.findall(r"(\d+) (\w+)", line)
    }
    if not counts.get("done"):
        return
    yield throughput(rate)
    yield from _times(text)
    wrong = counts.get("failed", 0) + counts.get("errored", 0) + counts.get("timeout", 0)
    yield from share("failed", min(wrong, counts["done"]), counts["done"])
    statuses = re.search(r"^status codes: (.*)$", text, re.MULTILINE)
    if statuses:
        found = {name: int(count) for count, name in re.findall(r"(\d+) (\dxx)", statuses[1])}
        for name, count in found.items():
            yield from share(f"status {name}", count, sum(found.values()), better="")


def _times(text: str) -> Iterator[Figure]:
    head = re.search(r"^\s+(min\s+max\s.*)$", text, re.MULTILINE)
    columns = re.split(r"\s{2,}", head[1].strip()) if head else []
    for row, prefix in _ROWS.items():
        found = re.search(rf"^(?:time (?:for )?)?{row}\s*:\s+(.*)$", text, re.MULTILINE)
        values = found[1].split() if found else []
        for column, value in zip(columns, values, strict=False) if len(values) == len(columns) else ():
            if column in _COLUMNS:
                yield time(f"{prefix}{_COLUMNS[column]}", time_ns(value))
