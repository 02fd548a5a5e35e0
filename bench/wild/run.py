"""Rebuild published cases small, and cure them: does uncork find them, and does it harm the databases?

Each case (``cases.py``) is watched under its own clients, and cured as ``bench/database_cure.py`` does. If a
change is proven, its ``up.sql`` is executed on the database, whose clients then run again. The published
change is also made by hand, on a second database, to show that the case is the published one. Statements that
run seldom are executed before and after. Exit status: 1 if a database was harmed, 2 if uncork did otherwise
than expected.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg
from cases import CASES, Case

from database_cure import apply, at_the_same_calls, times
from databases.scenario import SETTINGS, Scenario, applies, at_work, faults, lay_out
from uncork.analysis.database.result import stored_database_result
from uncork.engines.embedded import EmbeddedServer
from uncork.model.results.cure import CureResult
from uncork.requests.jobs import CureJob
from uncork.workbench.cure.curing import cure

_UNITS = """
SELECT coalesce(sum(calls), 0)::float FROM pg_stat_statements s
  JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()
 WHERE s.query LIKE %s AND s.query NOT LIKE '%%pg_stat_statements%%' AND toplevel
"""
_HEAD = """\
| case | by hand: work per second | first finding | cure | workload's time | on the database itself | right |
|---|---|---|---|---|---|---|"""
_SLOWER = 1.1
"""Ratio of the time of the statements above which a database was harmed, as in bench/database_cure.py."""
_STORM = 2.0
_LEAST_MS = 20.0
"""Ratio and milliseconds from which on a rare statement was harmed."""


@dataclass(frozen=True)
class Row:
    """What the table says of a case. `harmed` and `other` are faults in words, empty if there are none."""

    name: str
    by_hand: str
    found: str
    outcome: str
    saved: str
    measured: str
    harmed: tuple[str, ...]
    other: tuple[str, ...]


def main() -> int:
    """Run the cases; print a row of a table in Markdown for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for copying and measuring")
    parser.add_argument("--only", default="", help="cases whose names have these words in them")
    parser.add_argument(
        "--jit-bin",
        type=Path,
        default=Path("/usr/lib/postgresql/15/bin"),
        help="programs of a PostgreSQL that can compile statements",
    )
    options = parser.parse_args()
    print(_HEAD, flush=True)
    harmed = other = 0
    for compiled in (False, True):
        chosen = [
            one for one in CASES if one.scenario.compiled == compiled and options.only in one.scenario.name
        ]
        for row in _rows(chosen, options, compiled=compiled):
            harmed += bool(row.harmed)
            other += bool(row.other)
            right = "; ".join((*(f"HARMED: {one}" for one in row.harmed), *row.other)) or "yes"
            cells = (row.name, row.by_hand, row.found, row.outcome, row.saved, row.measured, right)
            print(f"| {' | '.join(cells)} |", flush=True)
    print(f"harmed: {harmed}, otherwise than expected: {other}", file=sys.stderr)
    return 1 if harmed else 2 if other else 0


def _rows(cases: Sequence[Case], options: argparse.Namespace, *, compiled: bool) -> Iterator[Row]:
    """Yield the rows of cases on one server; those that it cannot show are named as untested."""
    if not cases:
        return
    if compiled and not (options.jit_bin / "postgres").is_file():
        yield from (_untested(one, f"there is no PostgreSQL in {options.jit_bin}") for one in cases)
        return
    binaries = options.jit_bin if compiled else None
    server = EmbeddedServer(dict(SETTINGS), binaries=binaries)
    server.start()
    try:
        for number, case in enumerate(cases):
            if not applies(server, case.scenario):
                yield _untested(case, "the server cannot compile statements")
                continue
            with tempfile.TemporaryDirectory() as folder:
                yield _row(server, case, f"case{number}", Path(folder), binaries, options.budget)
    finally:
        server.stop()


def _untested(case: Case, reason: str) -> Row:
    return Row(case.scenario.name, "", "untested", reason, "", "", (), ())


