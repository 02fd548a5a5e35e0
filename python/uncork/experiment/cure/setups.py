"""Turn DDL of a candidate into a set-up script that runs in one transaction. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uncork.experiment.spec.sqltext import numbers_in, plain_colons, renumbered, statements_in
from uncork.model.database.index import within_transaction

# ---- the parameters of a rewritten statement ----


_TOKEN: Final = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?\*/
      | (?P<token> [eE]?'(?:[^'\\]|\\.|'')*' | "(?:[^"]|"")*" | \$\d+ | \d+(?:\.\d+)?(?:[eE][+-]?\d+)?
          | [A-Za-z_\u0080-\uffff][\w$]* | . )""",
    re.VERBOSE | re.DOTALL,
)
_LITERAL: Final = re.compile(r"[eE]?'.*'|\d.*|null|true|false|\$\d+", re.DOTALL | re.IGNORECASE)


class Refused(Exception):
    """An experiment on a copy cannot prove a change; the text is the reason, as a sentence."""


def with_captured_parameters(sql: str, template: str, captured: str) -> str:
    """Return a rewritten statement with the parameters, or the values, that the captured statement has.

    ``$n`` in `sql` stands for the n-th value of the template, which has ``?`` for each value, and is empty if
    the numbers are those of `captured`. Raises Refused if the captured statement lacks a value.
    """
    values = _identity(captured) if not template else _values(template, captured)
    unknown = sorted(numbers_in(sql) - values.keys())
    if unknown:
        raise Refused(
            f"The new text needs a value for ${unknown[0]} that the captured statement does not have; the "
            "application must provide it."
        )
    return renumbered(sql, values)


def _identity(captured: str) -> dict[int, str]:
    return {number: f"${number}" for number in numbers_in(captured)}


def _values(template: str, captured: str) -> dict[int, str]:
    """Return what the captured statement has in place of each value of its template, by number from 1."""
    found: dict[int, str] = {}
    there = _tokens(captured)
    place = 0
    for token in _tokens(template):
        value = "".join(there[place : place + 1])
        if token == "?":  # noqa: S105 -- a token of SQL
            sign = value if value == "-" else ""
            place += len(sign)
            value = "".join(there[place : place + 1])
            if not _LITERAL.fullmatch(value):
                raise _other_form()
            found[len(found) + 1] = sign + value
        elif value.lower() != token.lower():
            raise _other_form()
        place += 1
    if place != len(there):
        raise _other_form()
    return found


def _other_form() -> Refused:
    return Refused(
        "The captured statement has another form than the one that the new text replaces, so its values do "
        "not fit."
    )


def _tokens(sql: str) -> list[str]:
    text = sql.strip().rstrip(";").rstrip()
    return [match["token"] for match in _TOKEN.finditer(text) if match["token"]]


_PART: Final = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
_TABLE: Final = rf"(?P<table>{_PART}(?:\.{_PART})?)"


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_INDEX: Final = _form(
    rf"CREATE\s+(?:UNIQUE\s+)?INDEX\b.*?\sON\s+(?:ONLY\s+)?{_TABLE}\s*(?:USING\s+\w+\s*)?\((?P<keys>.*)"
)
_STATISTICS: Final = _form(rf"CREATE\s+STATISTICS\b.*\sFROM\s+{_TABLE}")
_TYPE: Final = _form(rf"ALTER\s+TABLE\s+(?:ONLY\s+)?{_TABLE}\s+ALTER\s+(?:COLUMN\s+)?{_PART}\s+TYPE\s.*")
_ANALYZE: Final = _form(
    rf"ANALY[SZ]E\b(?:\s*\([^)]*\)(?=\s*\w))?(?:\s+VERBOSE\b)?(?:\s*{_TABLE}(?:\s*\([^)]*\))?)?"
)
_EXECUTED: Final = (
    _INDEX,
    _STATISTICS,
    _form(r"CREATE\s+EXTENSION\s.*"),
    _form(r"ALTER\s+(?:FUNCTION|PROCEDURE|ROUTINE)\s.*"),
    _TYPE,
    _form(rf"ALTER\s+TABLE\s+(?:ONLY\s+)?{_TABLE}\s+(?:RE)?SET\s*\(\s*fillfactor[^,]*\)"),
    _form(rf"DROP\s+TRIGGER\s+(?:IF\s+EXISTS\s+)?{_PART}\s+ON\s+{_TABLE}"),
)
"""Statements whose effect a copy shows."""

_FUNCTION: Final = _form(rf"CREATE\s+FUNCTION\s+(?P<name>{_PART}(?:\.{_PART})?)\s*\(.*")
_CALLING: Final = _form(
    rf"CREATE\s+TRIGGER\s.*?\sON\s+{_TABLE}\s.*\sEXECUTE\s+FUNCTION\s+(?P<name>{_PART}(?:\.{_PART})?)\s*\(\)"
)
"""A function, and a trigger that calls one. A copy shows what a trigger gains whose function is there too."""

