"""Updates that change nothing: each writes a new version of the row, its index entries, and WAL. Pure.

No counter of PostgreSQL tells a changed row from a rewritten one. Statistics of the column do not
either: a flag that one template sets and clears again has nearly always the same value, although
each update changes it. So there are two kinds of evidence. The text can prove it: ``SET note =
note``, or ON CONFLICT (key) DO UPDATE SET key = EXCLUDED.key. Or the values do: all texts that
sessions sent assign the same constant, and nearly all rows already had it. Or the order of a log
does: an update assigns the values that an earlier one assigned to the same row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from uncork.diagnosis.changes import client_change, ddl_change, statement_change
from uncork.diagnosis.evidence import WORK, Evidence, Piece, Statement
from uncork.diagnosis.rule import finding, statement_rule
from uncork.diagnosis.rules.writes.written import Written, written
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import content_query, quoted, sql_name
from uncork.model.units import count_words, format_count, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

_SAVED: Final = 0.5
"""Fraction of an update's working time that writing the row takes; finding it takes the rest.
Measured on PostgreSQL 18 with rows found by their key: 44 µs against 22 µs without further indexes,
53 µs against 17 µs with three. Waits for the write-ahead log are saved completely."""
_BLOCKS: Final = 50.0
"""Blocks per row from which on an update spends its time on finding the row."""
_TEXTS: Final = 12
"""Fewest texts of sessions that must assign the same values: the most that a watch keeps. If half of the
executions of a template clear what the others set, 12 texts are alike once in 2 000 times."""
_LEAST: Final = 0.5
"""Least fraction of the updated rows that did not change."""
_ROWS: Final = 100
"""Fewest updated rows, so that rows that changed hardly matter."""
_UNCHANGED: Final = 0.6
"""Least fraction of a log's updates that assigned the same values again."""
_SAMPLE: Final = 30_000
"""Rows that ANALYZE reads with the default statistics target."""
_UNSEEN: Final = 3.0
"""Rows of a sample that another value can have without being seen, at 95 % (the rule of three)."""
_NEARLY_ALL: Final = 0.95
"""Least fraction of updates that change nothing for which a copy shows the gain: there, all of them do."""
_REPEATS: Final = (
    "A copy gets the same updates again and again, so it cannot show how many of them change a row."
)
_SHOWN: Final = 60
"""Length at which values of the statistics are cut."""
_LOOK_ALIKE: Final = ("citext", "numeric")
"""Types of which two values can be equal for an index of a key, and differ in their text."""
_SUPPRESSES: Final = "suppress_redundant_updates_trigger"
_RETURNING: Final = re.compile(r"\breturning\b")
_NAME: Final = r"\"?([\w$]+)\"?"
_UPDATE: Final = re.compile(
    rf"update\s+(?:only\s+)?(?:{_NAME}\.)?{_NAME}(?:\s+(?:as\s+)?(?!set\b){_NAME})?\s+set\s+(.*?)"
    r"(?:\s+(?:where|from|returning)\b.*)?",
    re.DOTALL,
)
_UPSERT: Final = re.compile(
    rf"insert\s+into\s+(?:{_NAME}\.)?{_NAME}(?:\s+as\s+{_NAME})?\b.*\bon\s+conflict\b.*\bdo\s+update\s+set\s+"
    r"(.*?)(?:\s+returning\b.*)?",
    re.DOTALL,
)
_ITSELF: Final = re.compile(rf"\s*{_NAME}\s*=\s*(?:{_NAME}\.)?{_NAME}\s*")
_WHERE: Final = re.compile(r"(?is)(.*\bwhere\s+)(.*?)\s*;?\s*")

Proof = Literal["itself", "key", "constant", "order"]


@dataclass(frozen=True, slots=True)
class _Redundant:
    """What an update assigns in vain: columns, the part of its rows that did not change, and the proof."""

    proof: Proof
    write: Written
    columns: tuple[str, ...]
    part: float
    values: Mapping[str, str | None]


