"""Indexes that do not exist: for searches, foreign keys and reads; and how they are proposed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncork.diagnosis.changes import index_change, statement_change
from uncork.diagnosis.evidence import Evidence, Existing, Statement
from uncork.diagnosis.rule import finding, rule
from uncork.diagnosis.rules.indexes.estimates import pages
from uncork.diagnosis.rules.indexes.keys import Merged, key_name, merge, pattern_kind
from uncork.diagnosis.rules.indexes.problems import (
    Problem,
    fractions_of,
    part_of_scans,
    problems,
    read_sentences,
    scans_a_call,
    within_sentences,
)
from uncork.diagnosis.rules.indexes.reads import blocks_a_call, reads_whole, selective
from uncork.diagnosis.rules.indexes.uses import Use, large_tables, nodes_of, uses_of
from uncork.diagnosis.rules.plans.costs import LARGE_ROWS
from uncork.diagnosis.rules.plans.planning import misled
from uncork.diagnosis.rules.plans.rewrite import as_containment
from uncork.diagnosis.rules.writes.written import Within, executed_within
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.index import IndexKey, IndexShape, create_index, drop_index, new_name
from uncork.model.database.names import literal, quoted
from uncork.model.database.plan import PlanNode
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_bytes, format_count, series_words

if TYPE_CHECKING:
    from uncork.model.results.database import ForeignKeyFacts, TableFacts

_MOST_STATEMENTS: Final = 4
_PROOF: Final = "Compare the statements with and without the index in uncork run."


@rule("missing-index")
def find_missing_indexes(evidence: Evidence) -> Iterator[Finding]:
    """Find a large table that statements scan again and again, because no index has what they search for."""
    found = [
        problem
        for problem in problems(evidence)
        if problem.obstacle is None and not misled(problem.statement, problem.use.table.name, evidence)
    ]
    for merged in merge([problem.want.wanted for problem in found]):
        mine = [found[place] for place in merged.members]
        fractions = fractions_of(mine)
        within = {problem.statement.number for problem in mine if problem.within}
        first, table = mine[0], merged.index.table
        yield finding(
            _headline(merged, first),
            *index_candidates(merged.index, evidence, merged.extension),
            *variants(merged, mine, evidence),
            objects=(table, *(key.column for key in merged.index.keys if key.column)),
            bill=evidence.bill_of(fractions, without_wal=within),
            templates=fractions,
            text=first.within.outer.text if first.within else first.statement.text,
            evidence=_missing_evidence(mine, evidence),
            proof=_PROOF,
        )
    yield from _unparsed(evidence)


def _headline(merged: Merged, first: Problem) -> str:
    table, keys = merged.index.table, columns_text(merged.index.keys)
    if merged.index.predicate and not first.want.wanted.equal:
        return f"Calls scan {table} for the few rows where {merged.index.predicate}"
    if first.read.how in ("filter", "repeated"):
        return f"Table {table} has no index on {keys}, so calls discard rows"
    joined = any(served.predicate.value == "column" for served in first.want.served)
    return f"Table {table} has no index on {keys}, so {'joins' if joined else 'calls'} scan it"


def _missing_evidence(mine: Sequence[Problem], evidence: Evidence) -> Iterator[str]:
    first = mine[0]
    yield from read_sentences(first, evidence)
    if first.within is not None:
        yield from within_sentences(first.within, first.scans, first.use.table)
    yield f"An index would fetch about {count_words(max(1, round(first.want.fetched)), 'row')} instead."
    others = {problem.statement.number: problem.statement.text for problem in mine[1:]}
    others.pop(first.statement.number, None)
    for text in list(others.values())[:_MOST_STATEMENTS]:
        yield f"The same index serves: {short_template(text)}"


def _unparsed(evidence: Evidence) -> Iterator[Finding]:
    """Yield the large scans of statements that the grammar rejects, from their text and their blocks."""
    large = large_tables(evidence).values()
    for statement in evidence.costliest() if large else ():
        if statement.number < 0 or statement.shape.kind:
            continue
        found = [
            table
            for table in large
            if reads_whole(statement, table, evidence) and selective(statement, table, evidence)
        ]
        if not found:
            continue
        table = max(found, key=lambda table: table.seq_rows)
        yield finding(
            _unparsed_headline(statement, table.name),
            index_change(
                f"Create an index on the columns of {table.name} that the WHERE clause "
                "compares, and check with EXPLAIN (ANALYZE, BUFFERS) that it is used."
            ),
            objects=(table.name,),
            bill=evidence.bill_of((statement.number,)),
            statements=[statement],
            evidence=f"Table {table.name} has {format_count(round(evidence.rows(table.name)))} rows.",
            proof=_PROOF,
        )


def _unparsed_headline(statement: Statement, table: str) -> str:
    found = statement.a_call(statement.rows)
    if found is None:
        each = ""
    else:
        each = " for a row each" if found < 1.5 else f" for {format_count(round(found))} rows each"
    if not statement.calls:
        return f"Each call reads the whole table {table}{each}"
    verb = "reads" if statement.calls == 1 else "read"
    return f"{count_words(statement.calls, 'call')} {verb} the whole table {table}{each}"


_PART: Final = 0.5
"""Blocks per deleted row, as a fraction of the referring table's, that show a scan of it."""


