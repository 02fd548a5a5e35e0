"""Evidence made by hand for rules of advice: statements with shapes and plans, tables, and a catalogue."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fakes.evidence import BLOCK, a_column, a_table, by_table
from uncork.diagnosis.evidence import Evidence, Existing, Piece, Statement, known_shape
from uncork.model.database.catalogue import Catalogue, ColumnFacts, ConstraintFacts
from uncork.model.database.index import IndexKey, IndexShape
from uncork.model.database.plan import PlanSource, StatementPlan
from uncork.model.database.wait_classes import CPU
from uncork.model.results.database import IndexFacts, TableFacts
from uncork.profile.plans.tree import plan_tree
from uncork.profile.statement_shape import statement_shape


def table(name: str, rows: float | None = 100_000.0, **facts: Any) -> TableFacts:
    """Return a table that was analysed, with 50 rows in a block."""
    live = int(rows or 0)
    known = {"oid": 1, "bytes": live // 50 * BLOCK, "rows": rows, "bloat_bytes": 0, "whole_reads": None}
    return replace(a_table(name, live), **{**known, "analysed_us": 1, "vacuumed_us": 1, **facts})


def column(of_table: str, name: str, distinct: float | None = -1.0, **facts: Any) -> ColumnFacts:
    """Return a column without NULLs."""
    return a_column(name, table=of_table, **{"distinct": distinct, "width": 4.0, **facts})


def index(of_table: str, *columns: str, unique: bool = False) -> Existing:
    """Return a B-tree that exists."""
    name = f"{'_'.join((of_table, *columns))}_idx"
    shape = IndexShape(of_table, tuple(IndexKey(each) for each in columns), unique=unique, name=name)
    facts = IndexFacts(1, name, of_table, "", 8192, 1, 1, None, "", "")
    return Existing(facts, lambda _: shape)


def primary_key(of_table: str, *columns: str) -> ConstraintFacts:
    """Return a primary key."""
    return ConstraintFacts(f"{of_table}_pkey", of_table, 1, "primary key", columns, "")


def plan(text: str, source: PlanSource = "generic", number: int = 0) -> StatementPlan:
    """Return a plan from EXPLAIN's text."""
    root = plan_tree(text)
    assert root is not None
    return StatementPlan(number, source, root, text)


def statement(
    sql: str,
    columns: Mapping[str, Sequence[str]],
    *plans: StatementPlan,
    number: int = 0,
    calls: int = 600,
    ms: float = 50.0,
    rows: float = 1.0,
    blocks: float = 1_000.0,
    **facts: Any,
) -> Statement:
    """Return a statement with its shape; rows, blocks and time are those of each call."""
    totals = {"rows": round(rows * calls), "blocks": round(blocks * calls)}
    shape = statement_shape(sql, columns)
    known = {"sql": sql, "calls": calls, "mean_ns": ms * 1e6, "shape_of": known_shape(shape), "plans": plans}
    return Statement(number, sql.lower(), **{**known, **totals, **facts})


def evidence(
    *statements: Statement,
    tables: Sequence[TableFacts] = (),
    columns: Sequence[ColumnFacts] = (),
    indexes: Sequence[Existing] = (),
    wait_class: str = CPU,
    seconds: float = 60.0,
    **catalogue: Any,
) -> Evidence:
    """Return the evidence of a server whose sessions execute only these statements, on CPU."""
    return Evidence(
        seconds=seconds,
        pieces=tuple(
            Piece(one.number, wait_class, "", "shop", "app", (1.0,) * 20)
            for one in statements
            if not one.nested
        ),
        statements={one.number: one for one in statements},
        tables={one.name: one for one in tables},
        indexes=by_table(indexes),
        catalogue=Catalogue(columns=by_table(columns), **catalogue),
    )
