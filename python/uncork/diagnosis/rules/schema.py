"""Columns whose type or default costs time: JSON as text, random keys, too wide types. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from uncork.diagnosis.changes import client_change, column_type, ddl_change
from uncork.diagnosis.evidence import Evidence, Existing, Piece, Statement
from uncork.diagnosis.rule import finding, rule, statement_rule
from uncork.diagnosis.rules.indexes.reads import reads_whole
from uncork.diagnosis.rules.server import part_of_volume
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.database.plan import PlanNode
from uncork.model.units import count_words, format_bytes, format_count, share_text

_NS_PER_BYTE: Final = 8.0
"""Time to parse a byte of JSON, beyond what reading jsonb takes: measured with documents of 300
bytes on PostgreSQL 18; a cast of text takes more than twice as long. A faster machine parses, and
does the rest of the statement, faster."""
_MOST: Final = 0.9
"""Fraction of a statement's time that parsing can be: the rows must be read in any case."""
_DOCUMENT_TEXTS: Final = frozenset({"text", "character varying"})


@rule("json-parsed")
def find_json_parsed(evidence: Evidence) -> Iterator[Finding]:
    """Find JSON that is stored as text or json, so that each read of a row parses it again.

    See "JSON Types" in PostgreSQL's manual: functions must reparse json for each execution, while
    jsonb is stored in a decomposed binary form.
    """
    for table, columns in evidence.catalogue.columns.items():
        for column in columns:
            if column.type != "json" and column.type not in _DOCUMENT_TEXTS:
                continue
            parts = {
                statement.number: part
                for statement in evidence.statements.values()
                if evidence.is_traffic(statement) and (part := _parsing_part(statement, column, evidence))
            }
            if parts:
                statements = evidence.by_cost(parts)
                rows = format_count(round(_rows(statements[0], table, evidence)))
                yield finding(
                    f"Column {column.name} of table {table} stores JSON as {column.type}, which "
                    "each read parses",
                    ddl_change(
                        f"Store {table}.{column.name} as jsonb, which is parsed once when it is written.",
                        "The change rewrites the table under a lock against reading and writing.",
                        "jsonb keeps neither the order of keys, nor duplicate keys, nor white "
                        "space. Values that are not JSON make the change fail.",
                        sql=column_type(column, "jsonb"),
                        undo=column_type(column, column.storage_type),
                        same_answers=False,
                    ),
                    objects=(table, f"{table}.{column.name}"),
                    bill=evidence.bill_of(parts),
                    statements=statements,
                    evidence=(
                        f"A call of the statement parses the values of about {rows} rows, "
                        f"{format_bytes(column.width or 0)} each on average."
                    ),
                    proof="Compare the statement with both types on a copy with uncork run.",
                )


def _parsing_part(statement: Statement, column: ColumnFacts, evidence: Evidence) -> float:
    """Return the fraction of a statement's time that it parses a column's values; 0 if it does not."""
    parses = statement.uses(column.table) and _parses(statement, column)
    if column.width is None or not statement.mean_ns or not parses:
        return 0.0
    rows = _rows(statement, column.table, evidence)
    return min(_MOST, _NS_PER_BYTE * column.width * rows / statement.mean_ns)


def _parses(statement: Statement, column: ColumnFacts) -> bool:
    name = rf'(?<![\w$])"?{re.escape(column.name)}"?'
    if column.type == "json":
        parses = rf"{name}\s*\)?\s*(?:->|#>)|json_\w+\s*\(\s*(?:\w+\.)?{name}"
    else:
        parses = rf"{name}\s*\)?\s*::\s*jsonb?\b|cast\s*\(\s*(?:\w+\.)?{name}\s+as\s+jsonb?\b"
    return re.search(parses, statement.text) is not None


def _rows(statement: Statement, table: str, evidence: Evidence) -> float:
    """Return of how many rows a call parses the value: all that it scans, as counted, or by its plan."""
    known = evidence.tables.get(table)
    counted = _counted_rows(statement, table, evidence)
    if counted is not None:
        return counted
    scanned = 0.0
    for node in statement.nodes:
        if node.relation == table:
            scanned += evidence.rows(table) if node.kind == "Seq Scan" else node.rows
    if known is not None and reads_whole(statement, known, evidence):
        return evidence.rows(table)
    return max(scanned, statement.a_call(statement.rows) or 0.0)


