"""Cure the databases of known health: what is proven, and does the proof hold on the database itself?

Each database (``tests/databases``) is watched under its own clients, then cured. If something is proven, its
``up.sql`` is executed on the database, whose clients then run again. That is a measurement apart from the
trials of uncork: the time of the statements at the calls of the first watch, before and after, as
pg_stat_statements counts it. A healthy database must get no change, and a cured one must not become slower.
What only the application can change has no measurement on the database itself: its clients go on as before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psycopg

from databases import SCENARIOS
from databases.scenario import RATE_HZ, SETTINGS, Scenario, applies, at_work, lay_out
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.experiment.spec.sqltext import statements_in
from uncork.model.results.cure import CureResult, Net, Tried, application_changes
from uncork.requests.jobs import CureJob
from uncork.workbench.cure.curing import cure
from uncork.workbench.profile.databases import profile_database

STATEMENTS = """
SELECT queryid, calls, total_exec_time FROM pg_stat_statements s
  JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()
 WHERE s.query NOT LIKE '%%uncork%%' AND toplevel
"""


def main() -> int:
    """Cure each database; print a row of a table in Markdown for each; return 1 if one was harmed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each is watched")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for copying and measuring")
    parser.add_argument("--only", default="", help="databases whose names have these words in them")
    parser.add_argument("--every", type=int, default=1, help="take every n-th database")
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    parser.add_argument("--healthy", action="store_true", help="only databases that must get no change")
    options = parser.parse_args()
    server = EmbeddedServer(dict(SETTINGS))
    server.start()
    harmed = 0
    print("| database | fault | outcome | workload's time | on the database itself | seconds |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    try:
        # A copy does not show what a setting of the whole server costs.
        known = [one for one in SCENARIOS if options.only in one.name and not one.settings]
        known = [one for one in known if not (options.healthy and one.expected)]
        chosen = known[options.first :: options.every]
        for number, scenario in enumerate(chosen):
            if not applies(server, scenario):
                continue
            name = f"db{number}"
            lay_out(server, scenario, name)
            begun = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                row, harm = judged(server, scenario, name, Path(folder), options)
            harmed += harm
            cells = (scenario.name, scenario.expected or "healthy", *row, f"{time.monotonic() - begun:.0f}")
            print(f"| {' | '.join(cells)} |", flush=True)
    finally:
        server.stop()
    return 1 if harmed else 0


def judged(
    server: EmbeddedServer, scenario: Scenario, name: str, folder: Path, options: argparse.Namespace
) -> tuple[tuple[str, str, str], bool]:
    """Return what the table says of a database, and whether the proposal harmed it."""
    conninfo = server.conninfo(name)
    with at_work(server, scenario, name):
        before = times(conninfo, options.seconds, folder)
    (watched,) = folder.glob("database-*")
    job = CureJob(watched, conninfo, "bench", options.budget, 20 << 30, 100 << 20)
    _, result, trouble = cure(folder, job, lambda _: None)
    told = (f"{one.finding.rule}: {one.state}{_why(one)}" for one in result.tried)
    outcome = trouble or "; ".join(told) or "no finding"
    chosen = result.chosen
    if chosen is None or chosen.state != "cured" or chosen.net is None:
        application = application_changes(result)
        texts = (f"{_left(one.net)} {one.text}" for one in application if one.net is not None)
        return (outcome, "; ".join(texts), ""), not scenario.expected and bool(chosen or application)
    apply(conninfo, result, folder)
    with at_work(server, scenario, name):
        after = times(conninfo, options.seconds, None)
    ratio = at_the_same_calls(before, after)
    return (outcome, _left(chosen.net), f"{ratio:.2f}"), ratio > 1.1 or not scenario.expected


def _left(net: Net) -> str:
    """Return the workload's time with a change, as a part of the time before, with its interval."""
    left, least, most = (1 - saved / net.before for saved in (net.saved, net.high, net.low))
    return f"{left:.2f} [{least:.2f}, {most:.2f}]"


def _why(one: Tried) -> str:
    return "" if one.state == "cured" else f" ({one.reason.rstrip('.')})"


def times(conninfo: str, seconds: float, folder: Path | None) -> Mapping[int, tuple[float, float]]:
    """Return calls and mean milliseconds of each statement while clients run; store the watch if asked."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        first = counted(connection)
        if folder is None:
            time.sleep(seconds)
        else:
            profile_database(folder, resolve(conninfo), seconds=seconds, rate_hz=RATE_HZ, command="bench")
        last = counted(connection)
    found = {}
    for query, (calls, spent) in last.items():
        earlier = first.get(query, (0, 0.0))
        if calls > earlier[0]:
            found[query] = (calls - earlier[0], (spent - earlier[1]) / (calls - earlier[0]))
    return found


def counted(connection: psycopg.Connection) -> dict[int, tuple[int, float]]:
    """Return calls and milliseconds of each statement so far."""
    return {query: (calls, spent) for query, calls, spent in connection.execute(STATEMENTS).fetchall()}


def at_the_same_calls(
    before: Mapping[int, tuple[float, float]], after: Mapping[int, tuple[float, float]]
) -> float:
    """Return the ratio of the time of the statements, after to before, at the calls before."""
    both = [one for one in before if one in after]
    earlier = sum(before[one][0] * before[one][1] for one in both)
    return sum(before[one][0] * after[one][1] for one in both) / earlier if earlier else 1.0


def apply(conninfo: str, result: CureResult, folder: Path) -> None:
    """Execute the script that was handed over, one statement at a time."""
    (script,) = folder.glob(f"{result.id}/handed/up.sql")
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in statements_in(script.read_text()):
            connection.execute(statement.encode())


if __name__ == "__main__":
    sys.exit(main())
