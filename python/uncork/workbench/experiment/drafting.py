"""Write an experiment about the statement of a stored run: gather the evidence, and hand it to the draft."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from uncork.analysis.database.result import stored_database_result
from uncork.analysis.log.result import stored_log_result
from uncork.engines.source_tables import read_tables
from uncork.errors import UsageError
from uncork.experiment.draft import Draft, DraftParameter, DraftTable
from uncork.experiment.spec.sqltext import bind, names_in
from uncork.model.redaction import redact
from uncork.model.results.log import LogLoop, TemplateFacts
from uncork.model.source_table import SourceColumn, SourceTable
from uncork.model.tables.database import DATABASE_TABLES
from uncork.model.units import count_words, format_duration, share_text
from uncork.profile.statement_parts import StatementParts, logged_values, statement_parts
from uncork.store.layout import read_manifest
from uncork.store.loads import LoadReader
from uncork.store.tables import read_evidence, read_rows
from uncork.workbench.cure.capture import captured_workload

_SET: Final = re.compile(r"^\s*\\set\s+(\w+)\s+random\(([^,()]+),([^,()]+)\)\s*$", re.MULTILINE)
_PRODUCT: Final = re.compile(r"-?\d+(?:\s*\*\s*\d+)*")
_NAME: Final = 30
_MOST_BATCH: Final = 1_000
"""Most rows of an experiment's batch."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A statement of a run: the form that the run holds, and its parts if the grammar accepts it.

    `cost` says how much time it took. `samples` are values of parameters by name. `batch` is the most rows
    for which a client sends it in a pipeline, 0 if it does not.
    """

    number: int
    text: str
    parts: StatementParts | None
    cost: str
    samples: Mapping[str, tuple[str | None, ...]]
    ranges: Mapping[str, tuple[int, int]]
    batch: int = 0


def draft_of(folder: Path, wanted: str | None, dsn: str | None, changes: Mapping[str, str]) -> Draft:
    """Return the draft of an experiment about a statement of a stored run.

    Args:
        folder: the run: of logs, of a watched server, or a load of SQL.
        wanted: a template's number, or a part of its text; None for the statement that took the most time.
        dsn: a database to read the definitions of the statement's tables from.
        changes: SQL of variants, by name.

    Raises:
        UsageError: if the run holds no statements, or none that is `wanted`.
        ConnectError: if the database cannot be reached.
        StoreError: if the run is damaged.
    """
    manifest = read_manifest(folder)
    if manifest.kind not in _READERS:
        raise UsageError(
            f"run {manifest.id} is of kind {manifest.kind}, which holds no statements; name a run of "
            "`uncork profile logs`, `uncork profile db`, `uncork load sql` or `uncork load http`"
        )
    read = partial(_of_database, dsn=dsn) if manifest.kind == "database" else _READERS[manifest.kind]
    chosen = _choose(read(folder), wanted, manifest.id)
    names = () if chosen.parts is None else chosen.parts.tables
    sources = {} if dsn is None else dict(zip(names, read_tables(dsn, names), strict=True))
    if manifest.kind == "load":
        sources = {**_pgbench(folder, names), **sources}
    notes = _notes(folder) if manifest.kind == "database" else {}
    origin = [
        f"Written by `uncork new --from {manifest.id}`: the statement that {chosen.cost}.",
        'Fill in each place marked with "FILL IN"; `uncork plan` lists the places that are left.',
    ]
    if dsn is not None and names:
        origin.append(
            f"The tables are those of {redact(dsn)}. Their rows are made up from the planner's statistics; "
            "common values and ranges of the columns that the statement compares are those of the source."
        )
    return Draft(
        name=_word(names[0] if names else "statement"),
        question=f"What makes this statement faster: {_short(chosen.text)}",
        seen=" ".join(chosen.text.split()),
        statement=None if chosen.parts is None else chosen.parts.text,
        origin=origin,
        parameters=_parameters(chosen, sources),
        tables=[
            DraftTable(name, sources.get(name), notes.get(name.rpartition(".")[2], ())) for name in names
        ],
        changes_rows=chosen.parts is not None and chosen.parts.changes,
        changes=changes,
        batch=min(_MOST_BATCH, chosen.batch),
    )


def _choose(candidates: Iterator[_Candidate], wanted: str | None, run: str) -> _Candidate:
    """Return the wanted statement; by default, the first that an experiment can send."""
    known = list(candidates)
    if wanted is not None:
        text = " ".join(wanted.split()).lower()
        fits = [candidate for candidate in known if text == str(candidate.number)] or [
            candidate for candidate in known if text in " ".join(candidate.text.split()).lower()
        ]
        if not fits:
            raise UsageError(
                f"--template {wanted}: run {run} has no such statement; `uncork report {run}` lists them"
            )
        return fits[0]
    if not known:
        raise UsageError(f"run {run} holds no statements with their time")
    return next(
        (candidate for candidate in known if candidate.parts is not None and candidate.parts.tables), known[0]
    )


def _parameters(chosen: _Candidate, sources: Mapping[str, SourceTable]) -> list[DraftParameter]:
    """Return the parameters; if a column has no table in the text, the catalogue names it."""
    if chosen.parts is None:
        return []
    found = []
    for part in chosen.parts.parts:
        having = [
            name
            for name, source in sources.items()
            if part.column in {column.name for column in source.columns}
        ]
        table = having[0] if part.table is None and len(having) == 1 else part.table
        own = DraftParameter(part.name, chosen.samples.get(part.name, ()), part.column, table, part.equals)
        if part.name in chosen.ranges:
            least, most = chosen.ranges[part.name]
            own = replace(own, least=least, most=most)
        found.append(own)
    return found


# ---- runs of logs ----


def _of_log(folder: Path) -> Iterator[_Candidate]:
    result = stored_log_result(folder)
    for template in result.templates:
        shown = [example for example in template.examples if example.kind != "plan"]
        parts: StatementParts | None = None
        samples: dict[str, list[str | None]] = {}
        for example in shown:
            found = statement_parts(example.text)
            if found is None:
                continue
            parts = parts or found
            if found.text == parts.text:
                for name, value in _values(found, example.parameters):
                    samples.setdefault(name, []).append(value)
        parts = parts or statement_parts(template.text, template=True)
        share = share_text(template.share)
        cost = f"takes {format_duration(template.sum_ns)} in this log, {share} of the time of all"
        stored = {name: tuple(values) for name, values in samples.items()}
        batch = _pipelined(template, result.loops)
        yield _Candidate(template.number, template.text, parts, cost, stored, {}, batch)


def _pipelined(template: TemplateFacts, loops: Sequence[LogLoop]) -> int:
    """Return for how many rows a client sends a statement in a pipeline, at most."""
    row = template.repetition
    own = [
        loop_template.longest
        for loop in loops
        if loop.pipelined
        for loop_template in loop.templates
        if loop_template.number == template.number
    ]
    return max((*own, row.longest if row is not None and row.pipelined else 0))


def _values(parts: StatementParts, parameters: str) -> Iterator[tuple[str, str | None]]:
    logged = logged_values(parameters)
    for part in parts.parts:
        if part.number is None:
            yield part.name, part.value
        elif part.number in logged:
            yield part.name, logged[part.number]


# ---- runs of watched servers ----


def _of_database(folder: Path, dsn: str | None = None) -> Iterator[_Candidate]:
    """Yield the statements, with types and values of the captured workload where there are any."""
    captured = {statement.template: statement for statement in captured_workload(folder, dsn).statements}
    for template in stored_database_result(folder).templates:
        own = captured.get(template.number)
        parts = None if own is None else statement_parts(own.sql)
        samples = {}
        if own is not None and parts is not None and all(part.number is not None for part in parts.parts):
            samples = {
                part.name: tuple(dict.fromkeys(values[part.number - 1] for values in own.sets))
                for part in parts.parts
                if part.number is not None
            }
        else:
            parts = statement_parts(template.text, template=True)
        share = share_text(template.share)
        cost = f"kept {template.sessions:.2g} sessions busy on average, {share} of the time of all"
        yield _Candidate(template.number, template.text, parts, cost, samples, {})


def _notes(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return what a watch stored about each table: its rows and its indexes."""
    _, tables = read_evidence(folder, DATABASE_TABLES)
    indexes: dict[int, list[str]] = {}
    for row in tables["database_indexes"].to_pylist():
        if row["moment"] == "after":
            indexes.setdefault(row["table_oid"], []).append(f"{row['definition']};")
    return {
        row["name"]: (
            f"about {max(row['rows'] or 0, 0):.0f} rows; its indexes:",
            *indexes.get(row["oid"], ["none"]),
        )
        for row in tables["database_relations"].to_pylist()
        if row["moment"] == "after"
    }


