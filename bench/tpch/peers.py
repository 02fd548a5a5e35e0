"""Let other programs choose indexes for TPC-H, and write them to choices.json.

`python bench/tpch/peers.py SERVER [--hyrise FOLDER] [--dexter FOLDER]` needs the databases of choose.py,
the extension HypoPG on the server, and checkouts of hyrise/index_selection_evaluation (with psycopg2) and of
ankane/dexter (with its gems). Extend and AutoAdmin get a tenth more than the space that HypoPG estimates for
uncork's indexes; dexter has no limit. Indexes have two columns at most, the default of these programs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from workload import HERE, QUERIES, connected

_FOUND = re.compile(r"Index found: public\.(\w+) \(([\w, ]+)\)")
_MOST = 15
_MORE = 1.1
"""Space for other programs, relative to that of uncork's indexes: no choice fits exactly."""


def main() -> None:
    """Let the programs choose for both databases, and store what they choose."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", help="connection string without a database")
    parser.add_argument("--hyrise", type=Path, help="checkout of hyrise/index_selection_evaluation")
    parser.add_argument("--dexter", type=Path, help="checkout of ankane/dexter")
    options = parser.parse_args()
    path = HERE / "choices.json"
    choices = json.loads(path.read_text("utf-8"))
    for state, found in choices.items():
        with connected(options.server, f"tpch_{state}") as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS hypopg")
        budget = round(_MORE * _estimated(options.server, state, found["uncork"]))
        print(f"{state}: {budget / 1e6:.1f} MB", flush=True)
        if options.hyrise:
            found["extend"] = _extend(options.server, state, options.hyrise, budget)
            found["autoadmin"] = _auto_admin(options.server, state, options.hyrise, budget)
        if options.dexter:
            found["dexter"] = _dexter(options.server, state, options.dexter)
        for name, indexes in found.items():
            print(
                f"  {name}: {_estimated(options.server, state, indexes) / 1e6:.1f} MB, {indexes}", flush=True
            )
    path.write_text(json.dumps(choices, indent=2) + "\n", "utf-8")


def _estimated(server: str, state: str, indexes: list[str]) -> int:
    """Return the bytes that HypoPG estimates for indexes."""
    with connected(server, f"tpch_{state}") as connection:
        total = 0
        for index in indexes:
            row = connection.execute(
                "SELECT hypopg_relation_size(indexrelid) FROM hypopg_create_index(%s)", (index,)
            ).fetchone()
            total += 0 if row is None else row[0]
        return total


def _extend(server: str, state: str, checkout: Path, budget: int) -> list[str]:
    return _hyrise(server, state, checkout, "extend", {"budget_MB": budget / 1e6, "max_index_width": 2})


def _auto_admin(server: str, state: str, checkout: Path, budget: int) -> list[str]:
    """Return the largest choice within the budget: AutoAdmin's limit is a number of indexes, not of bytes."""
    best = list[str]()
    for number in range(1, _MOST + 1):
        parameters = {"max_indexes": number, "max_indexes_naive": 1, "max_index_width": 2}
        found = _hyrise(server, state, checkout, "autoadmin", parameters)
        if _estimated(server, state, found) > budget or found == best:
            break
        best = found
    return best


def _hyrise(server: str, state: str, checkout: Path, name: str, parameters: dict[str, float]) -> list[str]:
    request = {"database": f"tpch_{state}", "name": name, "parameters": parameters, "queries": QUERIES}
    parts = conninfo_to_dict(server)
    place = {"PGHOST": parts.get("host"), "PGPORT": parts.get("port"), "PGUSER": parts.get("user")}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(checkout)],
        input=json.dumps(request),
        env=os.environ | {key: str(value) for key, value in place.items() if value},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return list(json.loads(done.stdout.splitlines()[-1]))


def _dexter(server: str, state: str, checkout: Path) -> list[str]:
    done = subprocess.run(
        [
            *("ruby", "-I", str(checkout / "lib"), str(checkout / "exe" / "dexter")),
            *(f"{server}/tpch_{state}", "--input-format", "sql"),
            str(HERE / "queries.sql"),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return [f"CREATE INDEX ON {table} ({columns})" for table, columns in _FOUND.findall(done.stdout)]


_RUN = """
import json, re, sys
sys.path.insert(0, sys.argv[1])
from selection.algorithms.auto_admin_algorithm import AutoAdminAlgorithm
from selection.algorithms.extend_algorithm import ExtendAlgorithm
from selection.dbms.postgres_dbms import PostgresDatabaseConnector
from selection.workload import Column, Query, Table, Workload

asked = json.load(sys.stdin)
PostgresDatabaseConnector.drop_indexes = lambda self: None  # primary keys stay
server = PostgresDatabaseConnector(asked["database"], autocommit=True)
server.exec_only("SET jit = off")
tables = {}
for table, column in server.exec_fetch(
    "SELECT table_name, column_name FROM information_schema.columns AS c JOIN pg_tables AS t "
    "ON t.tablename = c.table_name AND t.schemaname = 'public' WHERE c.table_schema = 'public' "
    "ORDER BY 1, ordinal_position", False
):
    tables.setdefault(table, Table(table)).add_column(Column(column))
every = [column for table in tables.values() for column in table.columns]
queries = [
    Query(number, text, [column for column in every if re.search(rf"\\b{column.name}\\b", text)])
    for number, text in enumerate(asked["queries"], 1)
]
kind = {"extend": ExtendAlgorithm, "autoadmin": AutoAdminAlgorithm}[asked["name"]]
found = kind(server, asked["parameters"]).calculate_best_indexes(Workload(queries))
print(json.dumps(sorted(
    f"CREATE INDEX ON {one.table()} ({', '.join(column.name for column in one.columns)})" for one in found
)))
"""

if __name__ == "__main__":
    main()
