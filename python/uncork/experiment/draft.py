"""Write an experiment file about one statement, from the evidence of a stored run. Pure.

Whatever is not known becomes a marked place (`spec.raw_file`), which `uncork plan` reports.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from uncork.experiment.draft_text import comment, multiline, toml
from uncork.experiment.spec.raw_file import fill_in
from uncork.model.database.names import literal, quoted, sql_name
from uncork.model.source_table import SourceColumn, SourceTable
from uncork.model.units import format_count

MOST_ROWS: Final = 200_000
"""Rows of the largest table. Larger tables are scaled down together."""
_INSERT: Final = re.compile(
    r"\s*(?P<into>INSERT\s+INTO\s+[^()]+?\s*\((?P<columns>[^()]*)\))\s*VALUES\s*"
    r"\(\s*(?P<values>:\w+(?:\s*,\s*:\w+)*)\s*\)(?P<rest>[^()]*(?:\bON\s+CONFLICT\b.*)?)$",
    re.IGNORECASE | re.DOTALL,
)
"""An INSERT of one row, each value of which is a parameter."""
_WAYS: Final = (
    ("pipeline", "baseline = true\n", "one statement per row, in a pipeline"),
    ("values", "", "many rows of VALUES per statement"),
    ("unnest", "", "one array per column"),
    ("copy", "", "COPY, then insert"),
)
"""Ways to send many rows: the variant, its mark, and its title."""


@dataclass(frozen=True, slots=True)
class DraftParameter:
    """A parameter of the statement.

    `samples` are values that the run stored. `column` and `table` name what it is compared with, if
    known; `equals` is true for = and IN. With `least` and `most`, it is a random whole number.
    """

    name: str
    samples: tuple[str | None, ...] = ()
    column: str | None = None
    table: str | None = None
    equals: bool = False
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class DraftTable:
    """A table that the statement uses. `source` is its definition, if known; `notes` become comments."""

    name: str
    source: SourceTable | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known about a statement.

    `statement` has ``:name`` for each parameter; None if the run does not hold the statement in a form that
    can be sent; then `seen` shows the form that it holds. `origin` are sentences about where everything comes
    from. `changes` are the variants to compare with the present state: SQL after the set-up, by name. With
    `batch`, a client sends the statement for that many rows in a pipeline, and the variants are ways to send
    them, unless the statement is no INSERT of one row of parameters.
    """

    name: str
    question: str
    seen: str
    statement: str | None
    origin: Sequence[str] = ()
    parameters: Sequence[DraftParameter] = ()
    tables: Sequence[DraftTable] = ()
    changes_rows: bool = False
    changes: Mapping[str, str] = field(default_factory=dict)
    batch: int = 0


def experiment_text(draft: Draft) -> str:
    """Return the experiment file."""
    made = _made_tables(draft)
    row = _INSERT.match(draft.statement or "") if draft.batch and not draft.changes else None
    if row is not None:
        return _batches(draft, row, made)
    parts = [
        comment(*draft.origin),
        f"[experiment]\nname = {toml(draft.name)}\nquestion = {toml(draft.question)}\n",
        *_variants(draft),
        _setup(draft, made, [":change"]),
        _workload(draft, made),
        '[stop]\nprecision = "3%"\npractical = "3%"\nbudget = "2min"\n',
    ]
    return "\n".join(parts)


# ---- ways to send many rows ----


def _batches(draft: Draft, row: re.Match[str], made: Mapping[str, str]) -> str:
    names = [name.strip() for name in row["columns"].split(",")]
    parameters = [name.strip().removeprefix(":") for name in row["values"].split(",")]
    source = next((table.source for table in draft.tables if table.source is not None), None)
    types = {} if source is None else {column.name: column.type for column in source.columns}
    kinds = [types.get(name.strip('"')) or fill_in(f"the type of {name}") for name in names]
    columns = "".join(f"{name} = {toml(kind)}\n" for name, kind in zip(parameters, kinds, strict=True))
    rest = row["rest"].rstrip().rstrip(";")
    sql = f"{row['into']} SELECT {', '.join(parameters)} FROM :batch{rest}"  # noqa: S608
    return "\n".join(
        [
            comment(*draft.origin, "The client sends it in a pipeline, which is no bulk statement."),
            f"[experiment]\nname = {toml(draft.name)}\n"
            f"question = {toml('Which way to send many rows is fastest: ' + draft.seen)}\n",
            *(
                f"[variants.{name}]\n{baseline}title = {toml(title)}\nbatching = {toml(name)}\n"
                for name, baseline, title in _WAYS
            ),
            _setup(draft, made, _defaults(source, names)),
            f"[workloads.statement]\nsql = {multiline(sql)}\noperations = 1\n"
            'state = "reset"                 # undo what each trial changes\n'
            'answer = "may differ"\n'
            + "".join(_parameter(parameter, made) for parameter in draft.parameters),
            f"[workloads.statement.batch]\nrows = {draft.batch}\n\n"
            f"[workloads.statement.batch.columns]\n{columns}",
            '[stop]\nprecision = "3%"\npractical = "3%"\nbudget = "2min"\n',
        ]
    )