# ---- loads ----


def _of_load(folder: Path) -> Iterator[_Candidate]:
    plan = LoadReader(folder).plan()
    variables = {name: str(value) for name, value in (plan.get("variables") or {}).items()}
    ranges = {}
    for script in plan["scripts"]:
        for name, least, most in _SET.findall(script.get("text", "")):
            low, high = _number(least, variables), _number(most, variables)
            if low is not None and high is not None and low <= high:
                ranges[name] = (low, high)
    rows = [row for row in read_rows(folder, "load_statements") if row["kind"] == "statement"]
    total = sum(row["sum_ns"] for row in rows) or 1
    for place, row in enumerate(sorted(rows, key=lambda row: -int(row["sum_ns"]))):
        names = {name: number for number, name in enumerate(sorted(names_in(row["name"])))}
        bound, used = bind(row["name"], names)
        parts = statement_parts(bound)
        order = {number: name for name, number in names.items()}
        written = (
            {}
            if parts is None
            else {part.name: order[used[part.number - 1]] for part in parts.parts if part.number is not None}
        )
        executed = count_words(row["executions"], "execution")
        cost = f"takes {share_text(row['sum_ns'] / total)} of the load's time, in {executed}"
        own = {part: ranges[name] for part, name in written.items() if name in ranges}
        literal = (
            {}
            if parts is None
            else {part.name: (part.value,) for part in parts.parts if part.value is not None}
        )
        yield _Candidate(place, row["name"], parts, cost, literal, own)


