"""Find pauses between the statements of transactions, and roles that mostly write with one statement. Pure.

A sample of a session that is idle in transaction has the age of the pause and of the transaction. The chance
that a pause is sampled is proportional to its length, and samples fall on average in its middle. So the
median age of pauses is about half of a typical pause. The number of such pauses per transaction is estimated
for each sample, because both ages grow if the client is descheduled.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any, Final

from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database_transactions import InTransaction, RowWriter
from uncork.profile.activity import wait_class

Row = Mapping[str, Any]
_Who = tuple[str, str, int | None]
"""Application, role and template."""

LOG_EVENTS: Final = frozenset({"WALSync", "WalSync", "WALWrite", "WalWrite", "WALInitSync", "SyncRep"})
"""The wait events of a commit; PostgreSQL up to 16 spells them in capitals."""
_CONTROL: Final = re.compile(r"(?:begin|start transaction|commit|end)\b")
"""Statements that begin and end transactions."""
_WRITES: Final = re.compile(r"(?:insert into|update|delete from)\b")
_MOST: Final = 100
"""The most pairs of application and template to return, those with the most time."""
_LEAST_GAP_US: Final = 50.0
"""The shortest time in which a client can receive an answer and send its next statement."""


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
    who: _Who, rows: Sequence[Row], spent: float, busy: float, whole: float, texts: Mapping[int, str]
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


def row_writers(
    sums: Sequence[Row], whole: float, samples: int, texts: Mapping[int, str], statements: Sequence[Row]
) -> tuple[RowWriter, ...]:
    """Return the roles whose most frequent statement is a write, with the sessions that execute it.

    `statements` is the growth of pg_stat_statements: without it, nobody knows what else a session sent
    between two samples, and nothing is returned. `samples` is the number of samples of the watch. For `sums`
    and `whole`, see `in_transactions`. The time of BEGIN and COMMIT belongs to the statement.
    """
    calls: dict[str, Counter[int | None]] = defaultdict(Counter)
    for row in statements:
        if row["toplevel"] is not False and not _CONTROL.match(texts.get(row["template"], "")):
            calls[row["user"]][row["template"]] += row["calls"]
    found = []
    for user, of_role in calls.items():
        ((template, most),) = of_role.most_common(1)
        if template is None or not _WRITES.match(texts.get(template, "")):
            continue
        rows = _of_writers([row for row in sums if (row["user"] or "") == user], template, texts)
        if rows and whole:
            counts = (most, of_role.total() - most)
            found.append(_row_writer(user, template, texts[template], rows, whole, samples, counts))
    return tuple(sorted(found, key=lambda writer: (-writer.sessions, writer.user)))


def _of_writers(rows: Sequence[Row], template: int, texts: Mapping[int, str]) -> list[Row]:
    writing = {row["pid"] for row in rows if row["template"] == template}
    return [
        row
        for row in rows
        if row["pid"] in writing
        and (row["template"] == template or _CONTROL.match(texts.get(row["template"], "")))
    ]


def _row_writer(
    user: str,
    template: int,
    text: str,
    rows: Sequence[Row],
    whole: float,
    samples: int,
    calls: tuple[int, int],
) -> RowWriter:
    by_process: Counter[int] = Counter()
    by_application: Counter[str] = Counter()
    for row in rows:
        by_process[row["pid"]] += row["weight"]
        by_application[row["application"] or ""] += row["weight"]
    spent = sum(row["weight"] for row in rows)
    return RowWriter(
        application=max(by_application, key=by_application.__getitem__),
        user=user,
        template=template,
        text=text,
        calls=calls[0],
        others=calls[1],
        processes=len(by_process),
        samples=round(spent / whole * samples),
        evenness=min(by_process.values()) / max(by_process.values()),
        sessions=spent / whole,
        idle_share=sum(row["weight"] for row in rows if wait_class(row) == IDLE) / spent,
        log_share=sum(row["weight"] for row in rows if row["wait_event"] in LOG_EVENTS) / spent,
    )
