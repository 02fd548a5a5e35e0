"""Indexes that cost writes and space without serving: duplicates, covered ones, unused ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Existing
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.indexes.upkeep import (
    GRACE_DAYS,
    LEAST_BYTES,
    counted_days,
    serves_key,
    templates_of,
    upkeep_bill,
    why_unprovable,
)
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_bytes, format_count

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

_YOUNG_SHARE: Final = 0.25
_YOUNG_INDEXES: Final = 2
"""Share of the busy time, and unused indexes of one table, from which on they are reported although scans
were not counted for long: the one index of a new table may only wait for its first reader."""
_STANDBY: Final = "A standby counts its own scans: check pg_stat_user_indexes there before."
_PROOF: Final = "Compare the writing statements with and without the indexes in uncork run."


def _redundant(seen: Evidence) -> Iterator[Finding]:
    for table, found in _by_table(seen, ("duplicate", "covered")):
        kinds = {existing.facts.warning for existing in found}
        words = "duplicates" if kinds == {"duplicate"} else "repeats columns of"
        first = found[0].facts
        if len(found) == 1:
            headline = f"Index {_plain(first.name)} of {table.name} {words} {_plain(first.same_as)}"
        else:
            headline = f"{len(found)} indexes of {table.name} repeat others, such as {_plain(first.name)}"
        evidence = (
            f"{existing.facts.name} {_same(existing)} {existing.facts.same_as}: {existing.facts.definition}."
            for existing in found
        )
        yield from _finding("redundant-index", headline, table, found, tuple(evidence), (), seen)


def _unused(seen: Evidence) -> Iterator[Finding]:
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
        period = " since counting began" if days is None else f" for {format_count(round(days, 1))} days"
        evidence = (
            f"No scan of {'it' if len(found) == 1 else 'them'} was counted{period}.",
            f"Table {table.name} has {number} {'index' if number == 1 else 'indexes'}.",
        )
        against = (
            (f"Scans are not known to have been counted for {GRACE_DAYS:.0f} days: a rare job may need it.",)
            if young
            else ()
        )
        yield from _finding("unused-index", headline, table, found, evidence, against, seen, bare=not young)


def _finding(
    rule: str,
    headline: str,
    table: TableFacts,
    found: Sequence[Existing],
    evidence: tuple[str, ...],
    against: tuple[str, ...],
    seen: Evidence,
    *,
    bare: bool = True,
) -> Iterator[Finding]:
    """Yield the finding if writes spend enough time on the indexes, or if they are large.

    Without `bare`, the counters are young: size does not count, and time only if it is much.
    """
    bill = upkeep_bill(table, found, seen)
    size = sum(existing.facts.bytes or 0 for existing in found)
    costly = worth(bill) and (bare or (bill.share >= _YOUNG_SHARE and len(found) >= _YOUNG_INDEXES))
    if not costly and not (bare and size >= LEAST_BYTES):
        return
    parts = templates_of(table, found, seen) if costly else {}
    templates = tuple(sorted(parts, key=lambda number: -seen.busy(number)))
    yield Finding(
        rule,
        headline,
        objects=(*(existing.facts.name for existing in found), table.name),
        bill=bill if costly else None,
        templates=templates,
        statement=seen.statements[templates[0]].text if templates else "",
        cost=f"{format_bytes(size)} of disk",
        evidence=(*evidence, f"{'It takes' if len(found) == 1 else 'They take'} {format_bytes(size)}."),
        candidates=(
            Candidate(
                "index",
                f"Drop {'the index' if len(found) == 1 else 'these indexes, one after another'}.",
                sql="\n".join(
                    f"DROP INDEX CONCURRENTLY {sql_name(existing.facts.name)};" for existing in found
                ),
                undo="\n".join(_again(existing) for existing in found),
                against=(*against, _STANDBY),
                unprovable=why_unprovable(found, seen) if rule == "unused-index" else "",
            ),
        ),
        proof=_PROOF,
    )


def _by_table(evidence: Evidence, warnings: Sequence[str]) -> Iterator[tuple[TableFacts, list[Existing]]]:
    for name, indexes in evidence.indexes.items():
        table = evidence.tables.get(name)
        found = [index for index in indexes if index.facts.warning in warnings]
        if table is not None and found:
            yield table, sorted(found, key=lambda one: -(one.facts.bytes or 0))


def _same(existing: Existing) -> str:
    return "has the same columns as" if existing.facts.warning == "duplicate" else "has the first columns of"


def _again(existing: Existing) -> str:
    head, index, rest = existing.facts.definition.partition(" INDEX ")
    return f"{head}{index}CONCURRENTLY {rest};"


def _plain(name: str) -> str:
    return name.rpartition(".")[2]


REDUNDANT: Final = Rule("redundant-index", _redundant)
UNUSED: Final = Rule("unused-index", _unused)
