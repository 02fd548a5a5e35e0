"""A captured workload: the statements that a server was seen to execute, how often, and with which values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from uncork.model.records import Record

ValueOrigin = Literal["none", "executed", "seen", "drawn", "rows"]
"""Where the values of parameters come from: the statement has none, executions in a log, texts of sessions
that were seen, the statistics of the columns, or rows of a table that give the values of several columns
together."""

SampleShape = Literal["value", "element", "part", "key", "word"]
"""What a parameter is to the expression that it is compared with: a value of it; an element of an array or a
range; a range, an array with one element, or an object with one key and its value; a key of an object, or a
string in an array of a document; a word of a text that is searched."""


class CalledOperation(Record):
    """A function, an operator or a cast that an expression calls.

    `schema` is empty if the expression does not name it. `operands` are the SQL of the operands; a cast has
    no name, and the SQL of what it casts and of the result.
    """

    kind: Literal["function", "operator", "cast"]
    schema: str
    name: str
    operands: tuple[str, ...]


class SampledExpression(Record):
    """An expression on the columns of one table, whose values some rows of the table can give.

    `table` is named as in the catalogue. `sql` has plain column names and no parameters; `calls` is all that
    it calls.
    """

    table: str
    sql: str
    shape: SampleShape
    calls: tuple[CalledOperation, ...] = ()


class Sample(Record):
    """Values of an expression in some rows, one a row or an element; without values, the reason."""

    values: tuple[str, ...]
    reason: str = ""


class Reference(Record):
    """A table that each sampled row refers to: `columns` of the row have the values of its `keys`."""

    table: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]


class SampledRows(Record):
    """Expressions whose values some rows of `table` give together.

    Each of the `values` is on the columns of `table`, or of a table in `references`.
    """

    table: str
    values: tuple[SampledExpression, ...]
    references: tuple[Reference, ...] = ()


class RowSample(Record):
    """Rows of values, in the order of `SampledRows.values`; without rows, the reason."""

    rows: tuple[tuple[str, ...], ...]
    reason: str = ""


class CapturedStatement(Record):
    """A statement that can be sent again.

    `template` is its number in the run. `sql` has ``$1``, ``$2``, ... for its parameters. `sets` are the
    values of all its parameters together, one tuple an execution, as text; None is NULL. A statement without
    parameters has one empty tuple. `calls_per_hour`, `mean_ns` and `rows` (returned or changed by a call,
    None if unknown) are what the server counted; `share` is a part of the time of all, 0 to 1. `tables` are
    the tables that it reads or changes, with the schema unless it is `public`; `changes` is true if it
    changes rows. With `by_function`, a function that it calls changes them, which its text does not show.
    `settings` are those of the role that executed it, unless all sessions of the database have them.
    """

    template: int
    sql: str
    sets: tuple[tuple[str | None, ...], ...]
    origin: ValueOrigin
    calls_per_hour: float
    mean_ns: float
    share: float
    tables: tuple[str, ...]
    changes: bool
    rows: float | None = None
    by_function: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


class NotCaptured(Record):
    """A statement that cannot be sent again, with the reason, and its part of the time of all, 0 to 1."""

    template: int
    text: str
    reason: str
    share: float


class CapturedWorkload(Record):
    """What a server was seen to execute in `seconds`: the statements, those with the most time first.

    `sessions` is the average number of busy sessions.
    """

    statements: tuple[CapturedStatement, ...]
    missing: tuple[NotCaptured, ...]
    seconds: float
    sessions: float
