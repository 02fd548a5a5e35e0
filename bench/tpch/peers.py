"""Let other programs choose indexes for TPC-H, and write them to choices.json.

`python bench/tpch/peers.py SERVER [--hyrise FOLDER] [--dexter FOLDER]` needs the databases of choose.py,
the extension HypoPG on the server, and checkouts of hyrise/index_selection_evaluation (with psycopg2) and
of ankane/dexter (with its gems). dexter has no limit of space. Extend and AutoAdmin choose twice: once with
the space of uncork's indexes, and once with that of dexter's (`extend-large`, `autoadmin-large`). Indexes
have two columns at most, the default of these programs. The sizes are those of built indexes, because
HypoPG's estimates ignore that a B-tree stores equal keys once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from workload import HERE, QUERIES, STATES, connected

_FOUND = re.compile(r"Index found: public\.(\w+) \(([\w, ]+)\)")
_MORE = 1.1
"""Space for other programs, relative to that of the indexes compared with: no choice fits exactly."""
Choices = dict[str, list[str]]


def main() -> None:
    """Let the programs choose for each database, and store what they choose."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", help="connection string without a database")
    parser.add_argument("--hyrise", type=Path, help="checkout of hyrise/index_selection_evaluation")
    parser.add_argument("--dexter", type=Path, help="checkout of ankane/dexter")
    parser.add_argument("--only", default=",".join(STATES), help="databases, separated by commas")
    options = parser.parse_args()
    path = HERE / "choices.json"
    choices = json.loads(path.read_text("utf-8"))
    for state in options.only.split(","):
        found = choices[state]
        with connected(options.server, f"tpch_{state}") as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS hypopg")
        if options.dexter:
            found["dexter"] = _dexter(options.server, state, options.dexter)
        if options.hyrise:
            found |= _hyrise(options.server, state, options.hyrise, found)
        for name, indexes in found.items():
            size = _built_bytes(options.server, state, indexes)
            print(f"{state}, {name}: {size / 1e6:.1f} MB, {indexes}", flush=True)
        path.write_text(json.dumps(choices, indent=2) + "\n", "utf-8")


def _built_bytes(server: str, state: str, indexes: Sequence[str]) -> int:
    """Return the bytes of indexes, which are built in a transaction that is rolled back."""
    total = 0
    with connected(server, f"tpch_{state}") as connection:
        for index in indexes:
            with connection.transaction(force_rollback=True):
                named = index.replace("CREATE INDEX ON", "CREATE INDEX measured ON")
                connection.execute(named.encode())
                row = connection.execute("SELECT pg_relation_size('measured')").fetchone()
                total += 0 if row is None else row[0]
    return total


def _hyrise(server: str, state: str, checkout: Path, found: Choices) -> Choices:
    """Return the choices of Extend and AutoAdmin, with the space of uncork's indexes and of dexter's."""
    spaces = {"": "uncork", "-large": "dexter"}
    asked = {
        "database": f"tpch_{state}",
        "queries": QUERIES,
        "budgets": {
            ending: _MORE * _built_bytes(server, state, found[other])
            for ending, other in spaces.items()
            if found.get(other)
        },
    }
    parts = conninfo_to_dict(server)
    place = {"PGHOST": parts.get("host"), "PGPORT": parts.get("port"), "PGUSER": parts.get("user")}
    done = subprocess.run(
        [sys.executable, str(HERE / "hyrise.py"), str(checkout)],
        input=json.dumps(asked),
        env=os.environ | {key: str(value) for key, value in place.items() if value},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


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


if __name__ == "__main__":
    main()
