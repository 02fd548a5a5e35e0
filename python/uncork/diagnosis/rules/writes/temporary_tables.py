"""Temporary tables that clients create again and again. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from uncork.diagnosis.changes import client_change, statement_change
from uncork.diagnosis.evidence import WORK, Evidence, Statement
from uncork.diagnosis.rule import finding, statement_rule
from uncork.diagnosis.rules.writes.written import written
from uncork.model.database.finding import Finding
from uncork.model.database.names import sql_name
from uncork.model.units import count_words, format_count, share_text

_CREATE: Final = re.compile(
    r"(?:create\s+(?:local\s+|global\s+)?temp(?:orary)?\s+table|select\b.*?\binto\s+temp(?:orary)?(?:\s+table)?)"
    r"\s+(?:if\s+not\s+exists\s+)?(?:pg_temp\.)?\"?([\w$]+)",
    re.DOTALL,
)
_COLUMNS: Final = re.compile(
    r"(create\s+[\w ]*?table)\s+(?:if\s+not\s+exists\s+)?([\w$.\"]+\s*\(.*\))(?:\s+on\s+commit\s+[\w ]+)?$",
    re.DOTALL | re.IGNORECASE,
)
"""CREATE TABLE with a list of columns."""
_DROPS: Final = r"(?:drop\s+table|truncate)\s.*(?<![\w$]){name}(?![\w$])"
_CATALOGUE_ROWS: Final = 12
"""Rows that a temporary table adds to pg_class, pg_type, pg_attribute and pg_depend at least: it
has six system columns besides its own. Each becomes a dead row when the table goes."""


@statement_rule("temporary-tables")
def find_temporary_tables(statement: Statement, seen: Evidence) -> Finding | None:
    """Find a statement that creates a temporary table again and again."""
    match = _CREATE.match(statement.text)
    if match is None:
        return None
    name = match[1]
    calls = max(statement.calls or 0, _filled(name, seen))
    if not seen.is_traffic(replace(statement, calls=calls)):
        return None
    dropping = re.compile(_DROPS.format(name=re.escape(name)), re.DOTALL)
    drops = [each for each in seen.statements.values() if dropping.match(each.text)]
    rows = format_count(round(_CATALOGUE_ROWS * calls / seen.seconds))
    evidence = [
        f"Each creates and drops rows of the system catalogue, at least {rows} a second, which "
        "every session must then skip until VACUUM removes them."
    ]
    dropped = sum(seen.busy(drop.number) for drop in drops)
    if dropped:
        evidence.append(
            f"Dropping or truncating it takes {share_text(seen.share(dropped))} of the busy time."
        )
    return finding(
        f"Temporary table {name} is created {count_words(calls, 'time')}",
        statement_change(
            f"Do without {name}: pass a list of values as an array (unnest), and intermediate "
            "rows as a common table expression (WITH)."
        ),
        client_change(
            f"Create {name} once for each connection, with IF NOT EXISTS, and empty it by ON "
            "COMMIT DELETE ROWS.",
            "A pooler in transaction mode may give each transaction another session.",
            sql=_kept(statement),
            undo=f"DROP TABLE {sql_name(name)};",
        ),
        objects=(name,),
        bill=seen.bill_of({statement.number, *(drop.number for drop in drops)}, WORK | {"Lock"}),
        statements=[statement, *drops],
        evidence=evidence,
        proof="Compare both ways with uncork run, over more rounds than VACUUM needs to come by.",
    )


def _filled(name: str, evidence: Evidence) -> int:
    """Return how often rows were written to a table.

    PostgreSQL counts only the first execution of a CREATE TABLE that a driver has prepared.
    """
    inserts = (statement for statement in evidence.statements.values() if statement.text.startswith("insert"))
    filling = (insert for insert in inserts if (write := written(insert)) and write.table == name)
    return max((insert.calls or 0 for insert in filling), default=0)


def _kept(statement: Statement) -> str:
    """Return the statement that keeps the table, if it lists its columns."""
    match = _COLUMNS.match((statement.sql or statement.text).rstrip("; "))
    return f"{match[1]} IF NOT EXISTS {match[2]} ON COMMIT DELETE ROWS;" if match else ""
