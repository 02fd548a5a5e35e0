"""Statements that a client sends one by one in a loop (N+1): in transactions, in logs, after lists. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from uncork.diagnosis.changes import client_change
from uncork.diagnosis.evidence import Evidence, Piece, Statement, grouped
from uncork.diagnosis.log_loops import ClientLoop, client_loops
from uncork.diagnosis.rule import finding, rule, worth
from uncork.diagnosis.rules.writes.written import Written, batched, one_row, written
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.results.database_transactions import InTransaction
from uncork.model.results.log import LogResult
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, format_duration

_SHORT_GAP_NS: Final = 20_000_000
"""Longest pause between two statements of a loop. A round trip takes a few milliseconds in a data
centre; a client that takes longer does something else in between."""
_LOOP_STATEMENTS: Final = 50
"""Fewest executions of one template in a transaction that indicate a loop. A transaction written by
hand has a dozen statements."""
_LOOP_IN_TURN: Final = 10
"""Fewest executions of each template of a loop that sends several in turn, in a transaction and for
each BEGIN: a transaction written by hand executes each of its statements once or twice."""
_LOOP_LEAST_CALLS: Final = 2
"""Calls for each BEGIN of the only application that uses transactions, below which its templates
are in no loop, whatever a few samples suggest."""
_PAUSES_TOO_LONG: Final = 10
"""Factor by which sampling can overestimate pauses: one machine showed pauses of 0.05 ms as 0.3 to 0.5 ms."""
_LOOP_SAMPLES: Final = 5
"""Fewest samples for an estimate of pauses."""
_CREDIBLE: Final = 3.0
"""Factor above the estimated executions from which on calls for each BEGIN are not reported:
PostgreSQL counts only the first execution of a BEGIN that a driver has prepared."""
_NUMBERS: Final = re.compile(r"select\s+(?:[\w$]+\.)?nextval\s*\(")
_BEGIN: Final = re.compile(r"begin\b|start transaction\b")


def loops(evidence: Evidence) -> list[InTransaction]:
    """Return the templates that a client sends one by one, in a loop within a transaction.

    A loop may send several templates in turn. Each of them then has fewer executions than a loop of
    one, so all are counted together. In this case each must also have several calls for each BEGIN
    that pg_stat_statements counted: estimates from samples alone could take the statements of a
    transaction that was written by hand for a loop.
    """
    found = [
        transaction
        for transaction in evidence.transactions
        if transaction.template is not None
        and transaction.samples >= _LOOP_SAMPLES
        and transaction.gap_ns <= _SHORT_GAP_NS
    ]
    in_turn = [
        transaction
        for transaction in found
        if _executions(transaction, evidence) >= _LOOP_IN_TURN
        and _calls_a_begin(transaction, evidence) >= _LOOP_IN_TURN
    ]
    together = [
        transaction
        for of_client in grouped(in_turn, lambda loop: (loop.application, loop.user)).values()
        if sum(_executions(transaction, evidence) for transaction in of_client) >= _LOOP_STATEMENTS
        for transaction in of_client
    ]
    return [
        transaction
        for transaction in found
        if _executions(transaction, evidence) >= _LOOP_STATEMENTS or transaction in together
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
    others = any(
        (each.application, each.user) != (transaction.application, transaction.user)
        for each in evidence.transactions
    )
    counted = _calls_a_begin(transaction, evidence)
    if not others and 0 < counted < _LOOP_LEAST_CALLS:
        return counted
    statement = evidence.statement(transaction.template)
    busy = 0.0 if statement is None else evidence.all_of(statement.number)
    if statement is None or not statement.calls or not busy:
        return transaction.per_transaction
    a_second = statement.calls / (busy * evidence.seconds)
    return min(
        a_second * transaction.part * transaction.length_ns / 1e9,
        _PAUSES_TOO_LONG * transaction.per_transaction,
    )


@rule("one-by-one")
def find_one_by_one(evidence: Evidence) -> Iterator[Finding]:
    """Find statements that a client sends one by one in a loop, where one statement would do (N+1).

    Sessions that wait for the locks of such a transaction count towards the finding.
    """
    by_client = grouped(loops(evidence), lambda loop: (loop.application, loop.user))
    for (application, user), found in by_client.items():
        held = sum(
            blocker.sessions
            for blocker in evidence.blockers
            if (blocker.application, blocker.user) == (application, user)
        )
        found.sort(key=lambda loop: -loop.sessions)
        who, top = application or user, found[0]
        templates = tuple(dict.fromkeys(loop.template for loop in found if loop.template is not None))
        waiting = evidence.part_of_class("Lock", held)
        calls = sum(statement.calls or 0 for statement in evidence.chosen(templates))
        per = format_count(float(f"{_executions(top, evidence):.1g}"))
        ratio = _calls_a_begin(top, evidence)
        statement = evidence.statement(top.template)
        write = None if statement is None else written(statement)
        objects = (who,) if write is None else (who, write.table)
        sentences = [
            f"The client waits {format_duration(float(top.gap_ns))} between two statements of such "
            "a transaction.",
            f"A transaction executes the costliest of them about {per} times.",
        ]
        if len(templates) > 1:
            sentences.append(f"It sends {len(templates)} templates in turn.")
        if 1.5 <= ratio <= _CREDIBLE * _executions(top, evidence):
            calls_words = f"{format_count(round(ratio))} calls of the first for each BEGIN"
            sentences.append(f"The server counted {calls_words}.")
        if held:
            sentences.append(f"Its transactions block {held:.2f} other sessions on average.")
        yield finding(
            _one_by_one_headline(who, statement, write, calls, per, single=len(templates) == 1),
            *loop_candidates(top.text, statement, evidence),
            objects=objects,
            bill=evidence.bill(partial(_caused, numbers=templates, application=application, waiting=waiting)),
            templates=templates,
            text=top.text,
            evidence=sentences,
            proof="Compare both ways of the client with uncork run, as two workloads that return "
            "the same rows.",
        )


def _caused(piece: Piece, *, numbers: Collection[int | None], application: str, waiting: float) -> float:
    if piece.wait_class == "Lock":
        return waiting
    return float(piece.template in numbers and piece.application == application)


def _one_by_one_headline(
    who: str, statement: Statement | None, write: Written | None, calls: int, per: str, *, single: bool
) -> str:
    if not calls:
        return f"Application {who} sends {per} statements or more one by one within each of its transactions"
    if statement is not None and write is not None and single and one_row(statement):
        return f"Application {who} {write.words(calls)} one by one within transactions"
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
        yield client_change(
            "Let the INSERT draw the number (a default, and RETURNING where the client needs it), or draw "
            "many numbers with one statement: SELECT nextval(...) FROM generate_series(1, 50)."
        )
        yield client_change(
            "Let the sequence advance by 50 and the client count on from there (ALTER SEQUENCE ... "
            "INCREMENT BY 50; in an ORM, a pooled optimizer with the same allocation size).",
            "All clients must count in the same way: change them and the sequence together.",
        )
        return
    else:
        words = (
            "Fetch all rows with one statement (a join, or WHERE key = ANY of a list; in an ORM, "
            "eager loading)"
        )
    if pipelined:
        yield client_change(f"{words}.", sql=sql, habit="pipelines")
        return
    words += ", or send the statements in a pipeline."
    yield client_change(words, sql=sql, habit="loops in a transaction")


_MOST_OF: Final = 0.9
"""Fraction of a template's time that an application must have to be named."""
_PROOF: Final = "Compare both ways of the client with uncork run, as two workloads with the same rows."
_PIPELINE_PROOF: Final = (
    "Compare ways to send the rows: uncork new --from writes the experiment from this run."
)