def _counted_rows(statement: Statement, table: str, evidence: Evidence) -> float | None:
    """Return how many rows of a table a call reads, from the table's counters; None if they do not tell.

    The plan was asked for with drawn values, and the bounds of a range may be far from those of the calls.
    The counters of the table cover all statements, which have their part by the blocks that they read.
    """
    known = evidence.tables.get(table)
    blocks = {each.number: each.blocks or 0.0 for each in evidence.statements.values() if each.uses(table)}
    whole = sum(blocks.values())
    if known is None or not statement.calls or not blocks.get(statement.number):
        return None
    read = known.seq_rows + known.index_rows
    alone = len({use.name for use in statement.shape.tables}) == 1
    return blocks[statement.number] / whole * read / statement.calls if read and alone else None


_VERSION_4: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_MAKERS: Final = ("gen_random_uuid()", "uuid_generate_v4()", "uuidv4()")
_KEYS_KNOWN: Final = 8
_PAGES: Final = 0.2
"""Full-page images for each inserted row. Keys in order fill one page after the other: hundreds of
rows share one."""
_READS: Final = 0.2
"""Blocks read from outside shared buffers for each inserted row. Keys in order find their page there."""
_UUIDV7: Final = 18
"""The first version of PostgreSQL with uuidv7()."""
_READING: Final = frozenset({"DataFileRead", "DataFileWrite", "AioIoCompletion"})
"""Waits for a page of the index, and for the changed page that must be written to make room for it."""


@statement_rule("random-keys", of_tables=True)
def find_random_keys(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find random keys (UUIDs of version 4), whose inserts touch pages all over an index."""
    shape = statement.shape
    if shape.kind != "insert" or not statement.rows:
        return None
    table = next((use.name for use in shape.tables if use.changed), "")
    columns = evidence.catalogue.columns.get(table, ())
    column = next((column for column in columns if _indexes(column, evidence)), None)
    if column is None:
        return None
    pages, share = _full_pages(statement, evidence)
    writes = pages >= _PAGES * statement.rows
    reads = (statement.blocks_read or 0) >= _READS * statement.rows
    volume = min(share, part_of_volume(share * (statement.wal_bytes or 0), evidence)) if writes else 0.0
    outside = _part_of_indexes(column, evidence) if reads else 0.0
    volume = max(volume, outside * _within(statement, evidence))
    return finding(
        f"Random keys in {table}.{column.name} make inserts "
        + ("read pages all over the index" if reads else "write whole pages to the WAL"),
        _ordered_keys(table, column, evidence),
        objects=(table, f"{table}.{column.name}"),
        bill=evidence.bill(partial(_costs, statement.number, volume, outside)),
        evidence=_random_evidence(statement, pages, share, writes=writes, reads=reads),
        proof="Compare inserts with both keys on a copy with uncork run, across several checkpoints.",
    )


def _within(statement: Statement, evidence: Evidence) -> float:
    """Return the part of a statement's waiting for WAL that is within its execution, not in its commit.

    A changed page can be written, to make room for another one, only after its WAL was flushed.
    """
    wal = sum(piece.sessions for piece in evidence.pieces_of(statement.number) if piece.waits_for_wal)
    executing = (statement.calls or 0) * (statement.mean_ns or 0.0) / 1e9 / evidence.seconds
    return min(1.0, max(0.0, executing - (evidence.all_of(statement.number) - wal)) / wal) if wal else 0.0


def _costs(number: int, volume: float, outside: float, piece: Piece) -> float:
    if piece.template != number:
        return 0.0
    if piece.waits_for_wal:
        return volume
    return outside if piece.wait_event in _READING else 0.0


def _random_evidence(
    statement: Statement, pages: int, share: float, *, writes: bool, reads: bool
) -> Iterator[str]:
    rows = format_count(statement.rows or 0)
    if reads:
        yield (
            f"{format_count(statement.blocks_read or 0)} blocks read from outside shared buffers "
            f"for {rows} inserted rows: each row goes to another page of the index."
        )
    if writes:
        yield (
            f"{format_count(pages)} full-page images for {rows} inserted rows are "
            f"{share_text(share)} of its WAL: each row goes to another page of the index."
        )


def _indexes(column: ColumnFacts, evidence: Evidence) -> tuple[Existing, ...]:
    """Return the indexes that begin with a column, if it holds random UUIDs."""
    values = [*(value for value, _ in column.common), *column.bounds]
    drawn = len(values) >= _KEYS_KNOWN and all(_VERSION_4.fullmatch(value) for value in values)
    if column.type != "uuid" or not (drawn or any(maker in column.default for maker in _MAKERS)):
        return ()
    return tuple(
        each
        for each in evidence.indexes.get(column.table, ())
        if each.shape.method == "btree" and each.shape.columns[:1] == (column.name,)
    )


def _part_of_indexes(column: ColumnFacts, evidence: Evidence) -> float:
    whole = sum(each.facts.bytes or 0 for each in evidence.indexes.get(column.table, ()))
    return sum(index.facts.bytes or 0 for index in _indexes(column, evidence)) / whole if whole else 0.0


def _full_pages(statement: Statement, evidence: Evidence) -> tuple[int, float]:
    templates = () if evidence.database is None else evidence.database.templates
    facts = next((template.statements for template in templates if template.number == statement.number), None)
    if facts is None or not statement.wal_bytes or evidence.database is None:
        return 0, 0.0
    return facts.wal_fpi, min(1.0, facts.wal_fpi * evidence.database.block_bytes / statement.wal_bytes)


def _ordered_keys(table: str, column: ColumnFacts, evidence: Evidence) -> Candidate:
    text = "Use UUIDs of version 7, which begin with the time, so that new rows are next to each other."
    against = ("Keys then show when a row was created.", "Existing keys stay where they are.")
    name = f"ALTER TABLE {sql_name(table)} ALTER COLUMN {quoted(column.name)}"
    if not column.default or evidence.major < _UUIDV7:
        return client_change(text, *against)
    undo = f"{name} SET DEFAULT {column.default};"
    return ddl_change(text, *against, sql=f"{name} SET DEFAULT uuidv7();", undo=undo)


_TEXTS: Final = frozenset({"text", "character varying", "character"})
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"0|[1-9]\d{0,17}")
"""A whole number that bigint prints the same way: without leading zeros."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?")
_WHOLE: Final = re.compile(r"numeric\((\d+)(?:,0)?\)")
_MOST_DIGITS: Final = 18
_PADDED: Final = 2.0
"""Width of a value with its spaces, in multiples of its own length, from which on padding costs time."""
_VALUES_KNOWN: Final = 10
"""Fewest known values (common ones and bounds of the histogram) that must all have the form."""
_DIGITS: Final = 10.0
"""Least average width of numbers: a shorter text takes hardly more space than the 8 bytes of bigint."""
_ROWS: Final = 10_000.0
"""Fewest rows that a step must handle for the type of its keys to matter."""
_KEYS: Final = {"Sort": "Sort Key", "Incremental Sort": "Sort Key", "Aggregate": "Group Key"}
_CONDITIONS: Final = {"Hash Join": "Hash Cond", "Merge Join": "Merge Cond"}