@rule("foreign-key-without-index", depth=2)
def find_foreign_keys(evidence: Evidence) -> Iterator[Finding]:
    """Find deletes that scan a table which refers to the deleted rows, because its foreign key has no index.

    PostgreSQL creates no index for a foreign key. The check of each deleted row is a query of a trigger,
    whose time and blocks are counted for the DELETE. See "Foreign Keys" in PostgreSQL's manual.
    """
    for key in evidence.foreign_keys:
        table, referred = evidence.tables.get(key.table), evidence.tables.get(key.referred)
        if key.indexed or table is None or referred is None or evidence.rows(table.name) < LARGE_ROWS:
            continue
        if not table.seq_scans or not (referred.deleted or referred.updated):
            continue
        fractions = {
            statement.number: part
            for statement in evidence.costliest()
            if statement.number >= 0 and (part := _part(statement, key, table, referred, evidence))
        }
        if not fractions:
            continue
        within = {number for number in fractions if not _checks(evidence.statements[number], key, evidence)}
        columns = tuple(part.strip().strip('"') for part in key.columns.split(","))
        first = evidence.statements[next(iter(fractions))]
        index = IndexShape(table.name, tuple(IndexKey(column) for column in columns))
        names = " and ".join(columns)
        yield finding(
            f"Deletes from {referred.name} scan {table.name}, which has no index on {names}",
            index_candidate(index, f"Create an index on {names} of {table.name}, the foreign key.", evidence),
            objects=(table.name, *columns, key.name, referred.name),
            bill=evidence.bill_of(fractions, without_wal=within),
            statements=evidence.chosen(fractions),
            evidence=_foreign_key_evidence(first, key, table, referred, evidence),
            proof="Compare the deletes with and without the index in uncork run.",
        )


def _part(
    statement: Statement, key: ForeignKeyFacts, table: TableFacts, referred: TableFacts, evidence: Evidence
) -> float:
    if not _checks(statement, key, evidence):
        scans, _ = _within(statement, key, table, evidence)
        return part_of_scans(statement, scans, table, evidence)
    executed = [dict(plan.triggers).get(key.name) for plan in statement.plans if plan.source == "executed"]
    times = [time for time in executed if time is not None]
    if times and statement.mean_ns:
        return min(1.0, max(times) * 1e6 / statement.mean_ns)
    blocks, rows = blocks_a_call(statement), statement.a_call(statement.rows)
    if blocks is None or rows is None:
        return 0.9 if table.whole_reads and table.whole_reads >= _PART * max(1, referred.deleted) else 0.0
    scans = rows if referred.name in _changed(statement) else referred.deleted / max(1, statement.calls or 1)
    needed = scans * pages(table, evidence)
    return min(1.0, needed / blocks) if needed and blocks >= _PART * needed else 0.0