def _row(
    server: EmbeddedServer, case: Case, name: str, folder: Path, binaries: Path | None, budget: float
) -> Row:
    """Watch a case, cure it, and make its change by hand."""
    lay_out(server, case.scenario, name)
    conninfo = server.conninfo(name)
    rare = _rare_ms(conninfo, case)
    with at_work(server, case.scenario, name):
        units = _units(conninfo, case)
        before = times(conninfo, case.seconds, folder)
    (watched,) = folder.glob("database-*")
    advice = stored_database_result(watched)
    job = CureJob(watched, conninfo, "bench", budget, 20 << 30, 100 << 20, binaries=binaries)
    _, result, trouble = cure(folder, job, lambda _: None)
    cured = result.chosen is not None and result.chosen.state == "cured"
    harmed: list[str] = []
    saved = measured = ""
    if cured and result.chosen is not None and result.chosen.net is not None:
        apply(conninfo, result, folder)
        with at_work(server, case.scenario, name):
            ratio = at_the_same_calls(before, times(conninfo, case.seconds, None))
        net = result.chosen.net
        left, least, most = (1 - one / net.before for one in (net.saved, net.high, net.low))
        saved, measured = f"{left:.2f} [{least:.2f}, {most:.2f}]", f"{ratio:.2f}"
        harmed += [f"its statements take {ratio:.2f} times as long"] if ratio > _SLOWER else []
        harmed += _storms(rare, _rare_ms(conninfo, case))
    other = _other(case, faults(case.scenario, advice), result, cured=cured)
    for one in result.tried:
        print(f"{one.finding.rule}: {one.finding.headline}: {one.state}: {one.reason}", file=sys.stderr)
    told = "; ".join(f"{one.finding.rule}: {one.state}" for one in result.tried)
    first = advice.findings[0].rule if advice.findings else "none"
    by_hand = _by_hand(server, case, f"{name}_hand", units)
    outcome = trouble or told or "nothing to try"
    return Row(case.scenario.name, by_hand, first, outcome, saved, measured, tuple(harmed), tuple(other))


def _other(case: Case, wrong: Sequence[str], result: CureResult, *, cured: bool) -> Iterator[str]:
    """Yield what uncork did otherwise than expected."""
    if case.expected == "left":
        yield from (
            f"{one.finding.rule} is {one.state}"
            for one in result.tried
            if one.state == "cured" or one.finding.rule in case.silent
        )
        return
    yield from wrong
    expected = [one for one in result.tried if one.finding.rule == case.scenario.expected]
    state = expected[0].state if expected else "not found"
    if case.expected == "cured" and not (cured and state == "cured"):
        yield f"the change is {state}{f': {expected[0].reason}' if expected else ''}"
    if case.expected == "named" and state != "not tried":
        yield f"the change is {state}, but only a person can make it"


def _units(conninfo: str, case: Case) -> float:
    """Return the units of work per second that the clients do now."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        counts = []
        for _ in range(2):
            time.sleep(case.seconds / 4)
            found = connection.execute(_UNITS, (f"%{case.unit}%",)).fetchone()
            counts.append((time.monotonic(), found[0] if found else 0.0))
    (begun, first), (ended, last) = counts
    return (last - first) / (ended - begun)


def _by_hand(server: EmbeddedServer, case: Case, name: str, before: float) -> str:
    """Return how many times as much work is done after the published, or the tempting, change."""
    lay_out(server, case.scenario, name)
    conninfo = server.conninfo(name)
    rare = _rare_ms(conninfo, case)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in case.change:
            connection.execute(statement.format(database=name).encode())
    changed: Scenario = replace(case.scenario, clients=case.clients or case.scenario.clients)
    with at_work(server, changed, name):
        after = _units(conninfo, case)
    gain = f"x {after / before:.2g}" if before else "no work was done before"
    return "; ".join((gain, *_storms(rare, _rare_ms(conninfo, case))))


def _rare_ms(conninfo: str, case: Case) -> list[tuple[str, float]]:
    """Return the milliseconds of each rare statement, which is rolled back."""
    found = []
    with psycopg.connect(conninfo) as connection:
        for statement in case.rare:
            begun = time.monotonic()
            connection.execute(statement.encode())
            found.append((statement, 1000 * (time.monotonic() - begun)))
            connection.rollback()
    return found


def _storms(before: Sequence[tuple[str, float]], after: Sequence[tuple[str, float]]) -> list[str]:
    return [
        f"{statement[:40]} takes {later:.0f} ms instead of {earlier:.0f} ms"
        for (statement, earlier), (_, later) in zip(before, after, strict=True)
        if later > _LEAST_MS and later > _STORM * earlier
    ]


if __name__ == "__main__":
    sys.exit(main())