@rule("one-by-one")
def find_loops_in_log(evidence: Evidence) -> Iterator[Finding]:
    """Find statements that a client sends one by one in a loop, as logs show them (N+1).

    The bill is the time of the executions in loops, and of the time between them.
    """
    log = evidence.log
    for loop in () if log is None else client_loops(log):
        numbers = tuple(
            evidence.log_numbers[template] for template in loop.templates if template in evidence.log_numbers
        )
        if log is not None and numbers:
            statement = evidence.statements.get(numbers[0], Statement(numbers[0], loop.text))
            application = _application_in_log(loop, log)
            write = written(statement)
            tables: tuple[str, ...] = () if write is None else (write.table,)
            if write is None:
                tables = statement.tables[:1]
            reads = loop.text.startswith("select") and write is None
            lookup = reads and not loop.in_transaction and not loop.pipelined and len(numbers) == 1
            yield finding(
                _headline_in_log(loop, statement, application, tables, lookup=lookup),
                *_candidates_in_log(loop, statement, evidence),
                objects=(*((application,) if application else ()), *tables),
                bill=_bill_in_log(loop, evidence),
                templates=numbers,
                text=loop.text,
                evidence=_evidence_in_log(loop),
                proof=_PIPELINE_PROOF if loop.pipelined else _PROOF,
                rule="lookup-loop" if lookup else "",
            )