@rule("wide-types")
def find_wide_types(evidence: Evidence) -> Iterator[Finding]:
    """Find columns whose type is wider than their values, and that are joined or sorted.

    Text that holds only UUIDs, whole numbers or times, numeric for whole numbers, and padded
    character(n).
    """
    wide = {
        (column.table, column.name): (column, better)
        for columns in evidence.catalogue.columns.values()
        for column in columns
        if (better := _better(column)) is not None
    }
    if not wide:
        return
    parts: dict[int, float] = {}
    used: dict[tuple[str, str], float] = defaultdict(float)
    for statement in evidence.statements.values():
        if statement.plan is None or not evidence.is_traffic(statement):
            continue
        found = list(
            _steps(statement, statement.plan.root, {key: better for key, (_, better) in wide.items()})
        )
        part = min(1.0, sum(share for share, _ in found))
        if part:
            parts[statement.number] = part
            for share, keys in found:
                for key in keys:
                    used[key] += share * evidence.busy(statement.number)
    if used:
        names = sorted(used, key=lambda key: (-used[key], key))
        columns = [wide[key] for key in names]
        first, better = columns[0]
        yield finding(
            f"Column {first.name} of table {first.table} stores {better.what}, a key of joins or sorts",
            _own_types(columns),
            objects=(f"{table}.{name}" for table, name in names),
            bill=evidence.bill_of(parts),
            statements=evidence.by_cost(parts),
            evidence=(_wide_evidence(column, better) for column, better in columns),
            proof="Compare the statements with both types on a copy with uncork run.",
        )


@dataclass(frozen=True, slots=True)
class _Better:
    """A better type: what the column stores as which, and the parts of joins and of sorts that it saves."""

    type: str
    what: str
    joined: float
    sorted: float


