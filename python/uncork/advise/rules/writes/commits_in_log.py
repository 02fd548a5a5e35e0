"""Rows written one by one, each with a commit, as plans and durations of a log show them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.writes.row_commits import LOG_SHARE, SESSIONS, SHARE, commit_candidates
from uncork.advise.rules.writes.written import ROW_WORDS, one_row, written
from uncork.model.database.finding import Finding
from uncork.model.results.log import LogResult, Repetition, TemplateFacts
from uncork.model.units import count_words, format_duration, share_text

_LONGEST: Final = 50
"""Executions in a row by one session, with nothing in between, that show a job."""
_IN_ROWS: Final = 0.9
"""Least fraction of a template's executions in rows of one session. More sessions than a job has, or other
statements in between, show requests."""


def _find(seen: Evidence) -> Iterator[Finding]:
    """A watched server shows the waits for the write-ahead log themselves, so it is asked instead."""
    log = seen.log
    if log is None or seen.database is not None:
        return
    for template in log.templates:
        row, statement = template.repetition, seen.statements.get(template.number)
        if row is None or statement is None or row.longest < _LONGEST or not _alone(template, row, log):
            continue
        if row.pipelined or row.rows > SESSIONS or row.executions < _IN_ROWS * template.executions:
            continue
        committing = _committing(template, statement)
        if committing is None or committing < LOG_SHARE:
            continue
        what = written(statement)
        if what is None or not one_row(statement):
            continue
        name = next((application.name for application in template.applications), "")
        who = f"Application {name}" if name else "A client"
        rows = count_words(template.executions, "row")
        yield Finding(
            RULE.name,
            f"{who} {ROW_WORDS[what.kind].format(rows=rows, table=what.table)} with a commit for each",
            objects=(*((name,) if name else ()), what.table),
            bill=seen.bill_of((template.number,)),
            templates=(template.number,),
            statement=template.text,
            evidence=(
                f"An execution takes {format_duration(template.mean_ns)}. Its plan has ended after at most "
                f"{share_text(1 - committing)} of that: then the commit waits for the write-ahead log.",
            ),
            candidates=commit_candidates(what, statement, seen),
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


RULE: Final = Rule("row-by-row-commit", _find, least_share=SHARE)
