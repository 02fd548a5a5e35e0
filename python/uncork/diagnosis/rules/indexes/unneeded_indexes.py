"""Indexes that cost writes and space without serving: duplicates, unused ones, invalid ones. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from uncork.diagnosis.changes import drop_indexes, index_change
from uncork.diagnosis.evidence import Evidence, Existing
from uncork.diagnosis.rule import finding, rule, worth
from uncork.diagnosis.rules.indexes.problems import problems
from uncork.model.database.finding import Bill, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import count_words, format_bytes

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

# ---- what the upkeep of indexes costs, and what may need an index that nothing scans for now ----
#
# A measurement of the statements that were captured within seconds cannot show what a nightly job,
# a monthly report or a standby server needs.


LEAST_BYTES: Final = 10_000_000
"""Bytes of indexes below which their size alone is not worth a finding."""
GRACE_DAYS: Final = 30.0
"""Days of counting below which an index may belong to a job that has not run yet: a monthly report."""
_WRITES: Final = ("insert", "update", "delete", "merge", "copy")


def upkeep_bill(table: TableFacts, indexes: Collection[Existing], evidence: Evidence) -> Bill:
    """Return what statements spend on maintaining some of a table's indexes.

    A row written goes to the table and to each index, so each of them has an equal part of the
    work. A HOT update changes no index; a delete leaves its entries to VACUUM.
    """
    parts = templates_of(table, indexes, evidence)
    return evidence.bill_of(parts, without_wal=parts)


def templates_of(table: TableFacts, indexes: Collection[Existing], evidence: Evidence) -> dict[int, float]:
    """Return the statements that write to a table, with the fraction of their time for some indexes of it.

    An update of a column of an index that nothing reads is left to the rule about heap-only updates.
    """
    each = len(indexes) / (1 + max(len(indexes), len(evidence.indexes.get(table.name, ()))))
    unread = {
        column for index in indexes if index.facts.warning == "unused" for column in index.shape.columns
    }
    moved = 1 - table.hot_updated / table.updated if table.updated else 1.0
    found = {}
    for statement in evidence.statements.values():
        if statement.shape.kind not in _WRITES:
            continue
        if not statement.changes(table.name):
            continue
        if unread.intersection(statement.shape.set_columns):
            continue
        fraction = {"delete": 0.0, "update": each * moved}.get(statement.shape.kind, each)
        if fraction:
            found[statement.number] = fraction
    return found


def counted_days(evidence: Evidence) -> float | None:
    """Return for how many days the server has counted the scans of indexes; None if it is unknown."""
    database = evidence.database
    if database is None or database.counted_since_us is None:
        return None
    return (database.watch.ended_us - database.counted_since_us) / 86_400e6


def serves_key(existing: Existing, evidence: Evidence) -> bool:
    """Return whether an index finds the rows that refer to a deleted one: deletes are rare, but need it."""
    for key in evidence.keys_of.get(existing.facts.table, ()):
        columns = {part.strip().strip('"') for part in key.columns.split(",")}
        if set(existing.shape.columns[: len(columns)]) == columns:
            return True
    return False


def why_unprovable(indexes: Sequence[Existing], evidence: Evidence) -> str:
    """Return why measuring without these indexes cannot prove that they are not needed.

    It is a sentence, empty if a measurement can: nothing scanned them for 30 days.
    """
    scanned = next((index.facts for index in indexes if index.facts.scans_ever), None)
    if scanned is not None and scanned.scans_ever:
        return (
            f"Statements that were not captured scanned {scanned.name} "
            f"{count_words(scanned.scans_ever, 'time')} since counting began: find them first."
        )
    days = counted_days(evidence)
    if days is not None and days >= GRACE_DAYS:
        return ""
    if days is None:
        return (
            "It is unknown since when the server counts scans, so a job that runs seldom may need "
            f"it. Compare its scans {GRACE_DAYS:.0f} days apart, on every standby server too."
        )
    return (
        f"Scans were counted for {count_words(round(days, 1), 'day')}, so a job that runs seldom may need "
        f"it. Wait until {GRACE_DAYS:.0f} days without a scan are counted, on every standby server too."
    )


_YOUNG_SHARE: Final = 0.25
_YOUNG_INDEXES: Final = 2
"""Share of the busy time, and unused indexes of one table, from which on they are reported although
scans were not counted for long: the one index of a new table may only wait for its first reader."""
_STANDBY: Final = "A standby counts its own scans: check pg_stat_user_indexes there before."
_PROOF: Final = "Compare the writing statements with and without the indexes in uncork run."


@rule("redundant-index")
def find_redundant_indexes(seen: Evidence) -> Iterator[Finding]:
    """Find indexes that cost writes and space although others serve: duplicates, and covered ones."""
    for table, found in _by_table(seen, ("duplicate", "covered")):
        kinds = {existing.facts.warning for existing in found}
        words = "duplicates" if kinds == {"duplicate"} else "repeats columns of"
        first = found[0].facts
        if len(found) == 1:
            headline = f"Index {_plain(first.name)} of {table.name} {words} {_plain(first.same_as)}"
        else:
            headline = f"{len(found)} indexes of {table.name} repeat others, such as {_plain(first.name)}"
        same = {"duplicate": "has the same columns as", "covered": "has the first columns of"}
        evidence = (
            f"{facts.name} {same[facts.warning]} {facts.same_as}: {facts.definition}."
            for facts in (existing.facts for existing in found)
        )
        yield from _finding(headline, table, found, tuple(evidence), (), seen)


@rule("unused-index")
def find_unused_indexes(seen: Evidence) -> Iterator[Finding]:
    """Find indexes that nothing scans, and that no foreign key needs."""
    if seen.is_standby:
        return  # the primary and other standby servers count their own scans
    days = counted_days(seen)
    for table, every in _by_table(seen, ("unused",)):
        found = [
            existing for existing in every if not existing.facts.scans_ever and not serves_key(existing, seen)
        ]
        if not found:
            continue
        name, number = _plain(found[0].facts.name), len(seen.indexes.get(table.name, ()))
        headline = f"Index {name} of {table.name} is never scanned"
        if len(found) > 1:
            headline = f"{len(found)} indexes of {table.name} are never scanned, such as {name}"
        young = days is None or days < GRACE_DAYS
        period = " since counting began" if days is None else f" for {count_words(round(days, 1), 'day')}"
        evidence = (
            f"No scan of {'it' if len(found) == 1 else 'them'} was counted{period}.",
            f"Table {table.name} has {number} {'index' if number == 1 else 'indexes'}.",
        )
        doubt = f"Scans are not known to have been counted for {GRACE_DAYS:.0f} days: a rare job may need it."
        against = (doubt,) if young else ()
        why = why_unprovable(found, seen)
        yield from _finding(headline, table, found, evidence, against, seen, bare=not young, unprovable=why)


def _finding(
    headline: str,
    table: TableFacts,
    found: Sequence[Existing],
    evidence: tuple[str, ...],
    against: tuple[str, ...],
    seen: Evidence,
    *,
    bare: bool = True,
    unprovable: str = "",
) -> Iterator[Finding]:
    """Yield the finding if writes spend enough time on the indexes, or if they are large.

    Without `bare`, the counters are young: size does not count, and time only if it is much.
    """
    bill = upkeep_bill(table, found, seen)
    size = sum(existing.facts.bytes or 0 for existing in found)
    costly = worth(bill) and (bare or (bill.share >= _YOUNG_SHARE and len(found) >= _YOUNG_INDEXES))
    if not costly and not (bare and size >= LEAST_BYTES):
        return
    writes = seen.chosen(templates_of(table, found, seen) if costly else ())
    yield finding(
        headline,
        drop_indexes(
            found,
            f"Drop {'the index' if len(found) == 1 else 'these indexes, one after another'}.",
            *against,
            _STANDBY,
            unprovable=unprovable,
        ),
        objects=(*(existing.facts.name for existing in found), table.name),
        bill=bill if costly else None,
        statements=sorted(writes, key=lambda statement: -seen.busy(statement.number)),
        cost=f"{format_bytes(size)} of disk",
        evidence=(*evidence, f"{'It takes' if len(found) == 1 else 'They take'} {format_bytes(size)}."),
        proof=_PROOF,
    )


def _by_table(evidence: Evidence, warnings: Sequence[str]) -> Iterator[tuple[TableFacts, list[Existing]]]:
    for name, indexes in evidence.indexes.items():
        table = evidence.tables.get(name)
        found = [index for index in indexes if index.facts.warning in warnings]
        if table is not None and found:
            yield table, sorted(found, key=lambda existing: -(existing.facts.bytes or 0))


def _plain(name: str) -> str:
    return name.rpartition(".")[2]


_BUILDS: Final = ("create index", "create unique index", "reindex")


@rule("invalid-index")
def find_invalid(evidence: Evidence) -> Iterator[Finding]:
    """Find an invalid index, which writes maintain and no statement uses."""
    if any(
        statement.text.startswith(_BUILDS) and evidence.all_of(statement.number)
        for statement in evidence.statements.values()
    ):
        return  # an index is invalid while it is built concurrently
    wanted: dict[str, dict[int, float]] = defaultdict(dict)
    for problem in problems(evidence):
        if problem.obstacle is not None and problem.obstacle.kind == "invalid":
            wanted[problem.obstacle.index][problem.statement.number] = problem.fraction
    for name, indexes in evidence.indexes.items():
        for index in indexes:
            if index.facts.warning == "invalid" and name in evidence.tables:
                yield from _invalid(index, wanted[index.facts.name], evidence)


def _invalid(existing: Existing, fractions: dict[int, float], evidence: Evidence) -> Iterator[Finding]:
    bill, index = evidence.bill_of(fractions), existing.facts
    costly, size = worth(bill), index.bytes or 0
    if not costly and size < LEAST_BYTES:
        return
    yield finding(
        f"Index {index.name.rpartition('.')[2]} of {index.table} is invalid, so no statement uses it",
        index_change(
            "Build the index again.",
            "If a unique index failed because of duplicate rows, remove these first.",
            sql=f"REINDEX INDEX CONCURRENTLY {sql_name(index.name)};",
            on_copy=f"{index.definition};" if costly else "",
        ),
        drop_indexes(
            [existing],
            "Or drop it, if another index serves instead.",
            unprovable="A copy has no invalid indexes, so dropping one changes nothing there.",
        ),
        objects=(index.name, index.table),
        bill=bill,
        statements=evidence.chosen(fractions),
        cost=f"{format_bytes(size)} of disk",
        evidence=(
            "CREATE INDEX CONCURRENTLY or REINDEX CONCURRENTLY failed and left it. Writes still maintain it.",
            *((f"It would serve {count_words(len(fractions), 'statement')}.",) if fractions else ()),
        ),
        proof="Run EXPLAIN on the statement after the change: the plan has the index.",
    )
