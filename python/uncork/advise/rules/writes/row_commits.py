"""Rows written one by one, each with a commit of its own. Pure.

Requests that each write one row look the same in samples, and each needs its own commit. One client that
writes many rows differs in what can be counted: its role executes thousands of these statements and little
else, by few sessions, each of which sends the next at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Piece, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.writes.batches import batched
from uncork.advise.rules.writes.written import ROW_WORDS, Written, written
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import count_words, format_count, format_duration, share_text

if TYPE_CHECKING:
    from uncork.model.results.database_transactions import RowWriter

SHARE: Final = 0.3
"""Fraction of the busy time of sessions that only write single rows. Below it, they are an event log beside
the real work."""
LOG_SHARE: Final = 0.5
"""Fraction of their time in which their statements do not execute: they commit, or wait for the client. From
half on, larger transactions make them at least twice as fast."""
SESSIONS: Final = 3
"""Most sessions that write rows one by one as a job in a loop. More serve independent requests."""
_ONE_ROW: Final = 2.0
_CALLS: Final = 500
"""Fewest executions during the watch; a minute of a slow disk has thousands."""
_LITTLE_ELSE: Final = 0.1
"""Most other statements of the role for each execution. So many of the executions, at most, can have followed
another statement than the write; all others directly followed a write of the same session."""
_SAMPLES: Final = 50
"""Fewest samples in which the sessions worked."""
_EVEN: Final = 0.5
"""Fewest seconds of the least busy session for each of the busiest. A pool may keep most requests on its
first connections. ``tests/calibration/test_row_writers.py`` simulates pools of each kind: with so many
samples and this evenness, requests of four clients or more pass for a loop in at most 2 % of watches."""
_GAP_NS: Final = 20e6
"""Longest mean time between two executions of a session. A client that takes longer does something else in
between."""
_IDLE: Final = 0.1
"""Most of their time that sessions which commit each statement can be idle in transaction."""
_CYCLES: Final = 10.0
"""Longest transaction of one row, in mean times between two executions of a session. Samples prefer the long
ones, of which a busy machine has many."""
_COMMITS: Final = 0.8
"""Fewest commits of the database for each execution."""
_CONTROL: Final = re.compile(r"(?:begin|start transaction|commit|end)\b")
_VERBS: Final = {"insert": "Insert", "update": "Update", "delete": "Delete", "lock": "Lock"}
_REQUESTS: Final = (
    "If the rows come from independent requests, such as those of a pooler or a queue, each needs its own "
    "commit."
)


def writes_many_rows(writer: RowWriter, seconds: float) -> bool:
    """Return whether so few sessions execute a write so often, and little else, that they are a loop."""
    return (
        writer.calls >= _CALLS
        and writer.others <= _LITTLE_ELSE * writer.calls
        and writer.processes <= SESSIONS
        and writer.samples >= _SAMPLES
        and writer.evenness >= _EVEN
        and _gap_ns(writer, seconds) <= _GAP_NS
    )


def _gap_ns(writer: RowWriter, seconds: float) -> float:
    """Return how long a session waits between two executions on average, unless it worked for a part only."""
    return max(0.0, writer.processes - writer.sessions) * seconds * 1e9 / writer.calls


def _commits_each(writer: RowWriter, seen: Evidence) -> bool:
    """Return whether a writer commits each row, in a transaction for each or without.

    The server does not count a BEGIN that a driver has prepared, but samples show how old transactions are.
    """
    if seen.rates is not None and seen.rates.commits * seen.seconds < _COMMITS * writer.calls:
        return False
    transactions = () if seen.database is None else seen.database.transactions
    own = (
        transaction
        for transaction in transactions
        if (transaction.user, transaction.template) == (writer.user, writer.template)
    )
    longest_ns = max((transaction.length_ns for transaction in own), default=0)
    cycle_ns = writer.processes * seen.seconds * 1e9 / writer.calls
    return writer.idle_share <= _IDLE or longest_ns <= _CYCLES * cycle_ns


def _find(seen: Evidence) -> Iterator[Finding]:
    writers = () if seen.database is None else seen.database.writers
    control = {each.number for each in seen.statements.values() if _CONTROL.match(each.text)}
    for writer in writers:
        if not writes_many_rows(writer, seen.seconds) or not _commits_each(writer, seen):
            continue
        statement = seen.statements.get(writer.template, Statement(writer.template, writer.text))
        what = written(statement)
        rows = statement.a_call(statement.rows)
        executing_s = (statement.mean_ns or 0.0) * writer.calls / 1e9
        if what is None or (rows is not None and rows > _ONE_ROW):
            continue
        if executing_s > (1 - LOG_SHARE) * writer.processes * seen.seconds:
            continue
        name = writer.application or writer.user
        who = f"Application {name}" if writer.application else f"Role {name}"
        words = ROW_WORDS[what.kind].format(rows=count_words(writer.calls, "row"), table=what.table)
        yield Finding(
            RULE.name,
            f"{who} {words} with a commit for each",
            objects=(name, what.table),
            bill=seen.bill(partial(_spent, writer, control)),
            templates=(writer.template,),
            statement=writer.text,
            evidence=tuple(_evidence(writer, seen)),
            candidates=commit_candidates(what, statement, seen),
            against=(_REQUESTS,),
            proof="Compare a commit a row with larger transactions in uncork run: the batch strategies.",
        )


def _evidence(writer: RowWriter, seen: Evidence) -> Iterator[str]:
    each = format_duration(writer.processes * seen.seconds * 1e9 / writer.calls)
    yield (
        f"Role {writer.user} executed it {format_count(writer.calls)} times during the watch, and all other "
        f"statements {format_count(writer.others)} times."
    )
    yield f"{count_words(writer.processes, 'session')} sent it, one row each {each} per session."
    yield f"They wait for the write-ahead log in {share_text(writer.log_share)} of their busy time."


def commit_candidates(what: Written, statement: Statement, seen: Evidence) -> tuple[Candidate, ...]:
    """Return what a client that commits each row can do instead."""
    return (
        Candidate(
            "client",
            f"{_VERBS[what.kind]} many rows with one statement, or commit once for many rows.",
            sql=batched(statement, seen),
            habit="commits each",
        ),
        Candidate(
            "setting",
            "Let these sessions not wait for the disk, with synchronous_commit = off.",
            sql="SET synchronous_commit = off;",
            undo="RESET synchronous_commit;",
            against=("A crash of the server loses the commits of the last moments.",),
        ),
    )


def _spent(writer: RowWriter, control: Collection[int | None], piece: Piece) -> float:
    """Return whether a piece of time is that of a writer."""
    return float(
        piece.user == writer.user and (piece.template == writer.template or piece.template in control)
    )


RULE: Final = Rule("row-by-row-commit", _find)
