"""Dead rows that statements read because autovacuum is not due yet, or too slow. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules.server.counted import setting
from uncork.advise.rules.space.dead_reads import autovacuum_delay, dead_reads, held_back, threshold
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_count, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

_FACTOR: Final = 0.01
"""The proposed autovacuum_vacuum_scale_factor: one dead row in a hundred. The default of 0.2 lets a table of
a million rows collect 200 000 dead ones."""
_LEAST_ROWS: Final = 1_000
"""The proposed autovacuum_vacuum_threshold, so that a small table is not vacuumed continuously."""
_COST_LIMIT: Final = 2_000
"""The proposed autovacuum_vacuum_cost_limit: ten times the default of 200, which reads about 40 MB/s of pages
that are not in shared buffers and writes 4 MB/s."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.database is None or held_back(evidence):
        return
    for table in evidence.tables.values():
        delay = autovacuum_delay(table, evidence)
        if delay not in ("threshold", "slow"):
            continue
        parts = dead_reads(table, evidence)
        if parts:
            yield _finding(table, parts, evidence, slow=delay == "slow")


def _finding(table: TableFacts, parts: dict[int, float], seen: Evidence, *, slow: bool) -> Finding:
    dead, limit = table.dead or 0, threshold(table, seen)
    numbers = seen.by_cost(parts)
    top = seen.statements[numbers[0]]
    blocks, rows = top.a_call(top.blocks), top.a_call(top.rows)
    evidence = [
        f"{share_text(dead / max(1, dead + (table.live or 0)))} of the table's rows are dead. "
        f"Autovacuum starts at {format_count(round(limit))} dead rows."
    ]
    if blocks is not None and rows is not None:
        evidence.append(
            f"A call of the statement touches {format_count(round(blocks))} blocks and returns or changes "
            f"{format_count(round(rows))} rows."
        )
    if slow:
        evidence.append("Autovacuum pauses for its cost limit (wait event VacuumDelay) most of the time.")
    why = "autovacuum is too slow" if slow else "autovacuum starts too late"
    return Finding(
        RULE.name,
        f"Statements read {format_count(dead)} dead rows of table {table.name}: {why}",
        objects=(table.name,),
        bill=seen.bill_of(parts),
        templates=tuple(numbers),
        statement=top.text,
        evidence=tuple(evidence),
        candidates=(*(_faster(table, seen) if slow else _earlier(table, seen)), _once(table.name)),
        proof="Compare the statements before and after VACUUM with uncork run. After it, "
        "pg_stat_user_tables.n_dead_tup must stay low.",
    )


def _earlier(table: TableFacts, evidence: Evidence) -> Iterator[Candidate]:
    new = {"autovacuum_vacuum_scale_factor": str(_FACTOR), "autovacuum_vacuum_threshold": str(_LEAST_ROWS)}
    yield Candidate(
        "ddl",
        f"Let autovacuum start at {share_text(_FACTOR)} dead rows in table {table.name}.",
        *_options(table, new, evidence),
        against=("Autovacuum reads all indexes of the table each time it runs.",),
    )


def _faster(table: TableFacts, evidence: Evidence) -> Iterator[Candidate]:
    names = ("autovacuum_vacuum_cost_delay", "autovacuum_vacuum_cost_limit")
    options = evidence.catalogue.options.get(table.name)
    reads = ("Autovacuum then reads and writes more blocks a second, beside the statements.",)
    if options is not None and any(name in options.options for name in names):
        new = {"autovacuum_vacuum_cost_delay": "2", "autovacuum_vacuum_cost_limit": str(_COST_LIMIT)}
        text = f"Let autovacuum pause less in table {table.name}, whose own options slow it down."
        yield Candidate("ddl", text, *_options(table, new, evidence), against=reads)
        return
    known = setting("autovacuum_vacuum_cost_limit", evidence)
    undo = f"SET autovacuum_vacuum_cost_limit = {known}" if known else "RESET autovacuum_vacuum_cost_limit"
    yield Candidate(
        "setting",
        "Let autovacuum work ten times as long between two pauses.",
        sql=f"ALTER SYSTEM SET autovacuum_vacuum_cost_limit = {_COST_LIMIT}; SELECT pg_reload_conf();",
        undo=f"ALTER SYSTEM {undo}; SELECT pg_reload_conf();",
        against=reads,
    )


def _options(table: TableFacts, new: dict[str, str], evidence: Evidence) -> tuple[str, str]:
    """Return the statements that set options of a table, and that set them back."""
    options = evidence.catalogue.options.get(table.name)
    old = {} if options is None else options.options
    name = sql_name(table.name)
    reset = ", ".join(one for one in new if one not in old)
    again = ", ".join(f"{one} = {old[one]}" for one in new if one in old)
    undo = [f"ALTER TABLE {name} SET ({again});"] if again else []
    undo += [f"ALTER TABLE {name} RESET ({reset});"] if reset else []
    values = ", ".join(f"{one} = {value}" for one, value in new.items())
    return f"ALTER TABLE {name} SET ({values});", " ".join(undo)


def _once(table: str) -> Candidate:
    return Candidate(
        "maintenance",
        f"Run VACUUM (ANALYZE) on table {table} once.",
        sql=f"VACUUM (ANALYZE) {sql_name(table)};",
    )


RULE: Final = Rule("autovacuum-behind", _find, depth=2)