def _bill_in_log(loop: ClientLoop, evidence: Evidence) -> Bill:
    """Return the bill: of the log's time if there is only a log, else for the seconds of the log."""
    log = evidence.log
    if log is None or log.first_us is None or log.last_us is None:
        return evidence.bill_of_seconds(0.0)
    seconds = max(1.0, (log.last_us - log.first_us) / 1e6)
    return evidence.bill_of_seconds((loop.sum_ns + loop.waiting_ns) / 1e9 / seconds * evidence.seconds)


def _candidates_in_log(loop: ClientLoop, statement: Statement, evidence: Evidence) -> Iterator[Candidate]:
    for candidate in loop_candidates(loop.text, statement, evidence, pipelined=loop.pipelined):
        if candidate.habit and not loop.in_transaction and not loop.pipelined:
            yield replace(candidate, habit="loops")
        else:
            yield candidate


def _headline_in_log(
    loop: ClientLoop, statement: Statement, application: str, tables: Sequence[str], *, lookup: bool
) -> str:
    who = f"Application {application}" if application else "A client"
    where = " within transactions" if loop.in_transaction else ""
    way = "in a pipeline" if loop.pipelined else f"one by one{where}"
    write = written(statement)
    single = len(loop.templates) == 1
    if lookup and tables:
        return f"{who} looks up rows of {tables[0]} one by one, up to {format_count(loop.longest)} in a row"
    if write is not None and single and one_row(statement):
        return f"{who} {write.words(loop.executions)} {way}"
    return f"{who} sends {format_count(loop.executions)} statements {way}"


def _application_in_log(loop: ClientLoop, log: LogResult) -> str:
    """Return the application that sends a loop; empty if there are several."""
    found = next(
        (template.applications for template in log.templates if template.number == loop.templates[0]), ()
    )
    return next((contribution.name for contribution in found if contribution.share >= _MOST_OF), "")


def _evidence_in_log(loop: ClientLoop) -> Iterator[str]:
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


_LIST_ROWS: Final = 10.0
"""Fewest rows per call of a list. With fewer, one statement for all of them saves little."""
_LISTS: Final = 10
"""Fewest calls of a list: below it, a coincidence of two counts is too likely."""
_LOOKUP_ROWS: Final = 5.0
"""Most rows per call of a lookup."""
_TOLERANCE: Final = 0.03
"""Largest difference between the calls of a lookup and the rows of its list, as a fraction, beyond
the lists that sessions were working through when the watch began and ended. Of unrelated lookups
and lists whose rates differ by up to a hundred times, about one pair in a hundred is as close
(``tests/calibration/test_lookup_loops.py``)."""
_MOST_OPEN: Final = 0.1
"""Largest part of the lists that may have been open at both ends of the watch. With more, any
number of lookups fits."""
_PART: Final = 0.01
"""Least part of the busy time of a lookup. With less, ten of them for each row would not be a finding."""
_EQUAL: Final = re.compile(r"([\w$]+)\"?\s*=\s*\?")
_TABLE: Final = re.compile(r"\bfrom\s+\"?([\w$.]+)")


