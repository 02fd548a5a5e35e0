"""The output of wrk, and of wrk2, which has the same format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import share, throughput, time, time_ns

_HEAD: Final = re.compile(
    r"^Running (\S+) test @ (\S+)\s*\n\s+(\d+) threads and (\d+) connections", re.MULTILINE
)
_QUANTILE: Final = re.compile(r"^\s+([\d.]+)%\s+([\d.]+(?:us|ms|s|m|h))\s*$", re.MULTILINE)


def read(text: str) -> ImportedRun | None:
    """Return the results of wrk; None if the text is not its output."""
    head = _HEAD.search(text)
    if head is None:
        return None
    return ImportedRun(
        tool="wrk",
        question=f"wrk: {head[2]} by {head[4]} connections",
        figures=tuple(_figures(text)),
        asked={"duration": head[1], "address": head[2], "threads": head[3], "connections": head[4]},
    )


def _figures(text: str) -> Iterator[Figure]:
    rate = re.search(r"^Requests/sec:\s+([\d.]+)", text, re.MULTILINE)
    if rate is None:
        return
    yield throughput(float(rate[1]))
    mean = re.search(r"^\s+Latency\s+(\S+)", text, re.MULTILINE)
    if mean:
        yield time("mean", time_ns(mean[1]))
    seen = set()
    for percent, value in _QUANTILE.findall(text):
        name = f"p{float(percent):g}"
        if name not in seen and float(percent) < 100:
            seen.add(name)
            yield time(name, time_ns(value))
    requests = re.search(r"^\s+(\d+) requests in", text, re.MULTILINE)
    if requests:
        count = int(requests[1])
        wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
        yield from share("failed", int(wrong[1]) if wrong else 0, count)
        errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
        lost = sum(map(int, errors.groups())) if errors else 0
        yield from share("error of sockets", lost, count + lost)
