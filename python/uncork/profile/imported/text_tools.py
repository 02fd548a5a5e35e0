"""The output of wrk (and wrk2), h2load and pgbench, pgbench's logs, and their metrics. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from uncork.model.results.figure import Figure, ImportedRun
from uncork.profile.imported.parts import share, throughput, time, time_ns

_WRK: Final = re.compile(
    r"^Running (\S+) test @ (\S+)\s*\n\s+(\d+) threads and (\d+) connections", re.MULTILINE
)
_QUANTILE: Final = re.compile(r"^\s+([\d.]+)%\s+([\d.]+(?:us|ms|s|m|h))\s*$", re.MULTILINE)


def _line(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.MULTILINE)


def read_wrk(text: str) -> ImportedRun | None:
    """Return the results of wrk; None if the text is not its output."""
    head = _WRK.search(text)
    if head is None:
        return None
    return ImportedRun(
        tool="wrk",
        question=f"wrk: {head[2]} by {head[4]} connections",
        figures=tuple(_wrk_figures(text)),
        asked={"duration": head[1], "address": head[2], "threads": head[3], "connections": head[4]},
    )


def _wrk_figures(text: str) -> Iterator[Figure]:
    rate = _line(r"^Requests/sec:\s+([\d.]+)", text)
    if rate is None:
        return
    yield throughput(float(rate[1]))
    mean = _line(r"^\s+Latency\s+(\S+)", text)
    if mean:
        yield time("mean", time_ns(mean[1]))
    seen = set()
    for percent, value in _QUANTILE.findall(text):
        name = f"p{float(percent):g}"
        if name not in seen and float(percent) < 100:
            seen.add(name)
            yield time(name, time_ns(value))
    requests = _line(r"^\s+(\d+) requests in", text)
    if requests:
        count = int(requests[1])
        wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
        yield from share("failed", int(wrong[1]) if wrong else 0, count)
        errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
        lost = sum(map(int, errors.groups())) if errors else 0
        yield from share("error of sockets", lost, count + lost)


# ---- h2load, also of newer versions, which add a median and percentiles ----

_H2LOAD: Final = re.compile(r"^finished in (\S+), ([\d.]+) req/s", re.MULTILINE)
_ROWS: Final = {"request": "", "connect": "connect ", "TTFB": "first byte ", "to 1st byte": "first byte "}
_COLUMNS: Final = {"mean": "mean", "median": "p50", "p50": "p50", "p95": "p95", "p99": "p99"}


def read_h2load(text: str) -> ImportedRun | None:
    """Return the results of h2load; None if the text is not its output."""
    end = _H2LOAD.search(text)
    if end is None:
        return None
    options = {}
    clients = _line(r"(\d+) total client\(s\)\. (.*)$", text)
    if clients:
        options = {"clients": clients[1], "ends after": clients[2].rstrip(".")}
    protocol = _line(r"^Application protocol: (\S+)", text)
    if protocol:
        options["protocol"] = protocol[1]
    return ImportedRun(
        tool="h2load",
        question=f"h2load: {protocol[1] if protocol else 'HTTP'} by {options.get('clients', '?')} clients",
        figures=tuple(_h2load_figures(text, float(end[2]))),
        asked=options,
    )


def _h2load_figures(text: str, rate: float) -> Iterator[Figure]:
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
    statuses = _line(r"^status codes: (.*)$", text)
    if statuses:
        found = {name: int(count) for count, name in re.findall(r"(\d+) (\dxx)", statuses[1])}
        for name, count in found.items():
            yield from share(f"status {name}", count, sum(found.values()), better="")


def _times(text: str) -> Iterator[Figure]:
    head = _line(r"^\s+(min\s+max\s.*)$", text)
    columns = re.split(r"\s{2,}", head[1].strip()) if head else []
    for row, prefix in _ROWS.items():
        found = _line(rf"^(?:time (?:for )?)?{row}\s*:\s+(.*)$", text)
        values = found[1].split() if found else []
        for column, value in zip(columns, values, strict=False) if len(values) == len(columns) else ():
            if column in _COLUMNS:
                yield time(f"{prefix}{_COLUMNS[column]}", time_ns(value))


# ---- pgbench, of any version since 9.6 ----

_ASKED: Final = {
    **{same: same for same in ("transaction type", "scaling factor", "partition method", "partitions")},
    "query mode": "protocol",
    "number of clients": "clients",
    "number of threads": "threads",
    "maximum number of tries": "tries",
    "duration": "duration",
    "number of transactions per client": "transactions each",
}
_TPS: Final = re.compile(r"^tps = ([\d.]+) \((.*)\)$", re.MULTILINE)
_STATEMENT: Final = re.compile(r"^\s+([\d.]+)\s+(?:\d+\s+)?(?:\d+\s+)?(\S.*)$")


def read_pgbench(text: str) -> ImportedRun | None:
    """Return the results of pgbench; None if the text is not its output."""
    tps = {words: float(value) for value, words in _TPS.findall(text)}
    if not tps or "number of clients:" not in text:
        return None
    lines = {name: _line(rf"^{title}: (.*)$", text) for title, name in _ASKED.items()}
    options = {name: line[1].strip() for name, line in lines.items() if line}
    versions = _line(r"^pgbench \((.*)\)$", text)
    # pgbench prints the server's version only if it differs from its own.
    server = {} if versions is None else {"version": versions[1].split(", server ")[-1].split(" ")[0]}
    what = options.get("transaction type", "custom script")
    return ImportedRun(
        tool="pgbench",
        question=f"pgbench: {what} by {options.get('clients')} clients",
        figures=tuple(_pgbench_figures(text, tps)),
        asked=options,
        environment={"server": server} if server else {},
    )


def _pgbench_figures(text: str, tps: dict[str, float]) -> Iterator[Figure]:
    # Older versions print two values; newer versions print only the one without connecting.
    fallback = next(iter(tps.values()))
    yield throughput(next((value for words, value in tps.items() if "including" not in words), fallback))
    for name, title in (
        ("mean", r"latency average"),
        ("lateness mean", r"rate limit schedule lag: avg"),
        ("connect", r"initial connection time"),
    ):
        found = _line(rf"^{title}\s*=? ?([\d.]+)(?: \(max [\d.]+\))? ms", text)
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
    found = _line(rf"^{title}: (\d+)", text)
    return int(found[1]) if found else None


def _statements(text: str) -> Iterator[Figure]:
    """Yield the latency of each statement (-r); if a statement occurs twice, only its first latency."""
    head = _line(r"^ ?-? ?statement latencies in milliseconds.*$", text)
    seen: set[str] = set()
    for line in text[head.end() :].splitlines()[1:] if head else ():
        found = _STATEMENT.match(line)
        if found is None:
            break
        if not found[2].startswith("\\") and found[2] not in seen and float(found[1]):
            seen.add(found[2])
            yield time("mean", float(found[1]) * 1e6, found[2])


# ---- logs of pgbench, with a line per transaction (-l) or per interval (--aggregate-interval) ----

_NUMBERS: Final = re.compile(r"\d+(?: (?:\d+|skipped|failed|serialization|deadlock)){5,}")
_EPOCH_LEAST, _EPOCH_MOST = 1_000_000_000, 10_000_000_000
_QUANTILES: Final = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999))
_BEYOND: Final = 10
_LEAST_COLUMNS: Final = 6
_LEAST_INTERVAL: Final = 3
_SAMPLED: Final = 1.5
"""If there are more transactions per line than this, the log is a sample."""


def read_pgbench_log(text: str) -> ImportedRun | None:
    """Return the results in a log; None if it is not a log of pgbench.

    Raises ValueError if a line is not valid.
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
    return _log_run(figures, begun, {"clients": str(len(done))})


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
    return _log_run(figures, float(rows[0][0]), {"interval": f"{step} s"})


def _log_run(figures: list[Figure], begun: float, options: dict[str, str]) -> ImportedRun:
    at = datetime.fromtimestamp(begun, UTC).isoformat(timespec="seconds")
    return ImportedRun("pgbench log", "pgbench log", tuple(figures), options, started_at=at)
