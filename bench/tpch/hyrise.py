"""Run Extend and AutoAdmin of hyrise/index_selection_evaluation, each with several limits of space.

peers.py starts this with the folder of a checkout, and sends JSON: the database, the queries, and the
budgets in bytes by an ending for the choice's name. It prints the indexes of each choice as JSON. psycopg2
connects by the variables PGHOST, PGPORT and PGUSER.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

_MOST = 15
"""Indexes that AutoAdmin chooses at most, its default. Its own limit is this number, not the space."""


def main() -> None:
    """Choose, and print the choices."""
    sys.path.insert(0, sys.argv[1])
    from selection.algorithms.auto_admin_algorithm import AutoAdminAlgorithm  # noqa: PLC0415
    from selection.algorithms.extend_algorithm import ExtendAlgorithm  # noqa: PLC0415

    asked = json.load(sys.stdin)
    server, builder = _servers(asked["database"])
    workload = _workload(server, asked["queries"])
    found = {}
    for ending, budget in asked["budgets"].items():
        chosen = ExtendAlgorithm(server, {"budget_MB": budget / 1e6}).calculate_best_indexes(workload)
        found[f"extend{ending}"] = _statements(chosen)
    most = max(asked["budgets"].values(), default=0)
    for number in range(1, _MOST + 1):
        parameters = {"max_indexes": number, "max_indexes_naive": 1}
        chosen = AutoAdminAlgorithm(server, parameters).calculate_best_indexes(workload)
        size = sum(_built_bytes(builder, one) for one in _statements(chosen))
        print(f"{number}: {size / 1e6:.1f} MB, {_statements(chosen)}", file=sys.stderr, flush=True)
        fits = [ending for ending, budget in asked["budgets"].items() if size <= budget]
        found |= {f"autoadmin{ending}": _statements(chosen) for ending in fits}
        if size > most or len(chosen) < number:
            break
    print(json.dumps(found))


def _servers(database: str) -> tuple[Any, Any]:
    """Connect twice, to plan and to build. Existing indexes stay, and sizes are those of built indexes."""
    from selection.dbms.postgres_dbms import PostgresDatabaseConnector  # noqa: PLC0415
    from selection.what_if_index_creation import WhatIfIndexCreation  # noqa: PLC0415

    PostgresDatabaseConnector.drop_indexes = lambda _: None
    server, builder = (PostgresDatabaseConnector(database, autocommit=one) for one in (True, False))
    server.exec_only("SET jit = off")
    sizes: dict[str, int] = {}

    def built(_: Any, oid: int) -> int:
        (index,) = server.exec_fetch(f"SELECT hypopg_get_indexdef({oid})")
        if index not in sizes:
            sizes[index] = _built_bytes(builder, index)
        return sizes[index]

    WhatIfIndexCreation.estimate_index_size = built
    return server, builder


def _built_bytes(builder: Any, index: str) -> int:
    """Build an index, roll back, and return its bytes, and one for each column.

    An entry with two integers is as long as one with one, and Extend divides by the difference of sizes.
    """
    builder.exec_only(index.replace("CREATE INDEX ON", "CREATE INDEX measured ON"))
    (size,) = builder.exec_fetch("SELECT pg_relation_size('measured')")
    builder.rollback()
    return int(size) + index.count(",") + 1


def _workload(server: Any, texts: list[str]) -> Any:
    from selection.workload import Column, Query, Table, Workload  # noqa: PLC0415

    tables: dict[str, Any] = {}
    for table, column in server.exec_fetch(
        "SELECT table_name, column_name FROM information_schema.columns AS c JOIN pg_tables AS t "
        "ON t.tablename = c.table_name AND t.schemaname = 'public' WHERE c.table_schema = 'public' "
        "ORDER BY 1, ordinal_position",
        False,
    ):
        tables.setdefault(table, Table(table)).add_column(Column(column))
    every = [column for table in tables.values() for column in table.columns]
    return Workload(
        [
            Query(number, text, [column for column in every if re.search(rf"\b{column.name}\b", text)])
            for number, text in enumerate(texts, 1)
        ]
    )


def _statements(chosen: Any) -> list[str]:
    return sorted(
        f"CREATE INDEX ON {one.table()} ({', '.join(column.name for column in one.columns)})"
        for one in chosen
    )


if __name__ == "__main__":
    main()