def _defaults(source: SourceTable | None, names: Sequence[str]) -> list[str]:
    if source is None:
        return []
    given = {name.strip('"') for name in names}
    left = [
        column
        for column in source.columns
        if column.not_null and not column.generated and column.name not in given
    ]
    table = sql_name(source.name)
    return [
        f"ALTER TABLE {table} ALTER COLUMN {quoted(column.name)} "
        + (
            f"ADD GENERATED BY DEFAULT AS IDENTITY (START WITH {5 * MOST_ROWS});"
            if column.type in ("integer", "bigint")
            else "DROP NOT NULL;"
        )
        for column in left
    ]


def _variants(draft: Draft) -> list[str]:
    column = next((parameter for parameter in draft.parameters if parameter.column and parameter.table), None)
    example = "CREATE INDEX ON orders (customer_id);"
    if column is not None and column.table is not None and column.column is not None:
        example = f"CREATE INDEX ON {sql_name(column.table)} ({quoted(column.column)});"
    changes = draft.changes or {"changed": f"-- {fill_in(f'the change to test, such as {example}')}"}
    return [
        "# Each variant adds its SQL after the set-up. The baseline is the present state.\n"
        '[variants.current]\nbaseline = true\nvalues = { change = "" }\n',
        *(f"[variants.{name}]\nvalues = {{ change = {toml(sql)} }}\n" for name, sql in changes.items()),
        "# A variant can also send another statement, which must return the same rows:\n"
        "# [variants.rewritten]\n"
        '# values = { change = "" }\n'
        '# workloads.statement.sql = "SELECT ..."\n',
    ]


def _made_tables(draft: Draft) -> dict[str, str]:
    sources = {table.name: table.source for table in draft.tables if table.source is not None}
    largest = max((source.rows for source in sources.values()), default=0)
    scale = min(1.0, MOST_ROWS / largest) if largest else 1.0
    found = {}
    for name, source in sources.items():
        rows = max(1, round(source.rows * scale)) if source.rows else 1000
        sql = table_sql(
            source, rows, {parameter.column for parameter in draft.parameters if parameter.column}
        )
        if sql is not None:
            of = f" instead of about {format_count(source.rows)}" if source.rows > rows else ""
            found[name] = f"-- {name}: {format_count(rows)} made-up rows{of}\n{sql}"
    return found


def _setup(draft: Draft, made: Mapping[str, str], last: Sequence[str]) -> str:
    lines = []
    for table in draft.tables:
        lines += [made[table.name]] if table.name in made else _unknown_table(table)
    if not draft.tables:
        lines.append(
            f"-- {fill_in('the tables that the statement uses, with rows')}"
            if draft.statement is None
            else "-- The statement names no table. If it calls a function that reads some, create them here."
        )
    lines.extend(last)
    return f"[setup]\nsql = {multiline(chr(10).join(lines))}\n"


def _unknown_table(table: DraftTable) -> list[str]:
    reason = "" if table.source is None or table.source.unknown is None else f" ({table.source.unknown})"
    if table.source is not None and table.source.unknown is None:
        reason = " (it has a type that uncork cannot make values of)"
    what = f"CREATE TABLE {sql_name(table.name)} and INSERT with realistic rows{reason}"
    return [f"-- {fill_in(what)}", *(f"-- {note}" for note in table.notes)]


