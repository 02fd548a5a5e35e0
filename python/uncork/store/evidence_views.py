"""Query the evidence of an experiment's variants as tables; each row names its cell, workload and variant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncork.errors import StoreError
from uncork.model.tables.stacks import EVIDENCE, STACK_TABLES
from uncork.model.trial import Cell

if TYPE_CHECKING:
    import duckdb


def add_evidence(connection: duckdb.DuckDBPyConnection, folder: Path) -> frozenset[str]:
    """Add the evidence of a run's variants to a connection; if collected twice, the newest.

    Returns the names of the tables and views that were created; empty if the run has no evidence.

    Raises:
        StoreError: if the run's files are damaged.
    """
    import duckdb  # noqa: PLC0415 -- see `store.query`

    places = list(_newest(folder / "evidence"))
    if not places:
        return frozenset()
    names = [column.name for column in EVIDENCE.columns]
    try:
        connection.execute(_view(EVIDENCE.name, names, [_row(number, facts) for number, _, facts in places]))
        made = {EVIDENCE.name}
        for table in STACK_TABLES:
            files = [
                (str(path), number, *_place(facts))
                for number, seen, facts in places
                for path in sorted((seen / table.name).glob("*.parquet"))[-1:]
            ]
            if files:
                connection.execute(_joined(table.name, files))
                made.add(table.name)
    except duckdb.Error as error:
        raise StoreError(f"{folder}: damaged: {error}") from error
    return frozenset(made)


def _newest(folder: Path) -> Iterator[tuple[int, Path, Mapping[str, Any]]]:
    found: dict[tuple[str, str, str], tuple[int, Path, Mapping[str, Any]]] = {}
    for path in sorted(folder.glob("*/facts.json")):
        try:
            facts = json.loads(path.read_text())
            found[_place(facts)] = (int(path.parent.name), path.parent, facts)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}: damaged: {error}") from error
    yield from sorted(found.values(), key=lambda one: one[0])


def _place(facts: Mapping[str, Any]) -> tuple[str, str, str]:
    place = facts["place"]
    return Cell.of(place["cell"]).name, place["workload"], place["variant"]


def _row(number: int, facts: Mapping[str, Any]) -> tuple[Any, ...]:
    method, calls = facts["method"], facts["syscalls"]
    user, system = facts["cpu_ns"] or (None, None)
    load = (facts["load"]["operations"], facts["load"]["elapsed_ns"])
    watched = (method["watched_ns"], method["tool"], user, system)
    missing = json.dumps(method["cannot_see"], ensure_ascii=False)
    return (number, *_place(facts), *load, *watched, calls["by"], calls["watched_ns"], missing)


def _joined(name: str, files: Sequence[tuple[Any, ...]]) -> str:
    listed = ", ".join(_literal(path) for path, *_ in files)
    values = _values(files)
    return (
        f"CREATE VIEW {name} AS SELECT evidence, cell, workload, variant, seen.* "  # noqa: S608 -- quoted
        f"FROM read_parquet([{listed}], filename = true) AS seen "
        f"JOIN (VALUES {values}) AS place(filename, evidence, cell, workload, variant) USING (filename)"
    )


def _view(name: str, columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    listed = ", ".join(f'"{column}"' for column in columns)
    return f"CREATE VIEW {name} AS SELECT * FROM (VALUES {_values(rows)}) AS seen({listed})"  # noqa: S608


def _values(rows: Iterable[Sequence[Any]]) -> str:
    return ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)


def _literal(value: str | int | None) -> str:
    if value is None:
        return "NULL::BIGINT"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