_EXACT_CALLS: Final = 1_000
_EXACT: Final = 0.01
"""Fewest calls of a lookup whose time is no finding, and the largest difference between its calls
and the rows of its list, as a fraction. Such a lookup costs round trips instead, and nothing but
these counts shows the loop: of unrelated pairs, about two in a thousand are as close
(``tests/calibration/test_lookup_loops.py``)."""


def follows(lookup: Statement, listed: Statement, sessions: float) -> bool:
    """Return whether a lookup was called as often as a list returned rows. `sessions` send both."""
    rows, lists, calls = listed.rows or 0, listed.calls or 0, lookup.calls or 0
    if lists < _LISTS or rows < _LIST_ROWS * lists or not calls:
        return False
    # At each end of the watch, each session was on average half way through a list.
    opened = math.ceil(max(1.0, sessions)) * rows / lists
    return opened <= _MOST_OPEN * rows and abs(calls - rows) <= _TOLERANCE * rows + opened


def follows_exactly(lookup: Statement, listed: Statement) -> bool:
    """Return whether a lookup was called as often as a list returned rows, as nearly as a watch can count.

    Both are statements of one role, and each lookup returns at most one row.
    """
    rows, lists, calls = listed.rows or 0, listed.calls or 0, lookup.calls or 0
    return (
        lookup.role == listed.role
        and (lookup.rows or 0) <= calls
        and calls >= _EXACT_CALLS
        and rows >= _LIST_ROWS * lists
        and lists * _EXACT >= 1
        and abs(calls - rows) <= _EXACT * rows
    )


@rule("lookup-loop")
def find_lookup_loops(evidence: Evidence) -> Iterator[Finding]:
    """Find lookups that a client sends for each row of a list, without a transaction around them (N+1).

    A lookup that takes little time of the server costs its client a round trip for each row.
    """
    billed: set[int] = set()
    for found in _billed(evidence):
        billed.update(found.templates)
        yield found
    if evidence.database is not None:
        yield from _unbilled(evidence, billed)


def _unbilled(evidence: Evidence, billed: Collection[int]) -> Iterator[Finding]:
    reads = [statement for statement in evidence.statements.values() if _reads(statement)]
    lists = [read for read in reads if (read.a_call(read.rows) or 0) >= _LIST_ROWS]
    left = {loop.template for loop in loops(evidence)} | set(billed)
    for lookup in reads:
        if lookup.number in left or (lookup.calls or 0) < _EXACT_CALLS or not _key(lookup):
            continue
        parents = [listed for listed in lists if follows_exactly(lookup, listed)]
        nearest = _nearest(lookup, parents, evidence)
        if nearest is not None:
            yield _may_loop(nearest, lookup, evidence)


def _nearest(lookup: Statement, lists: Sequence[Statement], evidence: Evidence) -> Statement | None:
    """Return the list that can have the keys of a lookup and returned about as many rows."""
    linked = (listed for listed in lists if _linked(lookup, listed, evidence))
    return min(linked, key=lambda listed: abs((listed.rows or 0) - (lookup.calls or 0)), default=None)


def _may_loop(listed: Statement, lookup: Statement, evidence: Evidence) -> Finding:
    sure = _lookup_loop(listed, [lookup], evidence)
    who, table = _application(lookup, evidence), _table(lookup)
    each = format_count(round(listed.a_call(listed.rows) or 0))
    name = f"Application {who}" if who else f"Role {lookup.role}" if lookup.role else "A client"
    return replace(
        sure,
        headline=f"{name} may look up rows of {table} one by one, {each} after each list",
        objects=(table, *((who or lookup.role,) if who or lookup.role else ())),
        bill=None,
        cost=f"{each} round trips for each list",
        against=(
            "Only the counts agree. Independent requests that happen to be as many look the same: "
            "compare with the code, or with a log of all statements.",
        ),
    )