def _within(
    statement: Statement, key: ForeignKeyFacts, table: TableFacts, evidence: Evidence
) -> tuple[float, Within | None]:
    """Return how often a call scans for a foreign key within functions, and the statement that does so."""
    inside = executed_within(statement, evidence) if evidence.busy(statement.number) else ()
    inner = next((each for each in inside if _checks(each.statement, key, evidence)), None)
    if inner is None:
        return 0.0, None

    def scans(each: Statement) -> float:
        return (each.a_call(each.rows) or 1.0) if _checks(each, key, evidence) else 0.0

    return scans_a_call(statement, table, scans, evidence), inner


def _changed(statement: Statement) -> set[str]:
    return {use.name for use in statement.shape.tables if use.changed}


def _checks(statement: Statement, key: ForeignKeyFacts, evidence: Evidence) -> bool:
    """Return whether a statement deletes rows to which a foreign key refers, or changes their key."""
    if statement.shape.kind not in ("delete", "update"):
        return False
    if statement.shape.kind == "update":
        return key.referred in _changed(statement) and _changes_key(statement, key, evidence)
    return bool(_changed(statement) & _deleting(key.referred, evidence))


def _changes_key(statement: Statement, key: ForeignKeyFacts, evidence: Evidence) -> bool:
    constraints = [constraint for constraint in evidence.catalogue.constraints if constraint.name == key.name]
    referred = {column for constraint in constraints for column in constraint.referred_columns}
    return bool(set(statement.shape.set_columns) & referred)


def _deleting(table: str, evidence: Evidence) -> set[str]:
    """Return the tables whose deletes delete rows of a table: itself, and tables that cascade to it."""
    found, before = {table}, 0
    while len(found) > before:
        before = len(found)
        found |= {key.referred for key in evidence.foreign_keys if key.table in found}
    return found


def _foreign_key_evidence(
    first: Statement, key: ForeignKeyFacts, table: TableFacts, referred: TableFacts, evidence: Evidence
) -> Iterator[str]:
    yield f"Foreign key {key.name} of {table.name} ({key.columns}) refers to {referred.name}."
    yield (
        f"For each deleted row, its trigger searches {table.name}, which has "
        f"{format_count(round(evidence.rows(table.name)))} rows."
    )
    blocks, calls = blocks_a_call(first), first.calls
    if blocks is not None and calls:
        yield f"Each of {count_words(calls, 'call')} reads {count_words(round(blocks), 'block')}."
    scans, within = (0.0, None) if _checks(first, key, evidence) else _within(first, key, table, evidence)
    if within is not None:
        yield from within_sentences(within, scans, table)
    elif table.whole_reads:
        yield f"{table.name} was read as a whole {format_count(round(table.whole_reads))} times."


_BLOCKS: Final = 200.0
"""Blocks per call, below which a call takes hardly longer than the round trip of its client."""
_SCATTERED: Final = 0.5
"""Blocks per row fetched, from which on nearly each row is in another block."""
_SAVED: Final = 0.85
"""Part of the time of fetching scattered rows that reading them from the index saves, with all blocks in
shared buffers: 2000 rows took 3.5 to 3.8 ms against 0.40 to 0.51 ms (PostgreSQL 15). From disk it is more."""
_ENTRIES: Final = 150.0
"""Entries of an index with included columns in a block, at least."""
_ORDERED: Final = 0.5
"""Correlation between the order of the index and that of the table, from which on neighbouring
entries lead to the same blocks."""
_CHANGED: Final = 0.01
"""Fraction of the table's rows that may change or be new after a watch: their blocks must be read
as before, until VACUUM marks them."""
_SCANS: Final = frozenset({"Index Scan", "Bitmap Heap Scan"})


