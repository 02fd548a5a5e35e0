"""A function of a user that is executed for each row, with queries of its own or needlessly. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement, worth
from uncork.advise.rules.indexes.problems import scanned_within
from uncork.advise.rules.plans.costs import LARGE_ROWS, SLOWER, believed_ns, own_functions
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.database.catalogue import FunctionFacts
    from uncork.model.database.plan import PlanNode

_CALLS: Final = 20.0
"""Calls of the function for each call of the statement, from which on one query for all rows is faster."""
_QUERY: Final = re.compile(r"\b(?:from|join|update|into|perform)\s+([\w\".]+)", re.IGNORECASE)
_INDEXED: Final = frozenset({"=", "<", "<=", ">", ">="})
_WRITES: Final = re.compile(r"\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate|notify)\b", re.I)
_UNSTABLE: Final = re.compile(
    r"\b(?:random|clock_timestamp|timeofday|nextval|setval|currval|lastval|gen_random_uuid|uuid_generate_v\w+|"
    r"pg_sleep|pg_notify|set_config|pg_\w*advisory\w*|txid_current|dblink\w*|execute)\b",
    re.IGNORECASE,
)
_PARAMETERS: Final = re.compile(
    r"\$\d+|'(?:[^']|'')*'|::[\w \"\[\]]+|\b(?:null|true|false|now|current_\w+)\b", re.I
)


def _find(statement: Statement, seen: Evidence) -> Finding | None:
    if statement.nested or not statement.calls or not statement.mean_ns:
        return None
    called = own_functions(statement, seen)
    for function in seen.catalogue.functions:
        if function.name not in called or function.returns_set:
            continue
        found = _index_lost(statement, function, seen) or _cost(statement, function, seen)
        if found is None:
            continue
        saved, evidence = found
        bill = seen.bill_of({statement.number: saved})
        if worth(bill) and not scanned_within(statement, function.name, saved, seen):
            return _finding(statement, function, bill, evidence, seen)
    return None


def _cost(statement: Statement, function: FunctionFacts, evidence: Evidence) -> tuple[float, str] | None:
    """Return which fraction of a statement's time a function takes, and the evidence; None if few calls.

    The best evidence is the counters of the function, then its own queries among the nested statements, then
    how much longer the statement takes than its plan without the function.
    """
    calls, mean = statement.calls or 1, statement.mean_ns or 1.0
    if function.calls is not None and function.total_ms is not None:
        others = sum(
            each.calls or 0
            for each in evidence.statements.values()
            if not each.nested and function.name in own_functions(each, evidence)
        )
        each = function.calls / max(1, others)
        if each < _CALLS:
            return None
        taken = min(1.0, function.total_ms * 1e6 / max(1, others) / mean)
        return taken, f"Each call of the statement executes the function {format_count(round(each))} times."
    nested = [each for each in evidence.statements.values() if each.nested and _within(each, function)]
    repeated = [each for each in nested if (each.calls or 0) >= _CALLS * calls]
    if repeated:
        top = max(repeated, key=lambda each: (each.mean_ns or 0.0) * (each.calls or 0))
        taken = sum((each.mean_ns or 0.0) * (each.calls or 0) for each in nested) / (mean * calls)
        many = format_count(round((top.calls or 0) / calls))
        # Calling the function and its query costs about as much as executing a query of a few rows.
        return min(1.0, 2 * taken), f"The query of the function runs {many} times for each call: {top.text}"
    place = None if statement.plan is None else _place(statement.plan.root, function)
    if statement.plan is None or place is None or mean < SLOWER / 2 * believed_ns(statement.plan.root.cost):
        return None
    rows = max([place.rows, evidence.rows(place.relation), *(child.rows for child in place.children)])
    if rows < _CALLS:
        return None
    saved = 1 - believed_ns(statement.plan.root.cost) / mean
    return saved, f"{place.kind} executes the function for up to {format_count(round(rows))} rows."


def _index_lost(
    statement: Statement, function: FunctionFacts, evidence: Evidence
) -> tuple[float, str] | None:
    """Return the wasted fraction of a full scan, if an index cannot be compared with a volatile result."""
    place = None if statement.plan is None else _place(statement.plan.root, function)
    if (
        place is None
        or place.kind != "Seq Scan"
        or function.volatility != "volatile"
        or statement.shape is None
    ):
        return None
    rows = evidence.rows(place.relation)
    compared = {
        predicate.column
        for predicate in statement.shape.predicates
        if predicate.table == place.relation
        and predicate.value == "expression"
        and predicate.operator in _INDEXED
    }
    served = any(evidence.indexed(place.relation, column) for column in compared)
    if not served or rows < LARGE_ROWS or not _same_for_all(statement, function):
        return None
    name = f"No index of {place.relation} is used, because the result of a VOLATILE function may change."
    return max(0.0, 1 - place.rows / rows), name


def _within(nested: Statement, function: FunctionFacts) -> bool:
    """Return whether a nested statement reads only tables that the function's body names."""
    names = {name.strip('"').rpartition(".")[2].lower() for name in _QUERY.findall(function.source)}
    if nested.shape is not None:
        tables = {use.name.rpartition(".")[2] for use in nested.shape.tables if use.kind == "table"}
    else:
        tables = {name.strip('"').rpartition(".")[2] for name in _QUERY.findall(nested.text)}
    return bool(tables) and tables <= names


