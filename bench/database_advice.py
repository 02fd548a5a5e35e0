"""Check the findings about databases whose health is known: healthy ones, and at least one sick one a rule.

Each (``tests/databases``) has real clients on a real PostgreSQL, and its own database. All share one server,
except those whose fault is a setting. A healthy database must get no finding and no recommended step; a sick
one must get the right finding first, which names the object and the remedy. With `--pg-bin` the servers are
of an installed PostgreSQL, otherwise embedded ones. With `--table`, print a table in Markdown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from databases import SCENARIOS
from databases.scenario import applies, faults, lay_out, told, watch_scenario
from databases.started import Servers


def main() -> int:
    """Watch each database; print the findings; return 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pg-bin", type=Path, help="programs of an installed PostgreSQL")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each is watched")
    parser.add_argument("--times", type=int, default=1, help="how often each is watched")
    parser.add_argument("--only", default="", help="databases whose names have these words in them")
    parser.add_argument("--table", action="store_true", help="print a table in Markdown")
    options = parser.parse_args()
    wrong = 0
    if options.table:
        print("| database | expected | first finding | share | right |\n|---|---|---|---|---|")
    with Servers(options.pg_bin) as servers:
        for number, scenario in enumerate(one for one in SCENARIOS if options.only in one.name):
            server = servers.of(scenario)
            if not applies(server, scenario):
                continue
            lay_out(server, scenario, f"db{number}")
            for _ in range(options.times):
                begun = time.monotonic()
                with tempfile.TemporaryDirectory() as folder:
                    result = watch_scenario(server, scenario, f"db{number}", Path(folder), options.seconds)
                found = faults(scenario, result)
                wrong += bool(found)
                if options.table:
                    first = result.findings[0] if result.findings else None
                    share = f"{first.bill.share:.0%}" if first is not None and first.bill else ""
                    rule = "" if first is None else first.rule
                    right = "; ".join(found) or "yes"
                    print(
                        f"| {scenario.name} | {scenario.expected} | {rule} | {share} | {right} |", flush=True
                    )
                    continue
                spent = f"{result.server_version}, {time.monotonic() - begun:.1f} s"
                print(f"{'WRONG' if found else 'ok   '}  {scenario.name} ({spent})", flush=True)
                for line in (*(f"! {one}" for one in found), *told(result)):
                    print(f"         {line}")
    print(f"{wrong} wrong", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
