"""The load of one trial: which statements, with which parameters, by how many clients, for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from uncork.model.records import Record
from uncork.model.server import Target

Form = Literal["scalar", "values", "arrays", "copy"]
"""How one execution takes its rows.

scalar: one row, ``$1``... are its columns. values: ``$1``... are the columns row by row. arrays: ``$k`` is
the k-th column of all rows, as the text of an array. copy: the statement is ``COPY ... FROM STDIN``, and the
rows are its data.
"""


class Batch(Record):
    """How a statement takes several rows of the parameter table in one operation.

    An operation takes ``rows * times`` rows: it executes the statement `times` times, each with the next
    `rows` rows. `pipelined`: all executions are sent without waiting, closed by one ``Sync``; outside a
    transaction block they form one implicit transaction.
    """

    rows: int
    times: int
    form: Form
    pipelined: bool = False


class Statement(Record):
    """One statement of an operation: SQL with ``$1``..., and the parameter column of each placeholder.

    Without a `batch` it takes one row.
    """

    name: str
    sql: str
    columns: tuple[int, ...]
    batch: Batch | None = None


class Pause(Record):
    """How long a client waits before statement `before` of an operation, by number from 0, or at its end."""

    before: int
    ns: int


class LoadRequest(Record):
    """One trial's load. Exactly one of `operations` and `duration_ns` is given.

    `settings` apply to the load's own connections. `prepare`: either when a connection is opened, or with the
    first use, for statements that need what an earlier one of the operation creates. `pin_cpu` is the
    processor that the generator's threads and their backends share; None leaves placement to the kernel.
    `numbers` are the columns of `parameters` that hold whole numbers; a driver with typed values receives
    them as integers. `connect_each`: each operation opens a connection of its own; its latency does not
    include that, but the trial's elapsed time does. `pauses` are in the order of the statements; the latency
    of an operation includes them.
    """

    target: Target
    statements: tuple[Statement, ...]
    parameters: Sequence[Sequence[str | None]]
    transaction: bool
    clients: int
    threads: int
    protocol: Literal["simple", "extended", "prepared"]
    warmup_operations: int
    operations: int | None
    duration_ns: int | None
    deadline_ns: int
    digest: Literal["none", "multiset", "ordered"] = "none"
    pin_cpu: int | None = None
    prepare: Literal["ahead", "first use"] = "ahead"
    settings: Mapping[str, str] = field(default_factory=dict)
    numbers: frozenset[int] = frozenset()
    connect_each: bool = False
    pauses: tuple[Pause, ...] = ()
