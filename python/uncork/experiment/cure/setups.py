"""Turn DDL of a candidate into a set-up script that runs in one transaction. Pure."""

from __future__ import annotations

import re
from typing import Final

from uncork.experiment.spec.sqltext import numbers_in, plain_colons, statements_in
from uncork.model.database.index import within_transaction

__all__ = ["SetupRefused", "setup_script", "table_named"]

_PART: Final = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
_TABLE: Final = rf"(?P<table>{_PART}(?:\.{_PART})?)"


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_EXECUTED: Final = (
    _form(rf"CREATE\s+(?:UNIQUE\s+)?INDEX\b.*?\sON\s+(?:ONLY\s+)?{_TABLE}.*"),
    _form(rf"CREATE\s+STATISTICS\b.*\sFROM\s+{_TABLE}"),
    _form(r"CREATE\s+EXTENSION\s.*"),
    _form(r"ALTER\s+(?:FUNCTION|PROCEDURE|ROUTINE)\s.*"),
    _form(rf"ALTER\s+TABLE\s+(?:ONLY\s+)?{_TABLE}\s+ALTER\s+(?:COLUMN\s+)?{_PART}\s+TYPE\s.*"),
    _form(rf"ALTER\s+TABLE\s+(?:ONLY\s+)?{_TABLE}\s+(?:RE)?SET\s*\(\s*fillfactor[^,]*\)"),
)
"""Statements whose effect a copy shows."""

_DROP_INDEX: Final = _form(r"DROP\s+INDEX\s.*")
_REWRITE: Final = _form(rf"VACUUM\s*(?:FULL\b|\([^)]*\bFULL\b[^)]*\))[^;(]*?\s{_TABLE}")
_FILLFACTOR: Final = _form(rf"ALTER\s+TABLE\s+{_TABLE}\s+SET\s*\(\s*fillfactor\b.*")

_REFUSED: Final = (
    (
        _form(r"(?:VACUUM|CLUSTER|REINDEX)\b.*"),
        "Rows and indexes of a copy are written anew, without dead rows and free space, so a copy cannot "
        "show what VACUUM or REINDEX gain.",
    ),
    (
        _form(r"ANALYZE\b.*"),
        "A copy is analysed before it is measured, so all of its statistics are current. Execute ANALYZE on "
        "the server, and watch it again.",
    ),
    (
        _form(r"ALTER\s+TABLE\s.*\b(?:RE)?SET\s*\(.*autovacuum.*"),
        "Autovacuum acts over hours or days, which an experiment does not last.",
    ),
    (
        _form(r"(?:ALTER\s+TABLE\s.*\sSET\s+UNLOGGED|CREATE\s+UNLOGGED\s.*)"),
        "A crash empties unlogged tables. uncork shows this as a trade and never tries it.",
    ),
    (
        _form(r"ALTER\s+TABLE\s.*\sSET\s+DEFAULT\s.*"),
        "A new default changes future rows only. A copy would show its effect after the rows were replaced.",
    ),
    (
        _form(r"CREATE\s+TRIGGER\s.*\bsuppress_redundant_updates_trigger\s*\(.*"),
        "A copy gets the same updates again and again, so it cannot show how many of them change a row.",
    ),
    (
        _form(r"CREATE\s+(?:TABLE|MATERIALIZED|VIEW|TRIGGER|FUNCTION|SCHEMA|SEQUENCE)\b.*"),
        "It works only together with changes of the application or of functions, which somebody must write.",
    ),
    (_form(r"(?:SELECT|LOCK|REFRESH)\b.*"), "It changes nothing that an experiment could measure."),
)

_REWRITE_SCRIPT: Final = """\
DO $uncork$
DECLARE one record;
BEGIN
  FOR one IN
    SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type
      FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
     WHERE a.attrelid = {literal}::regclass AND a.attnum > 0 AND NOT a.attisdropped
       AND a.attgenerated = '' AND a.attcollation = t.typcollation
     ORDER BY a.attnum DESC
  LOOP
    BEGIN
      EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE %s USING coalesce(%2$I, %2$I)',
                     {literal}::regclass, one.attname, one.type);
      RETURN;
    EXCEPTION WHEN feature_not_supported OR dependent_objects_still_exist OR datatype_mismatch THEN NULL;
    END;
  END LOOP;
  RAISE EXCEPTION 'uncork cannot rewrite table % in a transaction', {literal};
END $uncork$"""
"""Rewrites a table in the order of its rows, as VACUUM FULL does, which PostgreSQL refuses in a transaction.

A conversion that the planner cannot remove rewrites the table. Columns that views use are left out.
"""


class SetupRefused(Exception):
    """A copy cannot prove a change; the text is the reason, as a sentence."""


def setup_script(sql: str, *, undo: str, billed: bool) -> tuple[str, tuple[str, ...]]:
    """Return the script that makes a change on a copy, and the tables that it changes.

    The script runs in one transaction: CONCURRENTLY is left out, and VACUUM FULL after a new fillfactor
    becomes another way to rewrite the table. The tables are empty if the SQL does not name them.

    Args:
        sql: what a candidate executes.
        undo: what reverts it.
        billed: whether its finding costs time. Dropping an index of one that does not is not tried.

    Raises:
        SetupRefused: with the reason.
    """
    script, tables, filled = [], [], set()
    for statement in statements_in(sql):
        if numbers_in(statement):
            raise SetupRefused("It works only together with changes of the application.")
        if (rewrite := _REWRITE.fullmatch(statement)) and rewrite["table"] in filled:
            script.append(_REWRITE_SCRIPT.format(literal="'" + rewrite["table"].replace("'", "''") + "'"))
            continue
        if (fill := _FILLFACTOR.fullmatch(statement)) is not None:
            filled.add(fill["table"])
        if table := _table_of(statement, billed=billed):
            tables.append(table)
        script.append(plain_colons(within_transaction(statement)))
    if not undo.strip():
        raise SetupRefused("uncork does not know what reverts it.")
    return "\n".join(f"{one};" for one in script), tuple(dict.fromkeys(tables))


def table_named(written: str) -> str:
    """Return the name of a table without quotes, and without the schema if that is `public`."""
    parts = re.findall(_PART, written)
    names = [one[1:-1].replace('""', '"') if one.startswith('"') else one.lower() for one in parts]
    return names[-1] if names[:-1] in ([], ["public"]) else ".".join(names)


def _table_of(statement: str, *, billed: bool) -> str:
    """Return the table that a statement changes, empty if it does not name one."""
    for form in _EXECUTED:
        found = form.fullmatch(statement)
        if found is not None:
            return table_named(found["table"]) if "table" in found.groupdict() else ""
    if _DROP_INDEX.fullmatch(statement):
        if billed:
            return ""
        raise SetupRefused(
            "The index costs no measurable time, so dropping it saves disk only. Drop it after its counters "
            "cover at least 30 days on the server and on every replica."
        )
    for form, reason in _REFUSED:
        if form.fullmatch(statement):
            raise SetupRefused(reason)
    raise SetupRefused("uncork does not know how to try it on a copy.")
