"""Rows written one by one, each with a commit of its own. Pure.

Requests that each write one row look the same in samples, and each needs its own commit. One client that
writes many rows differs in what can be counted: its role executes thousands of these statements and little
else, by few sessions, each of which sends the next at once. In a log, plans and durations show the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from uncork.advise.changes import session_setting
from uncork.advise.evidence import Evidence, Piece, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.writes.written import ROW_WORDS, Written, batched, one_row, written
from uncork.model.database.finding import Candidate, Finding
from uncork.model.results.log import LogResult, Repetition, TemplateFacts
from uncork.model.units import count_words, format_count, format_duration, share_text

if TYPE_CHECKING:
    from uncork.model.results.database_transactions import RowWriter

_SHARE: Final = 0.3
"""Fraction of the busy time of sessions that only write single rows. Below it, they are an event log beside
the real work."""
_LOG_SHARE: Final = 0.5
"""Fraction of their time in which their statements do not execute: they commit, or wait for the client. From
half on, larger transactions make them at least twice as fast."""
_SESSIONS: Final = 3
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
        and writer.processes <= _SESSIONS
        and writer.samples >= _SAMPLES
        and writer.evenness >= _EVEN
        and _gap_ns(writer, seconds) <= _GAP_NS
    )


def _gap_ns(writer: RowWriter, seconds: float) -> float:
    """Return how long a session waits between two executions on average, unless it worked for a part only."""
    return max(0.0, writer.processes - writer.sessions) * seconds * 1e9 / writer.calls


def _commits_each(writer: RowWriter, evidence: Evidence) -> bool:
    """Return whether a writer commits each row, in a transaction for each or without.

    The server does not count a BEGIN that a driver has prepared, but samples show how old transactions are.
    """
    if evidence.rates is not None and evidence.rates.commits * evidence.seconds < _COMMITS * writer.calls:
        return False
    own = (
        transaction
        for transaction in evidence.transactions
        if (transaction.user, transaction.template) == (writer.user, writer.template)
    )
    longest_ns = max((transaction.length_ns for transaction in own), default=0)
    cycle_ns = writer.processes * evidence.seconds * 1e9 / writer.calls
    return writer.idle_share <= _IDLE or longest_ns <= _CYCLES * cycle_ns


def _find(evidence: Evidence) -> Iterator[Finding]:
    control = {
        statement.number for statement in evidence.statements.values() if _CONTROL.match(statement.text)
    }
    for writer in () if evidence.database is None else evidence.database.writers:
        if not writes_many_rows(writer, evidence.seconds) or not _commits_each(writer, evidence):
            continue
        statement = evidence.statements.get(writer.template, Statement(writer.template, writer.text))
        what = written(statement)
        rows = statement.a_call(statement.rows)
        executing_s = (statement.mean_ns or 0.0) * writer.calls / 1e9
        if what is None or (rows is not None and rows > _ONE_ROW):
            continue
        if executing_s > (1 - _LOG_SHARE) * writer.processes * evidence.seconds:
            continue
        name = writer.application or writer.user
        who = f"Application {name}" if writer.application else f"Role {name}"
        words = ROW_WORDS[what.kind].format(rows=count_words(writer.calls, "row"), table=what.table)
        yield RULE.finding(
            f"{who} {words} with a commit for each",
            objects=(name, what.table),
            bill=evidence.bill(partial(_spent, writer, control)),
            statements=[Statement(writer.template, writer.text)],
            evidence=_evidence(writer, evidence),
            candidates=_candidates(what, statement, evidence),
            against=(_REQUESTS,),
            proof="Compare a commit a row with larger transactions in uncork run: the batch strategies.",
        )


def _evidence(writer: RowWriter, evidence: Evidence) -> Iterator[str]:
    each = format_duration(writer.processes * evidence.seconds * 1e9 / writer.calls)
    yield (
        f"Role {writer.user} executed it {format_count(writer.calls)} times during the watch, and all other "
        f"statements {format_count(writer.others)} times."
    )
    yield f"{count_words(writer.processes, 'session')} sent it, one row each {each} per session."
    yield f"They wait for the write-ahead log in {share_text(writer.log_share)} of their busy time."


def _candidates(what: Written, statement: Statement, evidence: Evidence) -> tuple[Candidate, ...]:
    """Return what a client that commits each row can do instead."""
    return (
        Candidate(
            "client",
            f"{_VERBS[what.kind]} many rows with one statement, or commit once for many rows.",
            sql=batched(statement, evidence),
            habit="commits each",
        ),
        session_setting("synchronous_commit", "off").candidate(
            "Let these sessions not wait for the disk, with synchronous_commit = off.",
            "A crash of the server loses the commits of the last moments.",
        ),
    )


def _spent(writer: RowWriter, control: Collection[int | None], piece: Piece) -> float:
    """Return whether a piece of time is that of a writer."""
    return float(
        piece.user == writer.user and (piece.template == writer.template or piece.template in control)
    )


RULE: Final = Rule("row-by-row-commit", _find)


# ---- the same in a log: a plan ends long before the duration of its statement ----


_LONGEST: Final = 50
"""Executions in a row by one session, with nothing in between, that show a job."""
_IN_ROWS: Final = 0.9
"""Least fraction of a template's executions in rows of one session. More sessions than a job has, or other
statements in between, show requests."""


def _find_in_log(evidence: Evidence) -> Iterator[Finding]:
    """A watched server shows the waits for the write-ahead log themselves, so it is asked instead."""
    log = evidence.log
    if log is None or evidence.database is not None:
        return
    for template in log.templates:
        row, statement = template.repetition, evidence.statements.get(template.number)
        if row is None or statement is None or row.longest < _LONGEST or not _alone(template, row, log):
            continue
        if row.pipelined or row.rows > _SESSIONS or row.executions < _IN_ROWS * template.executions:
            continue
        committing = _committing(template, statement)
        if committing is None or committing < _LOG_SHARE:
            continue
        what = written(statement)
        if what is None or not one_row(statement):
            continue
        name = next((application.name for application in template.applications), "")
        who = f"Application {name}" if name else "A client"
        rows = count_words(template.executions, "row")
        yield IN_LOG.finding(
            f"{who} {ROW_WORDS[what.kind].format(rows=rows, table=what.table)} with a commit for each",
            objects=(*((name,) if name else ()), what.table),
            bill=evidence.bill_of((template.number,)),
            statements=[statement],
            evidence=(
                f"An execution takes {format_duration(template.mean_ns)}. Its plan has ended after at most "
                f"{share_text(1 - committing)} of that: then the commit waits for the write-ahead log.",
            ),
            candidates=_candidates(what, statement, evidence),
            proof="Compare a commit a row with larger transactions in uncork run: the batch strategies.",
        )


def _alone(template: TemplateFacts, row: Repetition, log: LogResult) -> bool:
    """Return whether a row of executions is longer than any transaction of its applications."""
    names = {application.name for application in template.applications} or {""}
    return all(
        transaction.statements_max < row.longest
        for transaction in log.transactions
        if transaction.application in names
    )


def _committing(template: TemplateFacts, statement: Statement) -> float | None:
    """Return the least fraction of an execution's time after its plan; None if no plan was logged.

    Logs keep the plan of the slowest execution.
    """
    plan = statement.plan
    if plan is None or plan.root.milliseconds is None or not template.mean_ns:
        return None
    spent_ms = plan.root.milliseconds + sum(milliseconds for _, milliseconds in plan.triggers)
    return max(0.0, 1 - spent_ms * 1e6 / template.mean_ns)


IN_LOG: Final = Rule("row-by-row-commit", _find_in_log, least_share=_SHARE)
