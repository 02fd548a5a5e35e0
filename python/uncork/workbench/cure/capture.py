"""Capture the workload of a watched server: its statements, how often they ran, and with which values."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from uncork.analysis.database.result import stored_database_evidence
from uncork.analysis.log.evidence import log_seconds
from uncork.analysis.log.result import stored_log_result
from uncork.diagnosis.evidence import Evidence
from uncork.engines.watch.connection import ServerWatch
from uncork.engines.watch.planner import Planner
from uncork.errors import UsageError
from uncork.model.database.catalogue import Catalogue, ColumnFacts
from uncork.model.database.plan import ColumnValues
from uncork.model.database.role_settings import settings_of_role
from uncork.model.database.workload import (
    CapturedStatement,
    CapturedWorkload,
    NotCaptured,
    RowSample,
    Sample,
)
from uncork.model.results.log import LogResult, TemplateFacts
from uncork.model.tables.database import DATABASE_TABLES
from uncork.profile.deltas import statement_deltas, statement_key
from uncork.profile.parameter_values import with_values
from uncork.profile.server_templates import own_keys
from uncork.profile.workload.building import (
    Execution,
    SeenStatement,
    build_workload,
    columns_of,
    rows_of,
    samples_of,
    typed_texts,
    without_statements,
)
from uncork.profile.workload.known import Known
from uncork.store.layout import watch_of
from uncork.store.tables import read_evidence

Row = Mapping[str, Any]
Wanted = TypeVar("Wanted")
Found = TypeVar("Found")

_CHECKED: Final = 3
"""Sets of values of each statement that the server plans."""
_LONGEST_NS: Final = 20_000_000_000
"""Time after which no further statement is planned, and no further expression is sampled."""
_MOST_STORED: Final = 10
"""The most common values, and bounds, that a watch stores of a column."""


def captured_workload(
    folder: Path, conninfo: str | None, log: Path | None = None, *, for_copy: bool = False
) -> CapturedWorkload:
    """Return the workload of a stored watch of a server, and of a stored run of its logs if there is one.

    Values come from executions in the log, else from texts of sessions, else from the columns' statistics.
    With `conninfo`, uncork reads the statistics that the run does not hold from that database. It reads a few
    rows for parameters that are compared with an expression, an array or a document, of which there are no
    statistics, and for values of several columns that one row has together. It has the server plan, but not
    execute, each statement with its first values. A statement that the server refuses is missing. With
    `for_copy`, statements are missing too that a copy cannot execute as the server does: those to which row
    security adds a condition, because a copy has no policies.

    Raises:
        UsageError: if the run is of another kind.
        StoreError: if a run is damaged.
        ConnectError: if the server cannot be reached.
        ServerCrash: if the server goes away.
    """
    folder = _watched(folder)
    evidence = stored_database_evidence(folder)[1]
    facts, tables = read_evidence(folder, DATABASE_TABLES)
    logged = None if log is None else stored_log_result(log)
    statements = _statements(facts, tables, evidence, logged)
    secured = _secured(evidence) if for_copy else {}
    known = Known(
        evidence.catalogue,
        {name: evidence.rows(name) for name in evidence.tables},
        _unique_keys(evidence),
    )
    if conninfo is None:
        workload = build_workload(statements, known, evidence.seconds, evidence.sessions)
        return without_statements(_with_settings(workload, evidence), secured)
    with closing(ServerWatch(conninfo)) as server, server.planning() as planner:
        wanted = [column for column in columns_of(statements, known) if _is_incomplete(column)]
        values = planner.column_values([(_qualified(column.table), column.name) for column in wanted])
        known = replace(known, catalogue=_with_values(known.catalogue, wanted, values))
        known = replace(
            known,
            samples=_in_time(samples_of(statements, known), planner.sample, Sample),
            together=_in_time(rows_of(statements, known), planner.sample_rows, RowSample),
        )
        workload = build_workload(statements, known, evidence.seconds, evidence.sessions)
        workload = without_statements(_with_settings(workload, evidence), secured)
        return _checked(workload, planner, known)


def _with_settings(workload: CapturedWorkload, evidence: Evidence) -> CapturedWorkload:
    """Return a workload whose statements have the settings of the role that executed them most."""
    settings = evidence.catalogue.role_settings
    statements = (
        replace(statement, settings=settings_of_role(settings, evidence.statements[statement.template].role))
        if statement.template in evidence.statements
        else statement
        for statement in workload.statements
    )
    return replace(workload, statements=tuple(statements))


def _secured(evidence: Evidence) -> Mapping[int, str]:
    """Return why a copy cannot execute statements under row security, by template."""
    found = {}
    for number, statement in evidence.statements.items():
        for policy in statement.policies[:1]:
            found[number] = (
                f"policy {policy.name} of table {policy.table} adds a condition to it for role "
                f"{statement.role}, "
                "and uncork executes statements on a copy as another role"
            )
    return found


def _watched(folder: Path) -> Path:
    """Return the folder of the watch: the run, or the part of a profile of a service."""
    watch = watch_of(folder)
    if watch is None:
        raise UsageError(
            f"run {folder.name} holds no watch of a database; name a run of `uncork profile db` or "
            "`uncork advise`"
        )
    return watch


def _statements(
    facts: Mapping[str, Any], tables: Mapping[str, Any], evidence: Evidence, log: LogResult | None
) -> list[SeenStatement]:
    """Return the statements of clients in the watched database, except uncork's own."""
    own = own_keys(facts["watch"])
    rows = tables["database_statements"].to_pylist()
    moments = ([row for row in rows if row["moment"] == moment] for moment in ("before", "after"))
    counted: dict[int, list[Row]] = defaultdict(list)
    nested: set[int] = set()
    for row in statement_deltas(*moments):
        here = row["database"] == facts["server"]["database"] and statement_key(row) not in own
        if here and row["template"] is not None:
            if row["toplevel"] is False:
                nested.add(row["template"])
            else:
                counted[row["template"]].append(row)
    texts: dict[int, list[str]] = defaultdict(list)
    for row in tables["database_texts"].to_pylist():
        texts[row["template"]].append(row["text"])
    executed = _executed(log)
    found = []
    for row in tables["database_templates"].to_pylist():
        number = row["template"]
        mine = executed.get(row["identity"])
        one = SeenStatement(
            number,
            row["text"],
            row["sql"] or "",
            calls=None,
            execution_ns=0.0,
            executed=() if mine is None else _executions(mine),
            seen=tuple(texts[number]),
        )
        if number in counted:
            of_template = counted[number]
            found.append(
                replace(
                    one,
                    calls=sum(row["calls"] for row in of_template),
                    execution_ns=sum(row["execution_ns"] for row in of_template),
                    rows=sum(row["rows"] for row in of_template),
                )
            )
        elif number not in nested and not counted:
            found.append(_from_log(one, mine, evidence, log))
    return found


