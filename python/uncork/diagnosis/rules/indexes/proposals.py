"""Write indexes as candidates: SQL, what speaks against them, and forms that may be better. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.diagnosis.changes import index_change, statement_change
from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rules.indexes.estimates import pages
from uncork.diagnosis.rules.indexes.keys import Merged, key_name, pattern_kind
from uncork.diagnosis.rules.indexes.problems import Problem
from uncork.diagnosis.rules.indexes.uses import Use
from uncork.diagnosis.rules.plans.rewrite import as_containment
from uncork.model.database.finding import Candidate
from uncork.model.database.index import IndexKey, IndexShape, create_index, drop_index, new_name
from uncork.model.database.names import literal, quoted
from uncork.model.units import format_bytes, format_count, series_words

# ---- write indexes as candidates: the SQL to create and to remove them, and what speaks against them ----


_SHOWN: Final = 3
_LONGEST: Final = 40
"""Keys that a headline names, and characters of an expression in it."""
_BRIN_PAGES: Final = 1_000
_CORRELATED: Final = 0.9
"""Blocks and correlation from which on a BRIN index, which stores one range for 128 blocks, can
replace a B-tree: each part of the table has a narrow range of values only."""
_BRIN_VALUES: Final = 100
"""Fewest different values: a column with few looks ordered if nearly all rows have the same one,
and then each part of the table has the others, too."""


def columns_text(keys: Sequence[IndexKey]) -> str:
    """Return the keys of an index in a few words: ``a and b``, ``a, b and 2 more``."""
    names = [bare(key_name(key)) for key in keys]
    if len(names) <= _SHOWN:
        return series_words(names)
    return f"{', '.join(names[: _SHOWN - 1])} and {len(names) - _SHOWN + 1} more"


def bare(expression: str) -> str:
    """Return an expression for a headline, without parentheses around it."""
    text = expression.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return text if len(text) <= _LONGEST else "an expression"


def index_candidate(index: IndexShape, text: str, evidence: Evidence, extension: str = "") -> Candidate:
    """Return the candidate that creates an index, after the extension that it needs.

    An index on a partitioned table cannot be created or dropped concurrently.
    """
    index = _named(index, evidence)
    concurrently = not _partitioned(index.table, evidence)
    sql, undo = (write(index, concurrently=concurrently) for write in (create_index, drop_index))
    if extension:
        sql = f"CREATE EXTENSION IF NOT EXISTS {extension};\n{sql}"
    return index_change(text, *_against(index, extension, evidence), sql=sql, undo=undo)


def index_candidates(index: IndexShape, evidence: Evidence, extension: str = "") -> Iterator[Candidate]:
    """Yield the candidates for an index: itself, and a smaller kind of it if the table's order allows one."""
    keys = columns_text(index.keys)
    partial = f" for rows where {index.predicate}" if index.predicate else ""
    kind = {"gin": "a GIN index", "gist": "a GiST index"}.get(index.method, "an index")
    yield index_candidate(index, f"Create {kind} on {keys} of {index.table}{partial}.", evidence, extension)
    column, table = evidence.column(index.table, index.keys[0].column), evidence.tables.get(index.table)
    if len(index.keys) != 1 or index.method != "btree" or index.predicate or column is None or table is None:
        return
    many = (evidence.distinct(index.table, column.name) or 0.0) >= _BRIN_VALUES
    if many and abs(column.correlation or 0.0) >= _CORRELATED and pages(table, evidence) >= _BRIN_PAGES:
        text = (
            f"Create a BRIN index on {column.name} of {index.table}: it is far smaller, and the "
            f"table is stored in the order of {column.name}."
        )
        yield index_candidate(IndexShape(index.table, (IndexKey(column.name),), "brin"), text, evidence)


def _named(index: IndexShape, evidence: Evidence) -> IndexShape:
    """Return an index with a name that no other index of its table has."""
    taken = {existing.facts.name for existing in evidence.indexes.get(index.table, ())}
    schema, dot, _ = index.table.rpartition(".")
    name = f"{schema}{dot}{new_name(index)}"
    number = next(count for count in ("", *range(2, 99)) if f"{name}{count}" not in taken)
    return replace(index, name=f"{name}{number}") if number else index


def _partitioned(table: str, evidence: Evidence) -> bool:
    facts = evidence.tables.get(table)
    return facts is not None and facts.kind == "partitioned table"


def _against(index: IndexShape, extension: str, evidence: Evidence) -> Iterator[str]:
    table = evidence.tables.get(index.table)
    if _partitioned(index.table, evidence):
        yield (
            "It blocks writes while it is built. To avoid that, create the index on each partition "
            "concurrently, then on the table alone (ON ONLY), and attach them."
        )
    if extension:
        yield f"It needs the extension {extension}, which the owner of the database can create."
    if table is None:
        return
    written = table.inserted + table.updated + table.deleted
    if written:
        hourly = format_count(round(written * 3600 / evidence.seconds))
        yield f"Writes must maintain it: {index.table} has {hourly} changed rows per hour."
    widths = [
        column.width or 8.0
        for column in evidence.catalogue.columns.get(index.table, ())
        if column.name in {key.column for key in index.keys}
    ]
    if index.method == "btree" and not index.predicate and len(widths) == len(index.keys):
        # Each entry has a header of 8 bytes and a pointer of 4; pages are filled to 90 %.
        yield f"It takes about {format_bytes(evidence.rows(index.table) * (sum(widths) + 12) / 0.9)} of disk."


