"""The output of pgbench, of any version since 9.6."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import share, throughput, time

_ASKED: Final = {
    "transaction type": "transaction type",
    "scaling factor": "scaling factor",
    "partition method": "partition method",
    "partitions": "partitions",
    "query mode": "protocol",
    "number of clients": "clients",
    "number of threads": "threads",
    "maximum number of tries": "tries",
    "duration": "duration",
    "number of transactions per client": "transactions each",
}
_TPS: Final = re.compile(r"^tps = ([\d.]+) \((.*)\)$", re.MULTILINE)
_STATEMENT: Final = re.compile(r"^\s+([\d.]+)\s+(?:\d+\s+)?(?:\d+\s+)?(\S.*)$")


def read(text: str) -> ImportedRun | None:
    """Return the results of pgbench; None if the text is not its output."""
    tps = {words: float(value) for value, words in _TPS.findall(text)}
    if not tps or "number of clients:" not in text:
        return None
    options = {
        name: found[1].strip()
        for title, name in _ASKED.items()
        if (found := re.search(rf"^{title}: (.*)$", text, re.MULTILINE))
    }
    versions = re.search(r"^pgbench \((.*)\)$", text, re.MULTILINE)
    # pgbench prints the server's version only if it differs from its own.
    server = {} if versions is None else {"version": versions[1].split(", server ")[-1].split(" ")[0]}
    what = options.get("transaction type", "custom script")
    return ImportedRun(
        tool="pgbench",
        question=f"pgbench: {what} by {options.get('clients')} clients",
        figures=tuple(_figures(text, tps)),
        asked=options,
        environment={"server": server} if server else {},
    )


def _figures(text: str, tps: dict[str, float]) -> Iterator[Figure]:
    # Older versions print two values; newer versions print only the one without connecting.
    fallback = next(iter(tps.values()))
    yield throughput(next((value for words, value in tps.items() if "including" not in words), fallback))
    for name, title in (
        ("mean", r"latency average"),
        ("lateness mean", r"rate limit schedule lag: avg"),
        ("connect", r"initial connection time"),
    ):
        found = re.search(rf"^{title}\s*=? ?([\d.]+)(?: \(max [\d.]+\))? ms", text, re.MULTILINE)
        if found and float(found[1]):
            yield time(name, float(found[1]) * 1e6)
    processed = _count(text, "number of transactions actually processed") or 0
    for name, title in (
        ("failed", "number of failed transactions"),
        ("skipped", "number of transactions skipped"),
        ("late", r"number of transactions above the [\d.]+ ms latency limit"),
    ):
        count = _count(text, title)
        if count is not None:
            yield from share(name, count, processed + (count if name != "late" else 0))
    yield from _statements(text)


def _count(text: str, title: str) -> int | None:
    found = re.search(rf"^{title}: (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def _statements(text: str) -> Iterator[Figure]:
    """Yield the latency of each statement (-r); if a statement occurs twice, only its first latency."""
    head = re.search(r"^ ?-? ?statement latencies in milliseconds.*$", text, re.MULTILINE)
    seen: set[str] = set()
    for line in text[head.end() :].splitlines()[1:] if head else ():
        found = _STATEMENT.match(line)
        if found is None:
            break
        if not found[2].startswith("\\") and found[2] not in seen and float(found[1]):
            seen.add(found[2])
            yield time("mean", float(found[1]) * 1e6, found[2])
