"""Find pauses between the statements of transactions, and commits of single rows, from samples. Pure.

A sample of a session that is idle in transaction has the age of the pause and of the transaction. The chance
that a pause is sampled is proportional to its length, and samples fall on average in its middle. So the
median age of pauses is about half of a typical pause. The number of such pauses per transaction is estimated
for each sample, because both ages grow if the client is descheduled.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any, Final

from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database_transactions import InTransaction, RowWriter
from uncork.profile.activity import wait_class

__all__ = ["LOG_EVENTS", "in_transactions", "row_writers"]

Row = Mapping[str, Any]
_Who = tuple[str, str, int | None]
"""Application, role and template."""

LOG_EVENTS: Final = frozenset({"WALSync", "WalSync", "WALWrite", "WalWrite", "WALInitSync", "SyncRep"})
"""The wait events of a commit; PostgreSQL up to 16 spells them in capitals."""
_CONTROL: Final = re.compile(r"(?:begin|start transaction|commit|end)\b")
"""Statements that begin and end transactions."""
_WRITES: Final = re.compile(r"(?:insert into|update|delete from)\b")
_KEPT: Final = 0.5
"""Fraction of the pauses of BEGIN, a statement and COMMIT that remains if a transaction has many statements:
the pause after BEGIN goes, that after the statement stays."""
_MOST: Final = 100
"""The most pairs of application and template to return, those with the most time."""
_LEAST_GAP_US: Final = 50.0
"""The shortest time in which a client can receive an answer and send its next statement."""
_BUSY: Final = 0.5
"""A session works continuously from this fraction of the watch on; a request that inserts a row does not."""
_NOW_AND_THEN: Final = 0.05
"""A session that does so for a smaller part of the watch does not count as one of a pool."""
_ALONE: Final = 0.9
"""A template is all that a session does from this fraction of its time on."""


def in_transactions(
    idle: Sequence[Row], sums: Sequence[Row], whole: float, texts: Mapping[int, str]
) -> tuple[InTransaction, ...]:
    """Return the pauses of sessions between the statements of a transaction, most time first.

    `idle` are samples of sessions that are idle in transaction. `sums` is the time of all sessions by
    process, application, role, template and state, in microseconds (`weight`). `whole` is the length of the
    watch.
    """
    waits: dict[_Who, list[Row]] = defaultdict(list)
    for row in idle:
        if row["state_us"] is not None and row["transaction_us"] is not None:
            waits[_who(row)].append(row)
    busy: dict[int, float] = defaultdict(float)
    idling: dict[_Who, float] = defaultdict(float)
    working: dict[tuple[_Who, int], float] = defaultdict(float)
    for row in sums:
        busy[row["pid"]] += row["weight"]
        if wait_class(row) == IDLE:
            idling[_who(row)] += row["weight"]
        else:
            working[_who(row), row["pid"]] += row["weight"]
    found = []
    for who, rows in waits.items():
        processes = {row["pid"] for row in rows}
        spent = idling[who] + sum(working[who, pid] for pid in processes)
        found.append(_facts(who, rows, spent, sum(busy[pid] for pid in processes), whole, texts))
    return tuple(sorted(found, key=lambda one: (-one.sessions, one.application, one.text))[:_MOST])


def _who(row: Row) -> _Who:
    return (row["application"] or "", row["user"] or "", row["template"])


def _facts(
    who: _Who,
    rows: Sequence[Row],
    spent: float,
    busy: float,
    whole: float,
    texts: Mapping[int, str],
) -> InTransaction:
    application, user, template = who
    gap_us = max(_LEAST_GAP_US, 2 * median(row["state_us"] for row in rows))
    length_us = 2 * fmean(row["transaction_us"] for row in rows)
    pauses = median(row["transaction_us"] / max(_LEAST_GAP_US, row["state_us"]) for row in rows)
    part = min(1.0, spent / busy) if busy else 0.0
    ages = [row["held_age"] for row in rows if row["held_age"] is not None]
    return InTransaction(
        application=application,
        user=user,
        template=template,
        text="" if template is None else texts.get(template, ""),
        sessions=spent / whole if whole else 0.0,
        gap_ns=round(gap_us * 1000),
        per_transaction=pauses * part,
        length_ns=round(length_us * 1000),
        part=part,
        idle_ns=max(row["state_us"] for row in rows) * 1000,
        open_ns=max(row["transaction_us"] for row in rows) * 1000,
        held_age=max(ages, default=None),
        samples=len(rows),
    )


def row_writers(sums: Sequence[Row], whole: float, texts: Mapping[int, str]) -> tuple[RowWriter, ...]:
    """Return sessions that work continuously and only write with one statement.

    The transaction of each is its own or not. All sessions that only do so count as `processes`, also those
    that pause: the sessions of a pool take turns.

    For `sums`, see `in_transactions`. The time of BEGIN and COMMIT belongs to the statement.
    """
    by_process: dict[int, list[Row]] = defaultdict(list)
    for row in sums:
        by_process[row["pid"]].append(row)
    spent: dict[tuple[str, int], float] = defaultdict(float)
    logged: dict[tuple[str, int], float] = defaultdict(float)
    kept: dict[tuple[str, int], float] = defaultdict(float)
    processes: dict[tuple[str, int], int] = defaultdict(int)
    for rows in by_process.values():
        of_template: dict[int | None, float] = defaultdict(float)
        control = 0.0
        for row in rows:
            if _CONTROL.match(texts.get(row["template"], "")):
                control += row["weight"]
            else:
                of_template[row["template"]] += row["weight"]
        template, most = max(of_template.items(), key=lambda item: item[1], default=(None, 0.0))
        others = sum(of_template.values())
        if template is None or not _WRITES.match(texts.get(template, "")):
            continue
        if others + control < _NOW_AND_THEN * whole or most < _ALONE * others:
            continue
        processes[rows[0]["application"] or "", template] += 1
        if others + control < _BUSY * whole:
            continue
        for row in rows:
            key = (row["application"] or "", template)
            spent[key] += row["weight"]
            kept[key] += row["weight"] * (_KEPT if wait_class(row) == IDLE else 1.0)
            logged[key] += row["weight"] if row["wait_event"] in LOG_EVENTS else 0.0
    found = [
        RowWriter(
            application,
            template,
            texts[template],
            time / whole,
            logged[application, template] / kept[application, template],
            processes[application, template],
        )
        for (application, template), time in spent.items()
        if time
    ]
    return tuple(sorted(found, key=lambda one: (-one.sessions, one.application)))