# ---- other forms of an index that may be better: partial, covering, for patterns ----


_RARE: Final = 0.2
"""Fraction of the rows up to which a constant condition makes a partial index much smaller."""
_FETCHED: Final = 50.0
"""Rows per call from which on fetching them from the table costs more than the search in the index."""
_NARROW: Final = 32.0
"""Bytes of included columns per entry. An entry of one number takes 16 bytes, so this triples it."""
_VALUE: Final = re.compile(r"\(*\"?(\w+)\"?(?:\)?::[\w ]+)?\)? = '((?:[^']|'')*)'::")


def variants(merged: Merged, mine: Sequence[Problem], evidence: Evidence) -> Iterator[Candidate]:
    """Yield candidates beside the index itself."""
    index, first = merged.index, mine[0]
    rewritten = {
        served.predicate: problem for problem in mine for served in problem.want.served if served.rewrite
    }
    needs = "It needs the index: without, it scans the table as before."
    yield from (replace(contained(problem, evidence), against=(needs,)) for problem in rewritten.values())
    if index.method == "btree":
        covering = covered_columns(first.use, first.statement, evidence, {key.column for key in index.keys})
        if covering and first.want.fetched >= _FETCHED:
            yield index_candidate(
                replace(index, included=covering),
                f"Include {' and '.join(covering)} in the index, so that calls need not read the "
                "table where VACUUM has marked blocks as visible to all.",
                evidence,
            )
        yield from _partial(merged, mine, evidence)
    unknown = [
        served
        for served in first.want.served
        if served.predicate.operator == "like" and not pattern_kind(served.predicate) and served.key.column
    ]
    if merged.extension and unknown:
        key = IndexKey(unknown[0].key.column, opclass="text_pattern_ops")
        yield index_candidate(
            replace(index, keys=(key,), method="btree"),
            f"If no pattern begins with a wildcard, create a B-tree on {columns_text((key,))} "
            "instead: it is smaller and faster.",
            evidence,
        )


def covered_columns(use: Use, statement: Statement, evidence: Evidence, keys: set[str]) -> tuple[str, ...]:
    """Return the columns besides the keys that a statement reads, if they are few and narrow."""
    shape = statement.shape
    if shape is None or shape.kind != "select" or shape.star or shape.locking:
        return ()
    text = (statement.sql or statement.text).lower()
    found = [
        column
        for column in evidence.catalogue.columns.get(use.table.name, ())
        if column.name not in keys and re.search(rf"\b{re.escape(column.name.lower())}\b", text)
    ]
    width = sum(column.width or _NARROW for column in found)
    return tuple(column.name for column in found) if found and len(found) <= 3 and width <= _NARROW else ()


def contained(problem: Problem, evidence: Evidence) -> Candidate:
    """Return the candidate that writes an array's column with an operator that a GIN index has."""
    served = next(each for each in problem.want.served if each.rewrite)
    column = evidence.column(problem.use.table.name, served.key.column)
    kind = "" if column is None else column.type
    sql = as_containment(problem.statement.sql, served.key.column, kind)
    return statement_change(
        f"Write {served.rewrite} in the statement instead of = ANY: a GIN index serves this operator only.",
        sql=sql,
        undo=problem.statement.sql if sql else "",
    )


def _partial(merged: Merged, mine: Sequence[Problem], evidence: Evidence) -> Iterator[Candidate]:
    """Yield an index on the rows with a rare constant, if all its statements were seen with it."""
    index = merged.index
    if index.predicate:
        return
    constants = [_constants(problem) for problem in mine]
    for column, value in constants[0].items():
        facts = evidence.column(index.table, column)
        frequency = dict(facts.common).get(value) if facts is not None else None
        same = all(found.get(column) == value for found in constants)
        if not same or frequency is None or frequency > _RARE:
            continue
        keys = tuple(key for key in index.keys if key.column != column) or index.keys
        yield index_candidate(
            replace(index, keys=keys, predicate=f"{quoted(column)} = {literal(value)}"),
            f"Index only the rows where {column} is {literal(value)}: it is smaller, but serves "
            "only statements that have this value as a constant.",
            evidence,
        )


def _constants(problem: Problem) -> dict[str, str]:
    """Return the columns that a statement compares with a constant, by its texts or by plans of its calls."""
    found: dict[str, str] = {}
    for node in problem.statement.real_nodes:
        values = _VALUE.findall(node.condition("Filter"))
        found.update({column: value.replace("''", "'") for column, value in values})
    for each in problem.want.served:
        predicate = each.predicate
        if predicate.operator == "=" and predicate.value == "constant" and predicate.literal:
            found[predicate.column] = predicate.literal
    return found | dict(problem.statement.compared)