def _billed(evidence: Evidence) -> Iterator[Finding]:
    looping = {loop.template for loop in loops(evidence)}
    reads = [statement for statement in evidence.statements.values() if _reads(statement)]
    lists = [
        read for read in reads if (read.calls or 0) >= _LISTS and (read.a_call(read.rows) or 0) >= _LIST_ROWS
    ]
    found: dict[int, list[Statement]] = {}
    for read in reads:
        if read.number in looping or (read.a_call(read.rows) or 0.0) > _LOOKUP_ROWS or not _key(read):
            continue
        if evidence.share(evidence.busy(read.number)) < _PART:
            continue
        sessions = max(1.0, evidence.all_of(read.number))
        parents = [listed for listed in lists if listed is not read and follows(read, listed, sessions)]
        nearest = _nearest(read, parents, evidence)
        if nearest is not None:
            found.setdefault(nearest.number, []).append(read)
    for number, children in found.items():
        children.sort(key=lambda child: -evidence.busy(child.number))
        bill = evidence.bill_of([child.number for child in children])
        if worth(bill):
            yield _lookup_loop(evidence.statements[number], children, evidence)


def _lookup_loop(parent: Statement, children: list[Statement], seen: Evidence) -> Finding:
    top = children[0]
    application = _application(top, seen)
    each = format_count(round(parent.a_call(parent.rows) or 0))
    table = _table(top)
    who = f"Application {application}" if application else "A client"
    evidence = [
        f"The list is called {format_count(parent.calls or 0)} times and returns {each} rows a "
        f"call: {short_template(parent.text)}",
        f"The list returned {format_count(parent.rows or 0)} rows, and the lookup was called "
        f"{format_count(top.calls or 0)} times.",
    ]
    if len(children) > 1:
        evidence.append(f"{len(children)} templates are called once for each row of the list.")
    return finding(
        f"{who} looks up rows of {table} one by one, {each} after each list",
        client_change(
            "Fetch all rows with one statement (a join with the list, or WHERE key = ANY of "
            "its keys; in an ORM, eager loading).",
            sql=batched(top, seen),
            habit="loops",
        ),
        objects=(table, *((application,) if application else ())),
        bill=seen.bill_of([child.number for child in children]),
        statements=children,
        evidence=evidence,
        proof="Compare both ways of the client with uncork run, as two workloads that return the same rows.",
    )


def _reads(statement: Statement) -> bool:
    """Return whether a statement of a client reads rows, and its calls and rows were counted."""
    if statement.number < 0 or statement.nested or statement.calls is None or statement.rows is None:
        return False
    shape, reads = statement.shape, statement.text.startswith("select")
    return reads and shape.kind in ("", "select") and not shape.locking


def _key(statement: Statement) -> frozenset[str]:
    """Return the columns that a statement compares with a parameter for equality."""
    if not statement.shape.kind:
        return frozenset(_EQUAL.findall(statement.text.partition(" where ")[2]))
    return frozenset(
        predicate.column
        for predicate in statement.shape.predicates
        if predicate.operator == "="
        and predicate.value == "parameter"
        and predicate.column
        and not predicate.alternative
    )


def _table(statement: Statement) -> str:
    if statement.tables:
        return statement.tables[0]
    match = _TABLE.search(statement.text)
    return match[1].removeprefix("public.") if match else "a table"


def _tables(statement: Statement) -> frozenset[str]:
    return frozenset(statement.tables if statement.shape.kind else {_table(statement)})


def _linked(lookup: Statement, listed: Statement, evidence: Evidence) -> bool:
    """Return whether a list can have the keys of a lookup.

    Either both read the same table, or a foreign key connects their tables, or the list returns a
    column that has the name of the key.
    """
    looked_up, listing = _tables(lookup), _tables(listed)
    if not looked_up or not listing:
        return False
    return bool(
        looked_up & listing
        or any(
            {key.table, key.referred} <= (looked_up | listing)
            and (key.table in looked_up) != (key.table in listing)
            for key in evidence.foreign_keys
        )
        or _key(lookup) & {output.column for output in listed.shape.outputs}
    )


def _application(statement: Statement, evidence: Evidence) -> str:
    spent: dict[str, float] = {}
    for piece in evidence.pieces_of(statement.number):
        spent[piece.application] = spent.get(piece.application, 0.0) + piece.sessions
    return max(spent, key=lambda name: spent[name], default="")