def _workload(draft: Draft, made: Mapping[str, str]) -> str:
    statement = draft.statement
    if statement is None:
        statement = f"-- {fill_in('the statement, with :name for each value')}\n-- {draft.seen}"
    state = (
        'state = "reset"                 # undo what each trial changes\n'
        if draft.changes_rows
        else 'state = "keep"\n'
    )
    if re.search(r"\blimit\b", statement, re.IGNORECASE):
        state += '# answer = "may differ"        # if LIMIT chooses among rows that sort equally\n'
    lines = [f"[workloads.statement]\nsql = {multiline(statement)}\n{state}"]
    for parameter in draft.parameters:
        lines.append(_parameter(parameter, made))
    return "".join(lines)


def _parameter(parameter: DraftParameter, made: Mapping[str, str]) -> str:
    """Return a parameter's line: numbers, values of the set-up's rows, stored values, or a place to fill in.

    Made-up rows do not contain the stored values, so that = would find nothing: there the rows decide. They
    are sorted, because every variant must draw the same values whatever its indexes are.
    """
    key = f"parameters.{parameter.name}"
    if parameter.least is not None and parameter.most is not None:
        ends = f"min = {parameter.least}, max = {parameter.most}"
        return f'{key} = {{ generator = {{ kind = "uniform", {ends} }} }}\n'
    samples = tuple(dict.fromkeys(parameter.samples))
    drawn = None
    if parameter.column is not None and parameter.table is not None:
        name = quoted(parameter.column)
        drawn = f"SELECT {name} FROM {sql_name(parameter.table)} WHERE {name} IS NOT NULL ORDER BY 1"  # noqa: S608
    if drawn is not None and (not samples or (parameter.equals and parameter.table in made)):
        return f"{key} = {{ query = {toml(drawn)} }}\n"
    if samples:
        rows = ", ".join(f"({'NULL' if value is None else literal(value)})" for value in samples)
        return f"{key} = {{ query = {toml(f'VALUES {rows}')} }}\n"
    what = fill_in(f"a query that returns the values of :{parameter.name}, such as VALUES (1), (2)")
    return f"{key} = {{ query = {toml(f'-- {what}')} }}\n"


# ---- SQL that creates a copy of a table and fills it with made-up rows that follow its statistics ----
#
# Values depend only on the row's number, so every variant gets the same rows. A column has as many
# distinct values, as many nulls and the same width as in the source. Columns do not depend on each other.


_NUMBERS: Final = "N"
_TEXTS: Final = "S"
_TIMES: Final = "D"
_TEXT: Final = "value "
_MOST_COMMON: Final = 20
_WIDEST: Final = 2000
_HASHED: Final = 2**31
_ALL_DISTINCT: Final = -0.99
"""In pg_stats, -1 means that every row has another value; a sample may find slightly fewer."""


def table_sql(table: SourceTable, rows: int, compared: Collection[str]) -> str | None:
    """Return the SQL that creates a table with `rows` rows; None if a column's type is not known here.

    Columns in `compared` take the source's common values and its range, because the plan depends on them.
    """
    if table.unknown is not None or any(
        _value(column, table, rows, 0, compared) is None for column in table.columns
    ):
        return None
    name = qualified(table)
    lines = [f"    {_definition(column)}" for column in table.columns] + [f"    {key}" for key in table.keys]
    filled = [column for column in table.columns if column.generated is None]
    values = [
        f"       {_value(column, table, rows, place, compared)}"
        for place, column in enumerate(filled, start=1)
    ]
    parts = [f"CREATE SCHEMA IF NOT EXISTS {quoted(table.schema)};"] if table.schema else []
    parts += [_enum(column) for column in table.columns if column.labels]
    parts.append(f"CREATE TABLE {name} (\n" + ",\n".join(lines) + "\n);")
    parts.append(
        f"INSERT INTO {name} ({', '.join(quoted(column.name) for column in filled)})\nSELECT\n"
        + ",\n".join(values)
        + f"\n  FROM generate_series(1, {rows}) AS n;"
    )
    parts += [f"{index};" for index in table.indexes]
    return "\n".join(parts)


def qualified(table: SourceTable) -> str:
    """Return a table's name as SQL writes it."""
    return f"{quoted(table.schema)}.{quoted(table.name)}" if table.schema else quoted(table.name)


def _definition(column: SourceColumn) -> str:
    made = f" GENERATED ALWAYS AS ({column.generated}) STORED" if column.generated is not None else ""
    return f"{quoted(column.name)} {column.type}{made}{' NOT NULL' if column.not_null else ''}"


def _enum(column: SourceColumn) -> str:
    return f"CREATE TYPE {column.type} AS ENUM ({', '.join(map(literal, column.labels))});"