@statement_rule("redundant-update", depth=2)
def find_redundant_updates(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find updates of which a proof shows that they change nothing."""
    unknown = statement.rows is None and not statement.repeated
    if not evidence.is_traffic(statement) or statement.rows == 0 or statement.nested or unknown:
        return None
    write = written(statement)
    if write is None or (write.kind != "update" and not write.upsert):
        return None
    if any(trigger.fires_for(write.table, {"update"}) for trigger in evidence.catalogue.triggers):
        return None  # the trigger can be the purpose of the updates, or suppress them
    found = _by_text(statement, write, evidence) or _by_values(statement, write, evidence)
    found = found or _by_order(statement, write, evidence)
    rows = statement.rows or statement.calls or 0
    if found is None or found.part < _LEAST or (statement.blocks or 0) > _BLOCKS * rows:
        return None
    table, first = found.write.table, found.columns[0]
    more = "" if len(found.columns) == 1 else f" and {len(found.columns) - 1} more"
    headline = {
        "itself": f"Updates of table {table} set column {first}{more} to itself, so nothing changes",
        "key": f"Upserts of table {table} rewrite rows that exist, without changing them",
        "constant": f"Updates of table {table} set column {first}{more} to the value that it already has",
        "order": f"Updates of table {table} set column {first}{more} to the value that it already has",
    }[found.proof]
    written_rows = statement.rows or statement.calls or 0
    rows_a_call = min(1.0, written_rows / max(1, statement.calls or 0))
    updated = format_count(written_rows)
    sentences = [
        f"The statement wrote {count_words(written_rows, 'row version')}, each with its part of "
        "the write-ahead log and a dead row for VACUUM."
    ]
    if found.proof == "key":
        sentences.append(f"ON CONFLICT finds the row by {first}, and assigns the same {first} again.")
        sentences.append(f"At least {share_text(found.part)} of its {updated} rows existed before.")
    elif found.proof == "constant":
        for name, value in found.values.items():
            share = _share(evidence.column(table, name), value)
            shown = "NULL" if value is None else f"'{value}'"
            sentences.append(
                f"All {len(statement.assigned)} executions seen in sessions set {name} to {shown}, "
                f"which {share_text(share)} of the rows had at the last ANALYZE."
            )
        sentences.append(f"By these counts, at least {share_text(found.part)} of the updates change nothing.")
    elif found.proof == "order" and statement.repeated is not None:
        unchanged, updates = statement.repeated
        sentences.append(
            f"Of {format_count(updates)} updates that were compared, {format_count(unchanged)} "
            "assigned the values that an earlier update had given to the same row. No other "
            "statement of the log had changed it in between."
        )
    return finding(
        headline,
        *_candidates(statement, found, evidence),
        objects=(table, *found.columns),
        bill=evidence.bill(partial(_wasted, number=statement.number, part=found.part * rows_a_call)),
        evidence=sentences,
        against=_against(found, evidence),
        proof="Compare both statements on a copy with uncork run. After the change, "
        "pg_stat_user_tables.n_tup_upd must grow more slowly.",
    )


def _wasted(piece: Piece, *, number: int, part: float) -> float:
    if piece.template != number or piece.wait_class not in WORK:
        return 0.0
    return part if piece.waits_for_wal else part * _SAVED


# ---- proofs ----


def _by_text(statement: Statement, write: Written, evidence: Evidence) -> _Redundant | None:
    found = (_UPSERT if write.upsert else _UPDATE).fullmatch(statement.text)
    if found is None:
        return None
    _, table, alias, assignments = found.groups()
    itself = {table, alias or table}
    columns, excluded = [], False
    for part in assignments.split(","):
        match = _ITSELF.fullmatch(part)
        if match is None or match[1] != match[3]:
            return None
        of_key = write.upsert and match[2] == "excluded" and match[1] in write.keys
        if not of_key and not (match[2] in itself or (match[2] is None and not write.upsert)):
            return None
        column = evidence.column(write.table, match[1])
        alike = column is not None and (column.type in _LOOK_ALIKE or column.type.endswith(".citext"))
        if of_key and alike:
            return None
        excluded |= of_key
        columns.append(match[1])
    part_of_rows = _conflicting(statement, write, evidence) if write.upsert else 1.0
    return _Redundant("key" if excluded else "itself", write, tuple(columns), part_of_rows, {})


def _conflicting(statement: Statement, write: Written, evidence: Evidence) -> float:
    """Return the least fraction of an upsert's rows that existed before; 0 if that is unknown."""
    table = evidence.tables.get(write.table)
    if table is None or not statement.rows:
        return 0.0
    return min(1.0, max(0.0, (statement.rows - table.inserted) / statement.rows))


def _by_values(statement: Statement, write: Written, evidence: Evidence) -> _Redundant | None:
    """Return the proof that rows already had the constants which all seen texts assign.

    An update changes a row only if something gave the row another value before: it was so when the
    table was analysed, or another statement did it since then.
    """
    table, values = evidence.tables.get(write.table), statement.assigned[0] if statement.assigned else {}
    if table is None or evidence.database is None or write.upsert or not values:
        return None
    if len(statement.assigned) < _TEXTS or any(other != values for other in statement.assigned):
        return None
    shares = [_share(evidence.column(write.table, name), value) for name, value in values.items()]
    updates = _updates_since_analyse(statement, table, evidence)
    if updates is None or updates[0] < _ROWS:
        return None
    rows = evidence.rows(table.name)
    others = sum(rows * (1.0 - share) for share in shares)
    unseen = len(shares) * _UNSEEN * rows / _SAMPLE if rows > _SAMPLE else 0.0
    changed = others + unseen + updates[1] + table.inserted + _changed_by_others(statement, write, evidence)
    part = 1.0 - changed / updates[0]
    return _Redundant("constant", write, tuple(values), part, values) if part > 0 else None


def _by_order(statement: Statement, write: Written, evidence: Evidence) -> _Redundant | None:
    """Return the proof that updates of a log assign what the same rows had been given before.

    A log without short statements proves nothing: it may lack an update that set another value in between.
    """
    log = evidence.log
    if statement.repeated is None or log is None or not any(log.histogram[:1]) or not write.sets:
        return None
    unchanged, updates = statement.repeated
    if not is_unchanged(unchanged, updates):
        return None
    return _Redundant("order", write, write.sets, unchanged / updates, {})


def is_unchanged(unchanged: int, updates: int) -> bool:
    """Return whether so many updates assigned the same values again that they prove a fault.

    If a log has a random part of the statements, two updates of a flag that is set and cleared are
    alike less than half of the time (``tests/calibration/test_unchanged_updates.py``).
    """
    return unchanged >= _ROWS and unchanged >= _UNCHANGED * updates


def _share(column: ColumnFacts | None, value: str | None) -> float:
    """Return the fraction of rows that have a value, as far as the statistics prove it."""
    if column is None or column.null_fraction is None or column.generated:
        return 0.0
    if value is None:
        return column.null_fraction
    return dict(column.common).get(value, 0.0) if len(value) < _SHOWN else 0.0


def _updates_since_analyse(
    statement: Statement, table: TableFacts, evidence: Evidence
) -> tuple[int, int] | None:
    """Return the rows that a statement updated since the watch and the last ANALYZE both had begun.

    The second number counts rows that changed between ANALYZE and the watch.
    """
    if table.analysed_us is None or table.modified is None or evidence.database is None:
        return None
    own, everything = statement.rows or 0, table.inserted + table.updated + table.deleted
    if table.analysed_us < evidence.database.watch.begun_us:
        return min(own, table.modified), max(0, table.modified - everything)
    return min(own, max(0, table.modified - max(0, everything - own))), 0


def _changed_by_others(statement: Statement, write: Written, evidence: Evidence) -> int:
    """Return how many rows other statements may have given another value during the watch."""
    known, changed = statement.rows or 0, 0
    for other in evidence.statements.values():
        also = None if other.number == statement.number else written(other)
        if also is None or also.table != write.table or (also.kind != "update" and not also.upsert):
            continue
        known += other.rows or 0
        changed += (other.rows or 0) if set(also.sets).intersection(write.sets) or not also.sets else 0
    return changed + max(0, evidence.tables[write.table].updated - known)


# ---- the finding ----


def _against(found: _Redundant, evidence: Evidence) -> Iterator[str]:
    if found.proof == "itself":
        yield "Such an update can have a purpose: to lock the row, or to send it to subscribers again."
    if evidence.database is None:
        yield "A trigger on the table, which a log does not show, can be the purpose of such an update."


def _candidates(statement: Statement, found: _Redundant, evidence: Evidence) -> Iterator[Candidate]:
    table = found.write.table
    counts = "Clients that check for one updated row then get 0 for a row that has the value already."
    if found.write.upsert:
        key = ", ".join(found.write.keys)
        yield client_change(
            f"Look up the row by {key} first, and INSERT ... ON CONFLICT ({key}) DO NOTHING only "
            "if it is missing.",
            "DO NOTHING returns no row if another session inserts it in between: look it up again.",
        )
    elif found.proof == "itself":
        yield client_change(
            "Leave the statement out. To lock rows, use SELECT ... FOR NO KEY UPDATE, which writes "
            "no new version."
        )
    else:
        yield statement_change(
            "Update only rows that have another value.",
            counts,
            sql=_distinct(statement.sql, found.columns),
            unprovable="" if found.part >= _NEARLY_ALL else _REPEATS,
            check=content_query(table),
            other_counts=True,
        )
    if _RETURNING.search(statement.text):
        return  # it would get no row any more
    trigger = quoted("zz_only_changes")
    yield ddl_change(
        f"Let a trigger of PostgreSQL itself skip updates of {table} that change nothing.",
        "Updates that do change a row take a little longer, because the trigger compares rows.",
        counts,
        sql=f"CREATE TRIGGER {trigger} BEFORE UPDATE ON {sql_name(table)} FOR EACH ROW "
        f"EXECUTE FUNCTION {_SUPPRESSES}();",
        undo=f"DROP TRIGGER {trigger} ON {sql_name(table)};",
        same_answers=not any(_returns(other, table) for other in evidence.statements.values()),
    )


def _returns(statement: Statement, table: str) -> bool:
    write = written(statement) if _RETURNING.search(statement.text) else None
    return write is not None and write.table == table and (write.kind == "update" or write.upsert)


def _distinct(sql: str, columns: tuple[str, ...]) -> str:
    """Return the statement with a condition that skips equal rows; empty if its text is not so simple."""
    found = _WHERE.fullmatch(sql)
    if found is None or re.search(r"(?i)\breturning\b|\bselect\b|\bwhere\b", found[2]):
        return ""
    conditions = []
    for name in columns:
        value = re.search(
            rf"(?i)(?<![\w$.])\"?{re.escape(name)}\"?\s*=\s*(\$\d+(?:::[\w ]+?)?)\s*(?:,|where)", sql
        )
        if value is None:
            return ""
        conditions.append(f"{quoted(name)} IS DISTINCT FROM {value[1]}")
    both = f"({found[2]})" if re.search(r"(?i)\bor\b", found[2]) else found[2]
    new = conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"
    return f"{found[1]}{both} AND {new};"
