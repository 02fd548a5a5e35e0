"""SQL that creates a copy of a table and fills it with made-up rows that follow its statistics. Pure.

Values depend only on the row's number, so every variant gets the same rows. A column has as many distinct
values, as many nulls and the same width as in the source. Columns do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from uncork.model.database.names import literal, quoted
from uncork.model.source_table import SourceColumn, SourceTable

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
    """Return a text that counts: columns of other names have the same texts, so that joins find rows."""
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