_UUIDS: Final = _Better("uuid", "UUIDs as text", 0.5, 0.25)
_NUMBERS: Final = _Better("bigint", "numbers as text", 0.5, 0.25)
_TIMES: Final = _Better("timestamp", "times as text", 0.1, 0.29)
_INTEGERS: Final = _Better("bigint", "integers as numeric", 0.23, 0.25)
_SHORT: Final = _Better("text", "padded text", 0.07, 0.33)
"""The parts of the time of joins by hash or merge, and of sorts and groups, were measured with 200
000 rows: UUIDs on PostgreSQL 18 (0.75 s against 0.30 s, and 0.39 s against 0.26 s), the others on
15, best of five. Of sorts and groups, the one that saves less counts: times 90 % and 29 %, numeric
60 % and 25 %, character(36) with 12 characters 36 % and 33 %."""


def _better(column: ColumnFacts) -> _Better | None:
    """Return the better type that fits all known values of a column; None if none does."""
    whole = _WHOLE.fullmatch(column.storage_type)
    if whole is not None:
        return _INTEGERS if int(whole[1]) <= _MOST_DIGITS else None
    values = {value.rstrip() for value, _ in column.common} | {value.rstrip() for value in column.bounds}
    if column.type not in _TEXTS or len(values) < _VALUES_KNOWN:
        return None
    for form, better in ((_UUID, _UUIDS), (_TIME, _TIMES)):
        if all(form.fullmatch(value) for value in values):
            return better
    width = column.width or 0.0
    if width >= _DIGITS and all(_NUMBER.fullmatch(value) for value in values):
        return _NUMBERS
    length = sum(map(len, values)) / len(values)
    return _SHORT if column.type == "character" and width >= _PADDED * max(1.0, length) else None


def _steps(
    statement: Statement, root: PlanNode, wide: Mapping[tuple[str, str], _Better]
) -> Iterator[tuple[float, list[tuple[str, str]]]]:
    """Yield the part of a plan's cost that each step saves, with the columns that it joins or sorts by."""
    relations = {node.alias or node.relation: node.relation for node in root.walk() if node.relation}
    for node in root.walk():
        joins = node.kind in _CONDITIONS
        texts = [node.condition(_CONDITIONS[node.kind])] if joins else node.key(_KEYS.get(node.kind, ""))
        keys = [
            key
            for alias, table in relations.items()
            for key in wide
            if key[0] == table and any(_names(text, alias, key[1], len(relations) == 1) for text in texts)
        ]
        handled = max([node.rows, *(child.rows for child in node.children)])
        if keys and handled >= _ROWS and root.cost:
            own = node.cost - sum(_scanned(child) for child in node.children)
            part = max(wide[key].joined if joins else wide[key].sorted for key in keys)
            yield part * max(0.0, own) / root.cost, keys


def _scanned(node: PlanNode) -> float:
    """Return the cost of what a step reads: below the hash that belongs to the step itself."""
    return sum(_scanned(child) for child in node.children) if node.kind == "Hash" else node.cost


def _names(text: str, alias: str, column: str, alone: bool) -> bool:
    name = rf'"?{re.escape(column)}"?(?![\w$])'
    prefix = rf'(?<![\w$."])"?{re.escape(alias)}"?\.'
    return re.search(prefix + name, text) is not None or (
        alone and re.search(rf'(?<![\w$."]){name}', text) is not None
    )


def _wide_evidence(column: ColumnFacts, better: _Better) -> str:
    name, width = f"{column.table}.{column.name}", round(column.width or 0)
    if better is _INTEGERS:
        return f"{name} has the type {column.storage_type}: bigint, of 8 bytes, holds all of its values."
    known = count_words(len({*dict(column.common), *column.bounds}), "value")
    if better is _SHORT:
        return f"Each value of {name} takes {width} bytes, most of them spaces ({known} are known)."
    size = 16 if better is _UUIDS else 8
    return (
        f"All {known} of {name} in its statistics are {better.what.removesuffix(' as text')}: "
        f"{width} bytes each as {column.type}, {size} as {better.type}."
    )


def _own_types(columns: Sequence[tuple[ColumnFacts, _Better]]) -> Candidate:
    return ddl_change(
        "Give the columns their own type, and all columns that refer to them.",
        "The change rewrites the tables and their indexes under a lock against reading and writing.",
        "It fails if a value outside the statistics has another form, or if a foreign key "
        "needs the old type.",
        "Clients get values of another type; statements that compare with text need a cast.",
        sql=" ".join(column_type(column, better.type) for column, better in columns),
        undo=" ".join(column_type(column, column.storage_type) for column, _ in columns),
        same_answers=False,
    )
