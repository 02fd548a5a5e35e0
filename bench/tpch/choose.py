"""Let uncork choose indexes for TPC-H, and write them to choices.json.

`python bench/tpch/choose.py SERVER --data FOLDER` loads the files of dbgen (`*.tbl`) and watches the
database while two clients send the queries. As its advice says, it creates the first index of each finding
and watches again, until no finding has an index. Each database is watched: without keys, with primary keys,
and with indexes on the foreign keys too.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from workload import HERE, STATES, connected, copy_database, load, working

_WATCHES = 4
_ON = re.compile(r"CREATE INDEX CONCURRENTLY \S+ (ON .*);")


def main() -> None:
    """Load the data, watch the databases, and store what uncork proposes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", help="connection string without a database")
    parser.add_argument("--data", type=Path, help="folder with *.tbl; without, the databases must exist")
    parser.add_argument("--seconds", type=int, default=30, help="how long each watch takes")
    parser.add_argument("--only", default=",".join(STATES), help="databases, separated by commas")
    options = parser.parse_args()
    if options.data:
        load(options.server, options.data)
    path = HERE / "choices.json"
    choices = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for state in options.only.split(","):
        choices.setdefault(state, {})["uncork"] = _watched(options.server, state, options.seconds)
        path.write_text(json.dumps(choices, indent=2) + "\n", "utf-8")


def _watched(server: str, state: str, seconds: int) -> list[str]:
    """Watch a database again and again; return the indexes proposed for it."""
    name, chosen = f"tpch_{state}_uncork", list[str]()
    copy_database(server, f"tpch_{state}", name, ())
    for number in range(_WATCHES):
        found = _advised(server, name, seconds)
        print(f"{state}, watch {number + 1}: {found}", flush=True)
        if not found:
            break
        with connected(server, name) as connection:
            for index in found:
                connection.execute(index.encode())
            connection.execute("VACUUM ANALYZE")
        chosen += found
    return chosen


def _advised(server: str, database: str, seconds: int) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "uncork",
        "advise",
        f"{server}/{database}",
        "--for",
        f"{seconds}s",
        "--json",
    ]
    with working(server, database):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = []
    for finding in json.loads(done.stdout)["findings"]:
        print(f"  {finding['rule']}: {finding['headline']}", flush=True)
        first = next((one["sql"] for one in finding["candidates"] if one.get("sql")), "")
        index = _ON.search(first)
        if index is not None:
            found.append(f"CREATE INDEX {index[1]}")
    return found


if __name__ == "__main__":
    main()