_QUOTED_OR_ONE: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|.", re.DOTALL)
_DROP_INDEX: Final = _form(r"DROP\s+INDEX\s.*")
_REWRITE: Final = _form(rf"VACUUM\s*(?:FULL\b|\([^)]*\bFULL\b[^)]*\))[^;(]*?\s{_TABLE}")
_REINDEX: Final = _form(rf"REINDEX\s+INDEX\s+(?:CONCURRENTLY\s+)?{_TABLE}")
_FILLFACTOR: Final = _form(rf"ALTER\s+TABLE\s+{_TABLE}\s+SET\s*\(\s*fillfactor\b.*")

_REFUSED: Final = (
    (
        _form(r"(?:VACUUM|CLUSTER|REINDEX)\b.*"),
        "A copy's tables are written anew and vacuumed, so it cannot show what this gains. Execute it on the "
        "server, watch it again, and compare both watches with uncork compare.",
    ),
    (
        _form(r"ALTER\s+TABLE\s.*\b(?:RE)?SET\s*\(.*autovacuum.*"),
        "Autovacuum acts over hours or days, which an experiment does not last. Change it on the server, "
        "watch it again after a day, and compare both watches with uncork compare.",
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

_NO_PAGES: Final = (
    "A copy's tables and indexes are written anew, so they have no bloat. Name a restored backup or a clone "
    "of the server's files with --copy: it has the same pages."
)
_NO_STATISTICS: Final = (
    "A copy has new statistics: those of the server can be copied only if the server and the copy are "
    "PostgreSQL 18 and all rows are copied. Execute ANALYZE on the server, and watch it again."
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


@dataclass(frozen=True, slots=True)
class CopyKeeps:
    """What a copy has as the source has it: the planner's `statistics`, and the `pages` with their bloat."""

    statistics: bool
    pages: bool


NEW_COPY: Final = CopyKeeps(statistics=False, pages=False)
"""A copy whose rows were written anew and analysed."""


def setup_script(
    sql: str, *, undo: str, billed: bool, keeps: CopyKeeps = NEW_COPY
) -> tuple[str, tuple[str, ...]]:
    """Return the script that makes a change on a copy, and the changed tables. Raises Refused.

    The script runs in one transaction: CONCURRENTLY is left out, and VACUUM FULL becomes another way to
    rewrite the table. Variants are not analysed, so the script analyses the tables of which the change needs
    new statistics. The tables are empty if the SQL does not name them. `undo` is what reverts the change;
    ANALYZE, REINDEX and VACUUM FULL need nothing. `billed` says whether its finding costs time: the index of
    one that does not is not dropped.
    """
    written = statements_in(sql)
    if gathers_statistics(sql) and not keeps.statistics:
        raise Refused(_NO_STATISTICS)
    script, tables, filled, analysed = [], [], set(), []
    reverted = True
    for statement in written:
        if numbers_in(statement):
            raise Refused("It works only together with changes of the application.")
        rewrite = _REWRITE.fullmatch(statement)
        if rewrite and (keeps.pages or rewrite["table"] in filled):
            script.append(_REWRITE_SCRIPT.format(literal="'" + rewrite["table"].replace("'", "''") + "'"))
            tables.append(table_named(rewrite["table"]))
            analysed.append(rewrite["table"])
            continue
        if found := _ANALYZE.fullmatch(statement):
            analysed.append(found["table"] or "")
            tables += [table_named(found["table"])] if found["table"] else []
            continue
        if rewrite or _REINDEX.fullmatch(statement):
            if not keeps.pages:
                raise Refused(_NO_PAGES)
            script.append(within_transaction(statement))
            continue
        reverted = False
        if (written_by := _of_trigger(statement, written)) is not None:
            tables += [table_named(text) for text in written_by]
            script.append(plain_colons(statement))
            continue
        if (fill := _FILLFACTOR.fullmatch(statement)) is not None:
            filled.add(fill["table"])
        if table := _table_of(statement, billed=billed):
            tables.append(table)
        if needing := _needs_statistics(statement):
            analysed.append(needing)
        script.append(plain_colons(within_transaction(statement)))
    if not reverted and not undo.strip():
        raise Refused("uncork does not know what reverts it.")
    script += [f"ANALYZE {fromkey}".rstrip() for fromkey in dict.fromkeys(analysed)]
    whole = () if "" in analysed else tuple(dict.fromkeys(tables))
    return "\n".join(f"{text};" for text in script), whole


def _of_trigger(statement: str, script: Sequence[str]) -> tuple[str, ...] | None:
    """Return the tables, as written, of a function and a trigger that calls it, if both are in the script."""
    made = {one["name"] for each in script if (one := _FUNCTION.fullmatch(each))}
    called = {one["name"]: one["table"] for each in script if (one := _CALLING.fullmatch(each))}
    found = _FUNCTION.fullmatch(statement) or _CALLING.fullmatch(statement)
    return (called[found["name"]],) if found and found["name"] in made and found["name"] in called else None


def gathers_statistics(script: str) -> bool:
    """Return whether a script does nothing but ANALYZE."""
    statements = statements_in(script)
    return bool(statements) and all(_ANALYZE.fullmatch(statement) for statement in statements)


def on_expression(statement: str) -> str:
    """Return the table, as written, of an index on an expression, to analyse; else ""."""
    found = _INDEX.fullmatch(statement)
    if found is None:
        return ""
    depth = 1
    for part in _QUOTED_OR_ONE.findall(found["keys"]):
        depth += {"(": 1, ")": -1}.get(part, 0)
        if depth == 2:
            return found["table"]
        if depth == 0:
            return ""
    return ""


def _needs_statistics(statement: str) -> str:
    for form in (_STATISTICS, _TYPE):
        if found := form.fullmatch(statement):
            return str(found["table"])
    return on_expression(statement)


def table_named(written: str) -> str:
    """Return the name of a table without quotes, and without the schema if that is `public`."""
    parts = re.findall(_PART, written)
    names = [part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in parts]
    return names[-1] if names[:-1] in ([], ["public"]) else ".".join(names)


def _table_of(statement: str, *, billed: bool) -> str:
    for form in _EXECUTED:
        found = form.fullmatch(statement)
        if found is not None:
            return table_named(found["table"]) if "table" in found.groupdict() else ""
    if _DROP_INDEX.fullmatch(statement):
        if billed:
            return ""
        raise Refused(
            "The index costs no measurable time, so dropping it saves disk only. Drop it after its counters "
            "cover at least 30 days on the server and on every replica."
        )
    for form, reason in _REFUSED:
        if form.fullmatch(statement):
            raise Refused(reason)
    raise Refused("uncork does not know how to try it on a copy.")


_SET: Final = re.compile(
    r"""
    (?: SET (?:\s+(?:SESSION|LOCAL))?
      | ALTER \s+ SYSTEM \s+ SET
      | ALTER \s+ (?:DATABASE|ROLE|USER) \s+ (?:"(?:[^"]|"")*"|[\w$:]+)
            (?:\s+IN\s+DATABASE\s+(?:"(?:[^"]|"")*"|[\w$:]+))? \s+ SET
    )
    \s+ (?P<name>[A-Za-z_][\w.]*) \s* (?:=|\bTO\b) \s* (?P<value>\S.*)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_RELOAD: Final = re.compile(r"SELECT\s+pg_reload_conf\s*\(\s*\)", re.IGNORECASE)

_PROVABLE: Final = re.compile(
    r"""enable_\w+ | jit\w* | geqo\w* | work_mem | hash_mem_multiplier | temp_buffers
      | (?:random|seq)_page_cost | cpu_\w+_cost | parallel_\w+_cost | effective_cache_size
      | (?:from|join)_collapse_limit | plan_cache_mode | max_parallel_workers_per_gather
      | max_parallel_workers | min_parallel_\w+_scan_size | default_statistics_target
      | cursor_tuple_fraction | constraint_exclusion | recursive_worktable_factor""",
    re.VERBOSE,
)
"""Settings of the planner and of one statement's memory, which a database can have of its own."""

_DURABILITY: Final = frozenset(
    ["synchronous_commit", "fsync", "full_page_writes", "wal_sync_method", "synchronous_standby_names"]
)
_LIMITS: Final = re.compile(r"\w+_timeout")


def settings_in(sql: str) -> dict[str, str]:
    """Return the settings that SQL sets, by name, if a copy can prove all of them.

    Accepted are ``SET``, ``ALTER SYSTEM SET``, ``ALTER DATABASE ... SET`` and ``ALTER ROLE ... SET``. The
    experiment sets them for the variant's database, and therefore for every statement. Raises Refused
    with the reason.
    """
    found = {}
    for statement in statements_in(sql):
        if reloads(statement):
            continue
        setting = setting_in(statement)
        if setting is None:
            raise Refused("uncork cannot set it for one database of a copy.")
        _refuse(setting[0])
        found[setting[0]] = setting[1]
    if not found:
        raise Refused("It sets nothing.")
    return found


def setting_in(statement: str) -> tuple[str, str] | None:
    """Return the name and the value of the setting that a statement sets; None if it sets none."""
    match = _SET.fullmatch(statement)
    return None if match is None else (match["name"].lower(), _value(match["value"]))


def reloads(statement: str) -> bool:
    """Return whether a statement makes the server read its configuration again."""
    return _RELOAD.fullmatch(statement) is not None


def _refuse(name: str) -> None:
    if name in _DURABILITY:
        raise Refused(
            f"{name} decides which committed changes a crash can lose. uncork shows it as a trade and never "
            "tries it."
        )
    if _LIMITS.fullmatch(name):
        raise Refused(f"{name} makes statements fail after a time; it makes none of them faster.")
    if not _PROVABLE.fullmatch(name):
        raise Refused(
            f"The effect of {name} depends on the memory, the disk and the traffic of the server. Those of a "
            "copy are different, so a verdict would say nothing about the server."
        )


def _value(text: str) -> str:
    plain = text.strip()
    if len(plain) > 1 and plain[0] == plain[-1] == "'":
        return plain[1:-1].replace("''", "'")
    return plain
