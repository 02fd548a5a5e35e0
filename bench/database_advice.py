"""Check the findings about databases whose health is known: healthy ones, and at least one sick one a rule.

Each (``tests/databases``) has real clients on a real PostgreSQL, and its own database. All share one server,
except those whose fault is a setting. A healthy database must get no finding and no recommended step; a sick
one must get the right finding first, which names the object and the remedy. With `--pg-bin` the servers are
of an installed PostgreSQL, otherwise embedded ones. With `--table`, print a table in Markdown. With
`--record`, record the watches with right findings for the tests (``tests/databases/recorded.py``). With
`--logs`, judge each database by its server's log alone (``tests/databases/logged.py``). There, a sick one
without a finding about time is no failure, because a log does not show every fault; a wrong finding is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from databases import SCENARIOS
from databases.logged import LOGGING, log_scenario, log_told
from databases.recorded import record
from databases.scenario import Scenario, applies, faults, judged, lay_out, told, watch_scenario
from databases.started import Servers
from uncork.engines.embedded import EmbeddedServer
from uncork.model.database.finding import Finding


def main() -> int:
    """Watch each database; print the findings; return 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pg-bin", type=Path, help="programs of an installed PostgreSQL")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each is watched")
    parser.add_argument("--times", type=int, default=1, help="how often each is watched")
    parser.add_argument("--only", default="", help="databases whose names have these words in them")
    parser.add_argument("--table", action="store_true", help="print a table in Markdown")
    parser.add_argument("--logs", action="store_true", help="judge the server's log instead of watching it")
    parser.add_argument("--record", action="store_true", help="record the watches for the tests")
    options = parser.parse_args()
    if options.record:
        return _record(options)
    judge = partial(_from_log if options.logs else _watched, seconds=options.seconds)
    wrong = silent = 0
    if options.table:
        print("| database | expected | first finding | share | right |\n|---|---|---|---|---|")
    with Servers(options.pg_bin, LOGGING if options.logs else None) as servers:
        for number, scenario in enumerate(one for one in SCENARIOS if options.only in one.name):
            server = servers.of(scenario)
            if not applies(server, scenario):
                continue
            lay_out(server, scenario, f"db{number}")
            for _ in range(options.times):
                begun = time.monotonic()
                findings, found, lines = judge(server, scenario, f"db{number}")
                unseen = options.logs and bool(scenario.expected) and not any(one.bill for one in findings)
                silent += unseen
                wrong += bool(found) and not unseen
                if options.table:
                    _print_row(scenario, findings, "not in the log" if unseen else "; ".join(found) or "yes")
                    continue
                word = "SILENT" if unseen else "WRONG" if found else "ok   "
                print(f"{word}  {scenario.name} ({time.monotonic() - begun:.1f} s)", flush=True)
                for line in (*(f"! {one}" for one in found), *lines):
                    print(f"         {line}")
    print(f"{wrong} wrong" + (f", {silent} without a finding about time" * options.logs), file=sys.stderr)
    return 1 if wrong else 0


Judged = tuple[Sequence[Finding], list[str], Iterable[str]]
"""The findings, what is wrong with them, and what a reader sees first."""


def _watched(server: EmbeddedServer, scenario: Scenario, name: str, *, seconds: float) -> Judged:
    with tempfile.TemporaryDirectory() as folder:
        result = watch_scenario(server, scenario, name, Path(folder), seconds)
    return result.findings, faults(scenario, result), told(result)


def _record(options: argparse.Namespace) -> int:
    """Record each database; watch one again, and longer, whose findings are wrong."""
    runs: dict[str, Path] = {}
    chosen = [scenario for scenario in SCENARIOS if options.only in scenario.name]
    with tempfile.TemporaryDirectory() as folder, Servers(options.pg_bin) as servers:
        try:
            for number, scenario in enumerate(chosen):
                server = servers.of(scenario)
                if not applies(server, scenario):
                    continue
                lay_out(server, scenario, f"db{number}")
                for attempt in range(1, 4):
                    root = Path(folder) / f"{number}-{attempt}"
                    seconds = attempt * options.seconds
                    found = faults(scenario, watch_scenario(server, scenario, f"db{number}", root, seconds))
                    if not found:
                        (runs[scenario.name],) = (root / "runs").glob("database-*")
                        break
                print("ok   " if scenario.name in runs else "WRONG", scenario.name, *found, flush=True)
        finally:
            record(runs)
    return 0 if len(runs) == len(chosen) else 1


def _from_log(server: EmbeddedServer, scenario: Scenario, name: str, *, seconds: float) -> Judged:
    result = log_scenario(server, scenario, name, seconds)
    return result.findings, judged(scenario, result.findings), log_told(result)


def _print_row(scenario: Scenario, findings: Sequence[Finding], right: str) -> None:
    first = findings[0] if findings else None
    share = f"{first.bill.share:.0%}" if first is not None and first.bill else ""
    rule = "" if first is None else first.rule
    print(f"| {scenario.name} | {scenario.expected} | {rule} | {share} | {right} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
