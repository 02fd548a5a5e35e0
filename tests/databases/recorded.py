"""Watches of the databases of known health that were recorded once, so that rules can be replayed over them.

The folder has one Parquet file for each table of a watch, with the rows of all databases: the column
``scenario`` names the database. ``watches.parquet`` has the facts of each watch. Columns that uncork has
learned to store since are NULL. ``bench/database_advice.py --record`` records again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uncork.analysis.database.result import database_result
from uncork.model.results.database import DatabaseResult, DatabaseRunFacts
from uncork.model.tables.catalogue import CATALOGUE_TABLES
from uncork.model.tables.database import DATABASE_TABLES
from uncork.model.tables.system import SYSTEM_TABLES
from uncork.report.database.answer import answer_database
from uncork.store.tables import arrow_schema, read_evidence

FOLDER = Path(__file__).parents[1] / "fixtures" / "databases"
RECORDED = (*DATABASE_TABLES, *CATALOGUE_TABLES)
"""The tables that findings rest on; those of the machine are replayed as empty ones."""
TABLES = {table.name: arrow_schema(table) for table in RECORDED}
_SCENARIO = "scenario"
_WATCHES = "watches"


def record(runs: Mapping[str, Path]) -> None:
    """Record the stored watches of databases, by name; those of other databases stay as they are."""
    watches = {name: facts for name, facts in _watches().items() if name not in runs}
    rows = {table: [_others(table, runs)] for table in TABLES}
    for name, run in runs.items():
        watches[name], tables = read_evidence(run, RECORDED)
        for table, own in tables.items():
            rows[table].append(own.append_column(_SCENARIO, pa.array([name] * len(own), pa.string())))
    FOLDER.mkdir(exist_ok=True)
    for table, parts in rows.items():
        _write(table, pa.concat_tables(parts))
    texts = [json.dumps(facts) for facts in watches.values()]
    _write(_WATCHES, pa.table({_SCENARIO: list(watches), "facts": texts}))


def recorded() -> frozenset[str]:
    """Return the names of the databases whose watch was recorded."""
    return frozenset(_watches())


def replay(name: str) -> DatabaseResult:
    """Return the result of a recorded watch, as rules and reports give it now."""
    run = DatabaseRunFacts(name, "complete", "2026-01-01T00:00:00+00:00", 0, "recorded", "uncork", "")
    tables = {table.name: arrow_schema(table).empty_table() for table in SYSTEM_TABLES}
    for table in TABLES:
        rows = _rows(table)
        tables[table] = rows.filter(pc.equal(rows[_SCENARIO], name)).drop_columns(_SCENARIO)
    return answer_database(database_result(run, _watches()[name], tables))


@cache
def _watches() -> Mapping[str, Any]:
    path = FOLDER / f"{_WATCHES}.parquet"
    if not path.is_file():
        return {}
    return {row[_SCENARIO]: json.loads(row["facts"]) for row in pq.read_table(path).to_pylist()}


@cache
def _rows(table: str) -> pa.Table:
    path, schema = FOLDER / f"{table}.parquet", TABLES[table].append(pa.field(_SCENARIO, pa.string()))
    return pq.read_table(path, schema=schema) if path.is_file() else schema.empty_table()


def _others(table: str, runs: Mapping[str, Path]) -> pa.Table:
    rows = _rows(table)
    return rows.filter(pc.invert(pc.is_in(rows[_SCENARIO], pa.array(list(runs), pa.string()))))


def _write(name: str, rows: pa.Table) -> None:
    pq.write_table(rows, FOLDER / f"{name}.parquet", compression="zstd", compression_level=19)