@rule("covering-index")
def find_covering(evidence: Evidence) -> Iterator[Finding]:
    """Find an index that finds the rows, and a table that is read for a column or two of each.

    If an index includes all columns that a statement needs, PostgreSQL reads the index alone, as
    long as VACUUM has marked the table's blocks as visible to all. See "Index-Only Scans and
    Covering Indexes" in its manual.
    """
    for statement in evidence.costliest():
        blocks = statement.a_call(statement.blocks)
        if statement.number < 0 or blocks is None or blocks < _BLOCKS or not evidence.is_traffic(statement):
            continue
        for use in uses_of(statement, evidence):
            found = _index(use, statement, blocks, evidence) if use.alone else None
            if found is None:
                continue
            index, fetched = found
            covering = covered_columns(use, statement, evidence, set(index.columns))
            saved = _SAVED * max(0.0, 1 - (fetched / _ENTRIES + 4) / blocks)
            if covering and not _covered(index, covering, evidence):
                yield _covering(statement, index, covering, fetched, saved, evidence)


def _index(
    use: Use, statement: Statement, blocks: float, evidence: Evidence
) -> tuple[IndexShape, float] | None:
    """Return the index by which a statement finds scattered rows of its table, and how many they are."""
    scans = [
        node for node in nodes_of(statement, use.table.name, evidence) if node.kind != "Bitmap Index Scan"
    ]
    if len(scans) != 1 or scans[0].kind not in _SCANS or scans[0].parallel:
        return None
    changed = use.table.inserted + use.table.updated + use.table.deleted
    if changed > _CHANGED * evidence.rows(use.table.name) or use.table.kind == "partitioned table":
        return None
    names = {node.index for node in scans[0].walk() if node.index}
    fetched = _rows(scans[0])
    known = [each for each in evidence.indexes.get(use.table.name, ()) if each.facts.name in names]
    if len(names) != 1 or not known or not known[0].shape.keys or blocks < _SCATTERED * fetched:
        return None
    shape = known[0].shape
    first = evidence.column(use.table.name, shape.keys[0].column)
    if first is None or abs(first.correlation or 0.0) >= _ORDERED:
        return None
    return (shape, fetched) if shape.method == "btree" and fetched >= _BLOCKS * _SCATTERED else None


def _rows(scan: PlanNode) -> float:
    if scan.actual_rows is not None and scan.loops:
        return (scan.actual_rows + (scan.removed or 0.0)) / scan.loops
    return scan.rows


def _covered(index: IndexShape, covering: tuple[str, ...], evidence: Evidence) -> bool:
    """Return whether an index that exists has these columns behind the same keys."""

    def covers(other: Existing) -> bool:
        shape = other.shape
        if shape.predicate != index.predicate or other.facts.warning == "invalid":
            return False
        begins = shape.keys[: len(index.keys)] == index.keys
        return begins and set(covering) <= {*shape.columns, *shape.included}

    return any(covers(other) for other in evidence.indexes.get(index.table, ()))


def _covering(
    statement: Statement,
    index: IndexShape,
    covering: tuple[str, ...],
    fetched: float,
    saved: float,
    evidence: Evidence,
) -> Finding:
    table, words = index.table, series_words(list(covering))
    wanted = replace(
        index, included=tuple(dict.fromkeys((*index.included, *covering))), unique=False, name=""
    )
    candidate = index_candidate(
        wanted,
        f"Create an index on {columns_text(index.keys)} of {table} that includes {words}, so that "
        "calls need not read the table.",
        evidence,
    )
    return finding(
        f"Calls find rows by {index.name}, then read a block of {table} for each",
        replace(
            candidate,
            against=(
                *candidate.against,
                "It helps only while VACUUM keeps up: blocks that changed since must be read as before.",
                f"Updates of {words} can then not be heap-only.",
                *(
                    []
                    if index.unique
                    else [f"It replaces {index.name}: drop this one once nothing scans it."]
                ),
            ),
        ),
        objects=(table, index.name, *covering),
        bill=evidence.bill_of({statement.number: saved}),
        statements=[statement],
        evidence=(
            f"A call reads {format_count(round(statement.a_call(statement.blocks) or 0))} blocks "
            f"for about {format_count(round(fetched))} rows.",
            f"Besides the keys of the index, it needs only {words}.",
        ),
        proof="Compare the statements with and without the index in uncork run.",
    )


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
    if shape.kind != "select" or shape.star or shape.locking:
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