def _number(text: str, variables: Mapping[str, str]) -> int | None:
    """Return the value of a number or a product of numbers and variables; None if it is more than that."""
    filled = re.sub(r":(\w+)", lambda name: variables.get(name[1], "?"), text).strip()
    if _PRODUCT.fullmatch(filled) is None:
        return None
    value = 1
    for factor in filled.split("*"):
        value *= int(factor)
    return value


def _pgbench(folder: Path, names: Sequence[str]) -> dict[str, SourceTable]:
    """Return the definitions of pgbench's tables, at the scale of a load."""
    scale = int((LoadReader(folder).plan().get("variables") or {}).get("scale", 1))

    def whole(name: str, distinct: float = 0.0, *, not_null: bool = False) -> SourceColumn:
        return SourceColumn(name, "integer", "N", not_null, distinct=distinct)

    tables = (
        ("branches", 1, (whole("bid", not_null=True), whole("bbalance")), 88),
        ("tellers", 10, (whole("tid", not_null=True), whole("bid", scale), whole("tbalance")), 84),
        ("accounts", 100_000, (whole("aid", not_null=True), whole("bid", scale), whole("abalance")), 84),
    )
    found = {}
    for name, each, columns, width in tables:
        filler = SourceColumn("filler", f"character({width})", "S", distinct=1, width_bytes=width)
        key = columns[0].name
        found[f"pgbench_{name}"] = SourceTable(
            f"pgbench_{name}",
            "",
            each * scale,
            (*columns, filler),
            (f"PRIMARY KEY ({key})",),
            frozenset({key}),
        )
    return {name: table for name, table in found.items() if name in names}


# ---- words ----


def _word(table: str) -> str:
    """Return a name for the experiment, from a table."""
    word = re.sub(r"[^A-Za-z0-9_-]", "-", table.rpartition(".")[2])[:_NAME]
    return word if word[:1].isalpha() else f"statement-{word}".rstrip("-")


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 100 else f"{words[:97]}..."


_READERS: Final = {"log": _of_log, "database": _of_database, "load": _of_load}
