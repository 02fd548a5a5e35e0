"""Evidence for rules about indexes: tables that are scanned, columns with statistics, statements by SQL."""

from fakes.evidence import BLOCK, a_column, a_table, an_index, by_table
from uncork.diagnosis.evidence import Evidence, Existing, Piece, Statement, known_shape
from uncork.model.database.catalogue import Catalogue
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.model.database.wait_classes import CPU
from uncork.model.results.database import ForeignKeyFacts, TableFacts
from uncork.profile.statement_shape import filter_predicates, statement_shape

SECONDS = 60.0


def table(name: str, rows: int = 100_000, blocks: int = 1_000, **facts) -> TableFacts:
    """Return a table that statements scan ten times a second."""
    used = {"seq_scans": 600, "seq_rows": 600 * rows, "whole_reads": 600.0, "autovacuum": True}
    return a_table(name, rows, **{"bytes": blocks * BLOCK, **used, **facts})


def column(of_table: str, name: str, kind: str = "integer", distinct: float | None = -1.0, **facts):
    """Return a column; by default, its values are unique."""
    known = {"null_fraction": 0.0, "width": 4.0, "correlation": 0.0}
    return a_column(name, kind, of_table, distinct=distinct, **{**known, **facts})


def index(definition: str, size: int = 1_000_000, **facts) -> Existing:
    """Return an index in use by its CREATE INDEX statement: ``CREATE INDEX name ON table (...)``."""
    of_table = definition.partition(" ON ")[2].split()[0]
    return an_index(definition, of_table, **{"bytes": size, "scans": 5, "scans_ever": 900, **facts})


def foreign_key(of_table: str, columns: str, referred: str, *, indexed: bool = False) -> ForeignKeyFacts:
    """Return a foreign key."""
    return ForeignKeyFacts(f"{of_table}_{columns}_fkey", of_table, 1, referred, 2, columns, indexed)


def statement(number: int, sql: str, **facts) -> tuple[int, str, dict]:
    """Return a statement for `evidence`: by default, 600 calls that read 1 000 blocks for a row each."""
    return number, sql, {"calls": 600, "rows": 600, "blocks": 600_000, "mean_ns": 50e6, **facts}


def scan(of_table: str, condition: str, rows: float = 5, source: str = "generic", **facts) -> StatementPlan:
    """Return the plan of a sequential scan."""
    known = {"kind": "Seq Scan", "alias": of_table, "index": "", "startup_cost": 0.0, "cost": 2_250.0}
    conditions = (("Filter", condition),)
    node = PlanNode(relation=of_table, rows=rows, **{**known, "width": 40, "conditions": conditions, **facts})
    return StatementPlan(0, source, node, "")


def evidence(statements=(), tables=(), columns=(), indexes=(), foreign_keys=(), **facts) -> Evidence:
    """Return evidence in which each statement keeps one session busy; `busy` changes how many."""
    of_table = {one.name: () for one in tables} | by_table(columns)
    names = {name: [one.name for one in found] for name, found in of_table.items()}
    pieces, found = [], {}
    for number, sql, counts in statements:
        busy = counts.pop("busy", 1.0)
        pieces.append(Piece(number, CPU, "", "shop", "app", (busy,) * 20))
        shape = statement_shape(sql, names)
        assert shape is not None, sql
        found[number] = Statement(number, sql.lower(), sql, shape_of=known_shape(shape), **counts)
    return Evidence(
        **{
            "seconds": SECONDS,
            "pieces": tuple(pieces),
            "statements": found,
            "tables": {one.name: one for one in tables},
            "indexes": by_table(indexes),
            "foreign_keys": tuple(foreign_keys),
            "catalogue": Catalogue(columns=of_table),
            "take_filter": lambda node: filter_predicates(node, names),
            **facts,
        }
    )