def _executed(log: LogResult | None) -> Mapping[str | None, TemplateFacts]:
    templates = () if log is None else log.templates
    return {template.identity: template for template in templates if template.identity is not None}


def _executions(template: TemplateFacts) -> tuple[Execution, ...]:
    return tuple(
        Execution(example.text, example.parameters) for example in template.examples if example.kind != "plan"
    )


def _from_log(
    statement: SeenStatement, template: TemplateFacts | None, evidence: Evidence, log: LogResult | None
) -> SeenStatement:
    """Return a statement with the counts of a log, for a server that does not count."""
    sampled = evidence.all_of(statement.template) * evidence.seconds * 1e9
    if template is None or log is None:
        return replace(statement, execution_ns=sampled)
    part = evidence.seconds / max(1e-3, log_seconds(log))
    calls = max(1, round(template.executions * part))
    return replace(statement, calls=calls, execution_ns=template.sum_ns * part)


def _unique_keys(evidence: Evidence) -> Mapping[str, Sequence[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for constraint in evidence.catalogue.constraints:
        if constraint.kind in ("primary key", "unique"):
            found[constraint.table].append(constraint.columns)
    for table, indexes in evidence.indexes.items():
        for index in indexes:
            shape = index.shape
            if shape is not None and shape.unique and all(shape.columns):
                found[table].append(shape.columns)
    return {table: tuple(dict.fromkeys(keys)) for table, keys in found.items()}


def _is_incomplete(column: ColumnFacts) -> bool:
    return len(column.common) in (0, _MOST_STORED) or len(column.bounds) in (0, _MOST_STORED)


def _qualified(table: str) -> str:
    return table if "." in table else f"public.{table}"


def _with_values(
    catalogue: Catalogue,
    wanted: Iterable[ColumnFacts],
    values: Mapping[tuple[str, str], ColumnValues],
) -> Catalogue:
    """Return the catalogue with the values that were read of columns."""
    columns = {name: list(found) for name, found in catalogue.columns.items()}
    for column in wanted:
        read = values.get((_qualified(column.table), column.name))
        if read is None or not (read.common or read.bounds):
            continue
        of_table = columns[column.table]
        common = tuple(zip(read.common, read.frequencies, strict=False))
        of_table[of_table.index(column)] = replace(column, common=common, bounds=read.bounds)
    return replace(catalogue, columns={name: tuple(found) for name, found in columns.items()})


def _in_time(
    wanted: Iterable[Wanted], read: Callable[[Wanted], Found], without: Callable[[tuple[()], str], Found]
) -> Mapping[Wanted, Found]:
    """Return what is read of some rows; after a while, the others are not read."""
    begun = time.monotonic_ns()
    return {
        one: read(one)
        if time.monotonic_ns() - begun < _LONGEST_NS
        else without((), f"reading the rows of other expressions took {_LONGEST_NS / 1e9:.0f} s")
        for one in wanted
    }


def _checked(workload: CapturedWorkload, planner: Planner, known: Known) -> CapturedWorkload:
    """Return the workload without the statements that the server refuses to plan with their first values.

    If it refuses parameters of unknown type, a text with casts that it plans replaces the statement's.
    """
    begun = time.monotonic_ns()
    kept: list[CapturedStatement] = []
    missing = list(workload.missing)
    for statement in workload.statements:
        reason = "" if time.monotonic_ns() - begun > _LONGEST_NS else _refusal(statement, planner)
        typed = _typed(statement, planner, known) if reason else None
        if typed is not None:
            kept.append(typed)
        elif reason:
            words = f'the server refuses it with the captured values: "{reason}"'
            missing.append(NotCaptured(statement.template, statement.sql, words, statement.share))
        else:
            kept.append(statement)
    missing.sort(key=lambda one: (-one.share, one.template))
    return replace(workload, statements=tuple(kept), missing=tuple(missing))


def _typed(statement: CapturedStatement, planner: Planner, known: Known) -> CapturedStatement | None:
    """Return a statement with types of parameters with which the server plans it; None if there are none."""
    for text in dict.fromkeys(typed_texts(statement.sql, statement.sets, known)):
        typed = replace(statement, sql=text)
        if not _refusal(typed, planner):
            return typed
    return None


def _refusal(statement: CapturedStatement, planner: Planner) -> str:
    """Return the server's reason to refuse a statement; empty if it plans it.

    A missing privilege is no reason, because others may execute the statement, nor is a timeout.
    """
    for values in list(dict.fromkeys(statement.sets))[:_CHECKED]:
        with planner.using(statement.settings):
            sql = with_values(statement.sql, dict(enumerate(values, start=1)), planner.literal)
            explained = planner.explain(sql, as_json=True)
        if explained is None:
            return "it has no plan"
        if explained.output is None and not explained.denied and "timeout" not in explained.reason:
            return explained.reason
    return ""
