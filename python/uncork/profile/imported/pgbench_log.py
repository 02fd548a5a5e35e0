"""Logs of pgbench, with one line per transaction (-l) or per interval (--aggregate-interval)."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import share, throughput, time

_NUMBERS: Final = re.compile(r"\d+(?: (?:\d+|skipped|failed|serialization|deadlock)){5,}")
_EPOCH_LEAST, _EPOCH_MOST = 1_000_000_000, 10_000_000_000
_QUANTILES: Final = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999))
_BEYOND: Final = 10
_LEAST_COLUMNS: Final = 6
_LEAST_INTERVAL: Final = 3
_SAMPLED: Final = 1.5
"""If there are more transactions per line than this, the log is a sample."""


def read(text: str) -> ImportedRun | None:
    """Return the results in a log; None if it is not a log of pgbench.

    Raises:
        ValueError: if a line is not valid.
    """
    lines = text.splitlines()
    if not lines or not _NUMBERS.fullmatch(lines[0].strip()):
        return None
    first = lines[0].split()
    if _EPOCH_LEAST <= int(first[0]) < _EPOCH_MOST:
        rows = {number: line.split() for number, line in enumerate(lines, start=1) if line.strip()}
        for number, row in rows.items():
            if len(row) < _LEAST_INTERVAL or not all(word.isdecimal() for word in row[:_LEAST_INTERVAL]):
                raise ValueError(f'line {number} is not an interval of pgbench: "{" ".join(row)[:60]}"')
        return _intervals(list(rows.values()))
    if first[4].isdigit() and _EPOCH_LEAST <= int(first[4]) < _EPOCH_MOST:
        return _transactions(lines)
    return None


def _transactions(lines: list[str]) -> ImportedRun:
    """Read lines of client, number, latency (µs, skipped or failed), script, seconds, microseconds, [lag]."""
    latencies: list[int] = []
    failed = skipped = 0
    ends: list[float] = []
    done: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if len(words) < _LEAST_COLUMNS:
            raise ValueError(f'line {number} is truncated: "{line[:60]}"')
        if not all(words[place].isdecimal() for place in (1, 4, 5)):
            raise ValueError(f'line {number} is not a transaction of pgbench: "{line[:60]}"')
        done[words[0]] = max(done.get(words[0], 0), int(words[1]))
        ends.append(int(words[4]) + int(words[5]) / 1e6)
        if words[2].isdigit():
            latencies.append(int(words[2]))
        elif words[2] == "skipped":
            skipped += 1
        else:
            failed += 1
    begun = min(ends) - (latencies[0] / 1e6 if latencies else 0.0)
    seconds = max(ends) - begun
    latencies.sort()
    figures: list[Figure] = []
    if latencies and seconds > 0:
        # With --sampling-rate, transactions that are not logged are still numbered.
        sampled = sum(done.values()) > _SAMPLED * (len(latencies) + failed + skipped)
        figures = [
            throughput((sum(done.values()) if sampled else len(latencies)) / seconds),
            time("mean", math.fsum(latencies) / len(latencies) * 1e3),
            *(
                time(name, latencies[min(len(latencies) - 1, math.ceil(q * len(latencies)) - 1)] * 1e3)
                for name, q in _QUANTILES
                if len(latencies) * (1 - q) >= _BEYOND
            ),
        ]
    figures += share("failed", failed, len(latencies) + failed)
    figures += share("skipped", skipped, len(latencies) + failed + skipped)
    return _imported("pgbench log", figures, begun, {"clients": str(len(done))})


def _intervals(rows: list[list[str]]) -> ImportedRun:
    """Read lines of start, transactions, sum of latencies (µs), of their squares, minimum, maximum, ..."""
    if len(rows) > 1:
        step = int(rows[1][0]) - int(rows[0][0])
        rows = rows[:-1]  # the last interval is usually shorter
    else:
        step = 1
    count, total = sum(int(row[1]) for row in rows), sum(int(row[2]) for row in rows)
    figures: list[Figure] = []
    if count and step > 0:
        figures = [throughput(count / (step * len(rows))), time("mean", total / count * 1e3)]
    return _imported("pgbench log", figures, float(rows[0][0]), {"interval": f"{step} s"})


def _imported(tool: str, figures: list[Figure], begun: float, options: dict[str, str]) -> ImportedRun:
    return ImportedRun(
        tool=tool,
        question=tool,
        figures=tuple(figures),
        asked=options,
        started_at=datetime.fromtimestamp(begun, UTC).isoformat(timespec="seconds"),
    )
