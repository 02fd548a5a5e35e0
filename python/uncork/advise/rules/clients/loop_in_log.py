"""Statements that a client sends one by one in a loop, as logs show them (N+1). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.log_loops import ClientLoop, client_loops
from uncork.advise.rule import Rule
from uncork.advise.rules.clients.one_by_one import loop_candidates
from uncork.advise.rules.writes.written import ROW_WORDS, one_row, written
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.results.log import LogResult
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, format_duration

_MOST_OF: Final = 0.9
"""Fraction of a template's time that an application must have to be named."""
_LOOKUP: Final = "lookup-loop"
_PROOF: Final = "Compare both ways of the client with uncork run, as two workloads with the same rows."
_PIPELINE_PROOF: Final = (
    "Compare ways to send the rows: uncork new --from writes the experiment from this run."
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    """The bill is the time of the executions in loops, and of the time between them."""
    log = evidence.log
    for loop in () if log is None else client_loops(log):
        numbers = tuple(
            evidence.log_numbers[template] for template in loop.templates if template in evidence.log_numbers
        )
        if log is not None and numbers:
            yield _finding(loop, numbers, log, evidence)


def _bill(loop: ClientLoop, evidence: Evidence) -> Bill:
    """Return the bill: of the log's time if there is only a log, else for the seconds of the log."""
    log = evidence.log
    if log is None or log.first_us is None or log.last_us is None:
        return evidence.bill_of_seconds(0.0)
    seconds = max(1.0, (log.last_us - log.first_us) / 1e6)
    return evidence.bill_of_seconds((loop.sum_ns + loop.waiting_ns) / 1e9 / seconds * evidence.seconds)


def _finding(loop: ClientLoop, numbers: Sequence[int], log: LogResult, evidence: Evidence) -> Finding:
    statement = evidence.statements.get(numbers[0], Statement(numbers[0], loop.text))
    application = _application(loop, log)
    what = written(statement)
    tables: tuple[str, ...] = () if what is None else (what.table,)
    if what is None and statement.shape is not None:
        tables = tuple(table.name for table in statement.shape.tables if table.kind == "table")[:1]
    reads = loop.text.startswith("select") and what is None
    lookup = reads and not loop.in_transaction and not loop.pipelined and len(numbers) == 1
    return Finding(
        _LOOKUP if lookup else RULE.name,
        _headline(loop, statement, application, tables, lookup=lookup),
        objects=(*((application,) if application else ()), *tables),
        bill=_bill(loop, evidence),
        templates=tuple(numbers),
        statement=loop.text,
        evidence=tuple(_evidence(loop)),
        candidates=tuple(_candidates(loop, statement, evidence)),
        proof=_PIPELINE_PROOF if loop.pipelined else _PROOF,
    )


def _candidates(loop: ClientLoop, statement: Statement, evidence: Evidence) -> Iterator[Candidate]:
    for candidate in loop_candidates(loop.text, statement, evidence, pipelined=loop.pipelined):
        if candidate.habit and not loop.in_transaction and not loop.pipelined:
            yield replace(candidate, habit="loops")
        else:
            yield candidate


def _headline(
    loop: ClientLoop, statement: Statement, application: str, tables: Sequence[str], *, lookup: bool
) -> str:
    who = f"Application {application}" if application else "A client"
    where = " within transactions" if loop.in_transaction else ""
    way = "in a pipeline" if loop.pipelined else f"one by one{where}"
    what = written(statement)
    single = len(loop.templates) == 1
    if lookup and tables:
        return f"{who} looks up rows of {tables[0]} one by one, up to {format_count(loop.longest)} in a row"
    if what is not None and single and one_row(statement):
        words = ROW_WORDS[what.kind].format(rows=count_words(loop.executions, "row"), table=what.table)
        return f"{who} {words} {way}"
    return f"{who} sends {format_count(loop.executions)} statements {way}"


def _application(loop: ClientLoop, log: LogResult) -> str:
    """Return the application that sends a loop; empty if there are several."""
    found = next(
        (template.applications for template in log.templates if template.number == loop.templates[0]), ()
    )
    return next((contribution.name for contribution in found if contribution.share >= _MOST_OF), "")


def _evidence(loop: ClientLoop) -> Iterator[str]:
    spent = format_duration(float(loop.sum_ns + loop.waiting_ns))
    waiting = format_duration(float(loop.waiting_ns))
    row = f"{count_words(loop.executions, 'execution')}, up to {format_count(loop.longest)} in a row"
    if loop.pipelined:
        yield f"{row}, took {spent}, {waiting} of it between executions, with their messages."
        yield "The client sends them in a pipeline: it does not wait for each answer."
        yield "A driver's batch is no bulk statement: the server executes each statement on its own."
    else:
        yield f"{row}, took {spent}, of which the server waited {waiting} for the client."
    if loop.parent_text:
        yield f"They follow each execution of {short_template(loop.parent_text, 60)}"
    if len(loop.templates) > 1:
        yield f"The client sends {len(loop.templates)} statements in turn."


RULE: Final = Rule("one-by-one", _find)