def _value(
    column: SourceColumn, table: SourceTable, rows: int, place: int, compared: Collection[str]
) -> str | None:
    """Return the expression of a column's value in row ``n``; None if its type is not known here."""
    if column.generated is not None:
        return ""
    unique = column.name in table.unique or column.distinct <= _ALL_DISTINCT
    kept = column.name in compared or column.labels or column.category == "B"
    most = _MOST_COMMON if column.bounds else len(column.common)  # without bounds there are no others
    common = column.common[:most] if kept and not unique else ()
    others = max(1, _distinct(column, rows) - len(common))
    number = "n" if unique else f"1 + {_hash(place)} % {others}"
    spread = column.bounds if column.name in compared and not unique else None
    made = _made(column, number, spread, max(others - 1, 1))
    if made is None:
        return None if column.not_null else f"NULL::{column.type}"
    cases, reached = [], 0.0
    for value, share in ((None, column.null_share), *common):
        reached += share
        if share > 0 and (value is not None or not (unique or column.not_null)):
            shown = "NULL" if value is None else f"{literal(value)}::{column.type}"
            cases.append(f"WHEN {_hash(place + 1000)} < {round(reached * _HASHED)} THEN {shown}")
    return f"CASE {' '.join(cases)} ELSE {made} END" if cases else made


def _made(column: SourceColumn, number: str, spread: tuple[str, str] | None, steps: int) -> str | None:
    """Return the expression of a value that is not a common one; None if the type is not known here.

    `number` is an expression that counts distinct values from 1; `spread` the range for `steps` of them.
    """
    if column.labels:
        labels = ", ".join(map(literal, column.labels))
        return f"(ARRAY[{labels}])[1 + ({number}) % {len(column.labels)}]::{column.type}"
    if column.type in _BY_TYPE:
        return _BY_TYPE[column.type].format(number=number, type=column.type)
    if column.category == _TEXTS:
        return _made_text(column, number)
    if column.category == _TIMES and column.type.startswith(("timestamp", "date")):
        return _made_time(column.type, number, spread, steps)
    if column.category == _NUMBERS:
        return _made_number(column.type, number, spread, steps)
    return _BY_CATEGORY.get(column.category, "").format(number=number, type=column.type) or None


_BY_TYPE: Final = {
    "uuid": "md5(({number})::text)::uuid",
    "json": "'{{}}'::{type}",
    "jsonb": "'{{}}'::{type}",
    "bytea": "decode(md5(({number})::text), 'hex')",
}
_BY_CATEGORY: Final = {"A": "'{{}}'::{type}", "B": "({number}) % 2 = 0"}


def _made_number(type_: str, number: str, spread: tuple[str, str] | None, steps: int) -> str:
    if spread is None:
        return f"({number})::{type_}"
    low, high = map(literal, spread)
    return (
        f"({low}::numeric + trunc((({number}) - 1) * ({high}::numeric - {low}::numeric) / {steps}))::{type_}"
    )


def _made_time(type_: str, number: str, spread: tuple[str, str] | None, steps: int) -> str:
    if spread is None:
        return f"(timestamptz '2026-01-01' - ({number}) * interval '1 minute')::{type_}"
    low, high = map(literal, spread)
    span = f"({high}::timestamptz - {low}::timestamptz) / {steps}"
    return f"({low}::timestamptz + (({number}) - 1) * ({span}))::{type_}"


def _made_text(column: SourceColumn, number: str) -> str:
    text = f"{literal(_TEXT)} || ({number})"
    wide = min(max(column.width_bytes - 1, 0), _WIDEST)
    text = f"rpad({text}, {wide}, '.')" if wide > len(_TEXT) + 12 else text
    return f"({text})::{column.type}" if "(" not in column.type else f"left({text}, {_length(column.type)})"


def _length(type_: str) -> int:
    digits = "".join(sign for sign in type_ if sign.isdigit())
    return int(digits) if digits else 1


def _distinct(column: SourceColumn, rows: int) -> int:
    count = column.distinct if column.distinct > 0 else -column.distinct * rows
    return max(1, min(round(count) or rows, rows))


def _hash(place: int) -> str:
    """Return a number from 0 to 2³¹-1 that depends on the row's number and the column's place."""
    return f"(hashint8(n + {place} * 1000003::bigint) & 2147483647)"
