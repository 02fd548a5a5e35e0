"""Read a recording's transactions, and choose who sends them when: a replay, or a mix of them. Pure."""

from __future__ import annotations

import heapq
import json
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from uncork.errors import UsageError
from uncork.model.database.recording import RecordedTransaction
from uncork.model.load import Arrivals, LoadScript, Protocol, Recorded

_KEYS: Final = ("at_us", "took_us", "session", "script", "values")


def transaction_line(transaction: RecordedTransaction) -> str:
    """Return a transaction as a line of a recording."""
    return json.dumps({name: getattr(transaction, name) for name in _KEYS}, ensure_ascii=False)


def parse_transactions(text: str, file: str) -> tuple[RecordedTransaction, ...]:
    """Return the transactions of a recording, by their beginning. Raises UsageError."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                found.append(_transaction(json.loads(line)))
            except (KeyError, TypeError, ValueError) as error:
                raise UsageError(
                    f"{file}:{number}: this is no transaction of a recording ({error}); record again with "
                    "`uncork capture --sessions`"
                ) from error
    if not found:
        raise UsageError(f"{file}: the recording has no transactions")
    return tuple(sorted(found, key=lambda one: one.at_us))


def _transaction(read: Mapping[str, Any]) -> RecordedTransaction:
    values = {str(name): None if value is None else str(value) for name, value in read["values"].items()}
    at_us, took_us, session = (int(read[name]) for name in ("at_us", "took_us", "session"))
    if min(at_us, took_us, session) < 0:
        raise ValueError("times and sessions must not be negative")
    return RecordedTransaction(at_us, took_us, session, str(read["script"]), values)


def replayed(
    transactions: Sequence[RecordedTransaction],
    scripts: Sequence[LoadScript],
    protocol: Protocol,
    speed: float,
) -> tuple[Recorded, Arrivals, int]:
    """Return what a replay at `speed` times the recorded pace sends, when, and over how many connections.

    Each session has a connection. Sessions that the recording does not show at the same time share one, as
    the connections of the recording did not exist at the same time either. Raises UsageError if the
    transactions need other scripts, or another protocol.
    """
    ordered = sorted(transactions, key=lambda transaction: (transaction.at_us, transaction.session))
    lanes = _connections(ordered)
    clients = tuple(lanes[transaction.session] for transaction in ordered)
    recorded = Recorded(
        scripts=_numbers(ordered, scripts),
        values=_columns(ordered, scripts, protocol, speed),
        clients=clients,
        sessions=len(lanes),
        speed=speed,
    )
    offsets = tuple(round(transaction.at_us * 1000 / speed) for transaction in ordered)
    return recorded, Arrivals("trace", offsets_ns=offsets), max(clients) + 1


def mixed(
    transactions: Sequence[RecordedTransaction],
    scripts: Sequence[LoadScript],
    protocol: Protocol,
    seed: int,
) -> Recorded:
    """Return transactions in random order, for any client at any time, with their recorded pauses.

    Raises UsageError if the transactions need other scripts, or another protocol.
    """
    shuffled = list(transactions)
    random.Random(seed).shuffle(shuffled)
    return Recorded(_numbers(shuffled, scripts), _columns(shuffled, scripts, protocol, 1.0))


def _numbers(transactions: Sequence[RecordedTransaction], scripts: Sequence[LoadScript]) -> tuple[int, ...]:
    numbers = {script.name: number for number, script in enumerate(scripts)}
    unknown = next(
        (transaction.script for transaction in transactions if transaction.script not in numbers), None
    )
    if unknown is not None:
        raise UsageError(f"the recording has no script {unknown}, which its transactions name")
    return tuple(numbers[transaction.script] for transaction in transactions)


def _columns(
    transactions: Sequence[RecordedTransaction],
    scripts: Sequence[LoadScript],
    protocol: Protocol,
    speed: float,
) -> Mapping[str, tuple[str | None, ...]]:
    names = sorted({name for transaction in transactions for name in transaction.values})
    if protocol != "simple":
        text = next((name for name in names if name.startswith("t")), None)
        if text is not None:
            raise UsageError(
                f"-M {protocol} requires statements that were sent with parameters, but the recording has "
                f"others (variable {text} is a part of a text): leave out -M"
            )
    return {
        name: tuple(_value(name, transaction.values, protocol, speed) for transaction in transactions)
        for name in names
    }


def _value(name: str, values: Mapping[str, str | None], protocol: Protocol, speed: float) -> str | None:
    value = values.get(name)
    if name.startswith("w"):
        return None if value is None else str(round(int(value) / speed))
    if name.startswith("t") or protocol != "simple" or name not in values:
        return value
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def _connections(ordered: Sequence[RecordedTransaction]) -> Mapping[int, int]:
    """Return the number of the connection of each session: the first that is free when it begins."""
    spans: dict[int, tuple[int, int]] = {}
    for transaction in ordered:
        begin, end = spans.get(transaction.session, (transaction.at_us, 0))
        spans[transaction.session] = (begin, max(end, transaction.at_us + transaction.took_us))
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    found: dict[int, int] = {}
    for session, (begin, end) in sorted(spans.items(), key=lambda item: (item[1][0], item[0])):
        while busy and busy[0][0] < begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        number = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, number))
        found[session] = number
    return found


# ---- traces of arrivals: the start times of operations in an open loop that replays them ----


_LONGEST_S = 10 * 365 * 86_400


def parse_trace(text: str, file: str) -> tuple[int, ...]:
    """Return the offsets in a trace, in nanoseconds from its beginning.

    Each line has one offset in seconds (``12``, ``0.25``, ``1e-3``), in rising order. Empty lines and lines
    that start with ``#`` are ignored. Raises UsageError if a line is invalid, with file and line, or if
    there are no offsets.
    """
    offsets: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        where = f"{file}:{number}"
        try:
            seconds = float(word)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds <= _LONGEST_S:
            raise UsageError(
                f'{where}: expected seconds since the start of the trace, such as 0.25, but found "{word}"'
            )
        offset = round(seconds * 1e9)
        if offsets and offset < offsets[-1]:
            raise UsageError(
                f"{where}: {word} s is earlier than the line before; sort the file by time (sort -g)"
            )
        offsets.append(offset)
    if not offsets:
        raise UsageError(f"{file}: the trace has no arrivals; write one offset in seconds per line")
    return tuple(offsets)
