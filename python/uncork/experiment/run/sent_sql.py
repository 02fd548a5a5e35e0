"""Every SQL text that a run of an experiment sends to PostgreSQL, as the file writes it and as it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from uncork.experiment.plan.order import texts_for
from uncork.experiment.spec.batches import BATCH
from uncork.experiment.spec.pauses import without_pauses
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.sqltext import bind, substitute
from uncork.model.engine import POSTGRESQL
from uncork.model.trial import Cell

_ROWS = f"uncork_rows AS {BATCH}"
"""Stands for the rows of a batch; every way of sending them is a table expression like this."""


class Form(StrEnum):
    """What a text must be: statements; one statement; or statements of which the last returns rows."""

    SCRIPT = "script"
    STATEMENT = "statement"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class SentSql:
    """One text. `key` is its place in the file, `file` the file beside the experiment that contains it.

    `written` is the text of the file; `filled` has the texts of `variant` and a cell in place of names, and
    `sent` in addition ``$1`` in place of parameters.
    """

    key: tuple[str, ...]
    file: str | None
    form: Form
    variant: str | None
    written: str
    filled: str
    sent: str


def sent_sql(spec: Spec) -> Iterator[SentSql]:
    """Yield each text once, for the variants on PostgreSQL.

    Every level of every factor occurs in some text, but not every combination of levels: one level at a time
    differs from the first cell.
    """
    seen: set[tuple[tuple[str, ...], str]] = set()
    for sql in _all(spec):
        if (sql.key, sql.sent) not in seen:
            seen.add((sql.key, sql.sent))
            yield sql


def _all(spec: Spec) -> Iterator[SentSql]:
    for name, database in spec.databases.items():
        yield _plain(("databases", name), database.file, Form.SCRIPT, None, database.sql or "", {})
    for variant in spec.variants:
        if spec.engine(variant) != POSTGRESQL:
            continue
        for cell in _some_cells(spec):
            texts = texts_for(spec, cell, variant)
            yield from _of_variant(spec, variant, texts)
            for workload in spec.workloads:
                if variant in spec.compared(workload):
                    yield from _of_workload(spec, workload, variant, texts)


def _some_cells(spec: Spec) -> Iterator[Cell]:
    first = {factor: next(iter(spec.levels(factor))) for factor in spec.factors}
    yield Cell(tuple(first.items()))
    for factor in spec.factors:
        for level in list(spec.levels(factor))[1:]:
            yield Cell(tuple({**first, factor: level}.items()))


def _of_variant(spec: Spec, variant: str, texts: dict[str, str]) -> Iterator[SentSql]:
    own = spec.variants[variant].setup
    setup, key = (spec.setup, ("setup",)) if own is None else (own, ("variants", variant, "setup"))
    yield _plain(key, setup.file, Form.SCRIPT, variant, setup.sql or "", texts)
    for name, check in spec.checks.items():
        yield _plain(("checks", name), check.file, Form.QUERY, variant, check.sql or "", texts)


def _of_workload(spec: Spec, name: str, variant: str, texts: dict[str, str]) -> Iterator[SentSql]:
    workload, own = spec.workloads[name], spec.variants[variant].workloads.get(name)
    key, place = ("workloads", name), ("variants", variant, "workloads", name)
    if workload.http is None:
        columns = {parameter: number for number, parameter in enumerate(workload.sources)}
        if workload.batch is not None:
            texts = {**texts, BATCH: _ROWS}
        section, base = (workload, key) if own is None else (own, place)
        for written in without_pauses(spec.statements(name, variant)):
            filled = substitute(written, texts)
            sent, _ = bind(filled, columns)
            form = Form.SCRIPT if workload.protocol == "simple" else Form.STATEMENT
            yield SentSql((*base, "sql"), section.file, form, variant, written, filled, sent)
    for written in spec.undoing(name, variant):
        base = key if own is None or own.undo is None else place
        yield _plain((*base, "undo"), None, Form.SCRIPT, variant, written, texts)
    check = spec.check(name, variant)
    if check is not None:
        base = key if own is None or own.check is None else place
        yield _plain((*base, "check"), None, Form.QUERY, variant, check, texts)
    if workload.batch is not None and workload.batch.query is not None:
        yield _plain((*key, "batch", "query"), None, Form.QUERY, variant, workload.batch.query, texts)
    for parameter, source in workload.parameters.items():
        if source.query is not None:
            yield _plain(
                (*key, "parameters", parameter, "query"), None, Form.QUERY, variant, source.query, texts
            )


def _plain(
    key: tuple[str, ...],
    file: str | None,
    form: Form,
    variant: str | None,
    written: str,
    texts: dict[str, str],
) -> SentSql:
    filled = substitute(written, texts)
    return SentSql(key if key[-1] in _LEAVES else (*key, "sql"), file, form, variant, written, filled, filled)


_LEAVES = frozenset({"undo", "check", "query"})