def _place(root: PlanNode, function: FunctionFacts) -> PlanNode | None:
    """Return the node that executes a function for its rows: the innermost, whose rows are the most."""
    bare = function.name.rpartition(".")[2]
    found = None
    for node in root.walk():
        texts = (*(text for _, text in node.conditions), *node.output)
        if any(re.search(rf"\b{re.escape(bare)}\(", text) for text in texts):
            found = node
    return found


def _same_for_all(statement: Statement, function: FunctionFacts) -> bool:
    """Return whether the arguments are the same for all rows of the statement: parameters and constants."""
    bare = re.escape(function.name.rpartition(".")[2])
    calls = re.findall(rf"\b{bare}\s*\(([^()]*)\)", statement.sql or statement.text, re.IGNORECASE)
    return bool(calls) and all(not _PARAMETERS.sub("", call).strip(" ,?()") for call in calls)


def _finding(
    statement: Statement, function: FunctionFacts, bill: Bill, evidence: str, seen: Evidence
) -> Finding:
    constant = _same_for_all(statement, function)
    reads = bool(_QUERY.search(function.source))
    cause = (
        f"Function {function.name} is executed again for each row, though its arguments are the same"
        if constant
        else f"Function {function.name} is executed for each row"
        + (", with a query of its own" if reads else "")
    )
    large = [
        name for name, rows in ((table, seen.rows(table)) for table in seen.tables) if rows >= LARGE_ROWS
    ]
    read = [name for name in large if statement.uses(name)]
    return RULE.finding(
        cause,
        objects=(function.name, *read[:1]),
        bill=bill,
        statements=[statement],
        evidence=(
            evidence,
            f"A call of the statement takes {format_duration(statement.mean_ns or 0.0)}.",
            f"The function is declared {function.volatility.upper()}, in {function.language}.",
        ),
        candidates=_candidates(function, constant=constant, reads=reads),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def _candidates(function: FunctionFacts, *, constant: bool, reads: bool) -> Iterator[Candidate]:
    name = sql_name(function.name)
    writes = _WRITES.search(function.source) is not None
    stable = not writes and _UNSTABLE.search(function.source) is None
    volatility = Candidate(
        "ddl",
        f"Declare {function.name} STABLE: it then runs once to compare an index, and its result may be "
        "reused.",
        sql=f"ALTER FUNCTION {name} STABLE;",
        undo=f"ALTER FUNCTION {name} VOLATILE;",
        against=("It must neither change data nor return another result within one statement.",),
    )
    once = Candidate(
        "statement",
        f"Write (SELECT {function.name}(...)) in the condition: the server executes it once per statement.",
    )
    joined = Candidate(
        "statement",
        "Read the table of the function in the statement itself, with a join for all rows.",
        against=(
            "A join repeats rows if several rows match, and drops rows without a match unless it is LEFT.",
        ),
    )
    inline = Candidate(
        "ddl",
        f"Write {function.name} in LANGUAGE sql as a single SELECT, declared STABLE: the planner can then "
        "inline functions of expressions.",
    )
    if constant:
        yield from [volatility, once] if stable and function.volatility == "volatile" else [once]
        return
    if reads:
        yield joined
    if function.language == "plpgsql" and not reads:
        yield inline
    if stable and function.volatility == "volatile":
        yield volatility
    if not writes and function.parallel == "unsafe":
        yield Candidate(
            "ddl",
            f"Declare {function.name} PARALLEL SAFE, so that the statement may use several processes.",
            sql=f"ALTER FUNCTION {name} PARALLEL SAFE;",
            undo=f"ALTER FUNCTION {name} PARALLEL UNSAFE;",
            against=("The function must not write, use sequences, or use temporary tables.",),
        )


RULE: Final = Rule("function-per-row", each_statement(_find), depth=2)
