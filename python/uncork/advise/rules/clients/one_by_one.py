"""Statements that a client sends one by one in a loop, where one statement would do (N+1). Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Piece, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.writes.batches import batched
from uncork.advise.rules.writes.written import ROW_WORDS, Written, one_row, written
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.units import count_words, format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.results.database_transactions import InTransaction

_SHORT_GAP_NS: Final = 20_000_000
"""Longest pause between two statements of a loop. A round trip takes a few milliseconds in a data centre; a
client that takes longer does something else in between."""
_LOOP_STATEMENTS: Final = 50
"""Fewest executions of one template in a transaction that indicate a loop. A transaction written by hand has
a dozen statements."""
_LOOP_IN_TURN: Final = 10
"""Fewest executions of each template of a loop that sends several in turn, in a transaction and for each
BEGIN: a transaction written by hand executes each of its statements once or twice."""
_LOOP_LEAST_CALLS: Final = 2
"""Calls for each BEGIN of the only application that uses transactions, below which its templates are in no
loop, whatever a few samples suggest."""
_PAUSES_TOO_LONG: Final = 10
"""Factor by which sampling can overestimate pauses: one machine showed pauses of 0.05 ms as 0.3 to 0.5 ms."""
_LOOP_SAMPLES: Final = 5
"""Fewest samples for an estimate of pauses."""
_CREDIBLE: Final = 3.0
"""Factor above the estimated executions from which on calls for each BEGIN are not reported: PostgreSQL
counts only the first execution of a BEGIN that a driver has prepared."""
_NUMBERS: Final = re.compile(r"select\s+(?:[\w$]+\.)?nextval\s*\(")
_BEGIN: Final = re.compile(r"begin\b|start transaction\b")


def loops(evidence: Evidence) -> list[InTransaction]:
    """Return the templates that a client sends one by one, in a loop within a transaction.

    A loop may send several templates in turn. Each of them then has fewer executions than a loop of one, so
    all are counted together. In this case each must also have several calls for each BEGIN that
    pg_stat_statements counted: estimates from samples alone could take the statements of a transaction that
    was written by hand for a loop.
    """
    transactions = () if evidence.database is None else evidence.database.transactions
    found = [
        transaction
        for transaction in transactions
        if transaction.template is not None
        and transaction.samples >= _LOOP_SAMPLES
        and transaction.gap_ns <= _SHORT_GAP_NS
    ]
    in_turn: dict[tuple[str, str], list[InTransaction]] = {}
    for transaction in found:
        if (
            _executions(transaction, evidence) >= _LOOP_IN_TURN
            and _calls_a_begin(transaction, evidence) >= _LOOP_IN_TURN
        ):
            in_turn.setdefault((transaction.application, transaction.user), []).append(transaction)
    together = {
        key
        for key, all_of in in_turn.items()
        if sum(_executions(transaction, evidence) for transaction in all_of) >= _LOOP_STATEMENTS
    }
    return [
        transaction
        for transaction in found
        if _executions(transaction, evidence) >= _LOOP_STATEMENTS
        or (
            (transaction.application, transaction.user) in together
            and transaction in in_turn[transaction.application, transaction.user]
        )
    ]


def _calls_a_begin(transaction: InTransaction, evidence: Evidence) -> float:
    """Return how often a template was called for each BEGIN of any client; 0 if either was not counted."""
    calls = begins = 0
    for statement in evidence.statements.values():
        if statement.number == transaction.template:
            calls = statement.calls or 0
        if _BEGIN.match(statement.text):
            begins += statement.calls or 0
    return calls / begins if begins else 0.0


def _executions(transaction: InTransaction, evidence: Evidence) -> float:
    """Estimate how often one transaction executes a template.

    The estimate is the rate of calls while sessions are busy with the template, times the length of one
    transaction. Other clients may execute it outside transactions, so the pauses between statements bound it.
    If transactions are of one application only, a template with hardly more calls than BEGIN is in no loop.
    """
    transactions = () if evidence.database is None else evidence.database.transactions
    others = any(
        (each.application, each.user) != (transaction.application, transaction.user) for each in transactions
    )
    counted = _calls_a_begin(transaction, evidence)
    if not others and 0 < counted < _LOOP_LEAST_CALLS:
        return counted
    statement = evidence.statements.get(-1 if transaction.template is None else transaction.template)
    busy = 0.0 if statement is None else evidence.all_of(statement.number)
    if statement is None or not statement.calls or not busy:
        return transaction.per_transaction
    a_second = statement.calls / (busy * evidence.seconds)
    return min(
        a_second * transaction.part * transaction.length_ns / 1e9,
        _PAUSES_TOO_LONG * transaction.per_transaction,
    )


def _find(evidence: Evidence) -> Iterator[Finding]:
    """Sessions that wait for the locks of such a transaction count towards the finding."""
    by_client: dict[tuple[str, str], list[InTransaction]] = {}
    for loop in loops(evidence):
        by_client.setdefault((loop.application, loop.user), []).append(loop)
    for (application, user), found in by_client.items():
        blockers = () if evidence.database is None else evidence.database.blockers
        held = sum(
            blocker.sessions
            for blocker in blockers
            if (blocker.application, blocker.user) == (application, user)
        )
        numbers = {transaction.template for transaction in found}
        waiting = evidence.part_of_class("Lock", held)
        bill = evidence.bill(partial(_caused, numbers=numbers, application=application, waiting=waiting))
        yield _finding(
            application or user, sorted(found, key=lambda one: -one.sessions), held, bill, evidence
        )


def _caused(piece: Piece, *, numbers: Collection[int | None], application: str, waiting: float) -> float:
    """Return the part of a piece of time that a loop causes."""
    if piece.wait_class == "Lock":
        return waiting
    return float(piece.template in numbers and piece.application == application)


def _finding(who: str, found: Sequence[InTransaction], held: float, bill: Bill, seen: Evidence) -> Finding:
    top = found[0]
    numbers = tuple(
        dict.fromkeys(transaction.template for transaction in found if transaction.template is not None)
    )
    calls = sum(seen.statements[number].calls or 0 for number in numbers if number in seen.statements)
    per = format_count(float(f"{_executions(top, seen):.1g}"))
    ratio = _calls_a_begin(top, seen)
    statement = seen.statements.get(-1 if top.template is None else top.template)
    what = None if statement is None else written(statement)
    objects = (who,) if what is None else (who, what.table)
    evidence = [
        f"The client waits {format_duration(float(top.gap_ns))} between two statements of such a "
        "transaction.",
        f"A transaction executes the costliest of them about {per} times.",
    ]
    if len(numbers) > 1:
        evidence.append(f"It sends {len(numbers)} templates in turn.")
    if 1.5 <= ratio <= _CREDIBLE * _executions(top, seen):
        calls_words = f"{format_count(round(ratio))} calls of the first for each BEGIN"
        evidence.append(f"The server counted {calls_words}.")
    if held:
        evidence.append(f"Its transactions block {held:.2f} other sessions on average.")
    return Finding(
        RULE.name,
        _headline(who, statement, what, calls, per, single=len(numbers) == 1),
        objects=objects,
        bill=bill,
        templates=numbers,
        statement=top.text,
        evidence=tuple(evidence),
        candidates=tuple(loop_candidates(top.text, statement, seen)),
        proof="Compare both ways of the client with uncork run, as two workloads that return the same rows.",
    )


def _headline(
    who: str, statement: Statement | None, what: Written | None, calls: int, per: str, *, single: bool
) -> str:
    if not calls:
        return f"Application {who} sends {per} statements or more one by one within each of its transactions"
    if statement is not None and what is not None and single and one_row(statement):
        words = ROW_WORDS[what.kind].format(rows=count_words(calls, "row"), table=what.table)
        return f"Application {who} {words} one by one within transactions"
    return f"Application {who} sends {format_count(calls)} statements one by one within transactions"


def loop_candidates(
    text: str, statement: Statement | None, evidence: Evidence, *, pipelined: bool = False
) -> Iterator[Candidate]:
    """Yield what a client that sends a statement in a loop can do instead, or in a pipeline (`pipelined`)."""
    sql = "" if statement is None else batched(statement, evidence)
    if text.startswith("insert"):
        words = "Insert many rows with one statement (several VALUES, unnest of arrays, COPY)"
    elif text.startswith("update"):
        words = "Update many rows with one statement (UPDATE ... FROM unnest of arrays)"
    elif text.startswith("delete"):
        words = "Delete many rows with one statement (WHERE key = ANY of a list)"
    elif _NUMBERS.match(text):
        yield Candidate(
            "client",
            "Let the INSERT draw the number (a default, and RETURNING where the client needs it), or draw "
            "many numbers with one statement: SELECT nextval(...) FROM generate_series(1, 50).",
        )
        yield Candidate(
            "client",
            "Let the sequence advance by 50 and the client count on from there (ALTER SEQUENCE ... INCREMENT "
            "BY 50; in an ORM, a pooled optimizer with the same allocation size).",
            against=("All clients must count in the same way: change them and the sequence together.",),
        )
        return
    else:
        words = (
            "Fetch all rows with one statement (a join, or WHERE key = ANY of a list; in an ORM, eager "
            "loading)"
        )
    if pipelined:
        yield Candidate("client", f"{words}.", sql=sql, habit="pipelines")
        return
    words += ", or send the statements in a pipeline."
    yield Candidate("client", words, sql=sql, habit="loops in a transaction")


RULE: Final = Rule("one-by-one", _find)
