"""Measure the queries of TPC-H with the indexes in choices.json.

`python bench/tpch/measure.py SERVER` builds each choice in a copy of the database, and executes all queries
in rounds, in which the choices come in random order. It prints a table in Markdown: the size of the indexes,
the time of a round, its ratio to no indexes, and uncork's ratio to each, with 95 % intervals over the rounds.
Queries are cancelled after `--limit` seconds, so the ratio to no indexes is the largest that it can be.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from workload import HERE, connected, copy_database, index_bytes, timed

from uncork.stats.interval import confidence_sequence

_UNLIMITED = (17, 20)
"""Queries that take minutes without indexes."""
Times = dict[str, list[list[float]]]


def main() -> None:
    """Build the copies, measure them, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", help="connection string without a database")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--limit", type=float, default=10.0, help="longest a query may take, in seconds")
    parser.add_argument("--only", default="plain,keyed", help="databases, separated by commas")
    parser.add_argument("--times", type=Path, help="where to store all times as JSON")
    options = parser.parse_args()
    choices = json.loads((HERE / "choices.json").read_text("utf-8"))
    stored = {}
    for state in options.only.split(","):
        sizes, times = _measured(options, state, {"none": [], **choices[state]})
        stored[state] = times
        _print(state, sizes, times)
    if options.times:
        options.times.write_text(json.dumps(stored), "utf-8")


def _measured(
    options: argparse.Namespace, state: str, choices: dict[str, list[str]]
) -> tuple[dict[str, int], Times]:
    """Return the size of each choice, and the seconds of each of its rounds and queries."""
    chance, times = random.Random(1), Times()
    for name, indexes in choices.items():
        copy_database(options.server, f"tpch_{state}", f"tpch_{state}_{name}", indexes)
        times[name] = []
    with ExitStack() as opened:
        open_ = {
            name: opened.enter_context(connected(options.server, f"tpch_{state}_{name}")) for name in choices
        }
        sizes = {name: index_bytes(connection) for name, connection in open_.items()}
        for connection in open_.values():
            timed(connection, 1.0)  # fills the caches
        for _ in range(options.rounds):
            for name in chance.sample(list(open_), len(open_)):
                times[name].append(timed(open_[name], options.limit))
    return sizes, times


def _print(state: str, sizes: dict[str, int], times: Times) -> None:
    print(f"\n| {state} | indexes | one round | to none | without 17 and 20, to none | uncork to it |")
    print("|---|---|---|---|---|---|")
    for name, rounds in times.items():
        others = [_without(each) for each in rounds]
        print(
            f"| {name} | {sizes[name] / 1e6:.1f} MB | {median(map(sum, rounds)):.2f} s "
            f"| {_ratio(list(map(sum, rounds)), list(map(sum, times['none'])))} "
            f"| {_ratio(others, [_without(each) for each in times['none']])} "
            f"| {_ratio(list(map(sum, times['uncork'])), list(map(sum, rounds)))} |"
        )
    print(f"\n| query | {' | '.join(times)} |\n|---|{'---|' * len(times)}")
    for number in range(22):
        each = [median(one[number] for one in rounds) * 1000 for rounds in times.values()]
        print(f"| {number + 1} | {' | '.join(f'{one:.0f} ms' for one in each)} |", flush=True)


def _without(times: list[float]) -> float:
    return sum(time for number, time in enumerate(times, 1) if number not in _UNLIMITED)


def _ratio(one: list[float], other: list[float]) -> str:
    """Return the geometric mean of the rounds' ratios, with its interval."""
    if one == other:
        return "1"
    units = [math.log(mine / its) for mine, its in zip(one, other, strict=True)]
    low, high = confidence_sequence(units, 0.95)
    return f"{math.exp(sum(units) / len(units)):.3f} ({math.exp(low):.3f} to {math.exp(high):.3f})"


if __name__ == "__main__":
    main()
