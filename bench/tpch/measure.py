"""Measure the queries of TPC-H with the indexes in choices.json.

`python bench/tpch/measure.py SERVER` builds each choice in a copy of the database, and executes all queries
in rounds: each query with all choices, in random order, then the next query. It prints a table in Markdown:
the number and the size of the indexes, the time of all queries, its ratio to no indexes, and uncork's ratio
to each, with 95 % intervals over the rounds. Queries are cancelled after `--limit` seconds, so the ratio to
no indexes is the largest that it can be. Choices with the same indexes share a copy.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from workload import HERE, QUERIES, STATES, connected, copy_database, index_sizes, seconds_of

from uncork.stats.interval import confidence_sequence

_NONE = "none"
Times = dict[str, list[list[float]]]


def main() -> None:
    """Build the copies, measure them, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", help="connection string without a database")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--limit", type=float, default=10.0, help="longest a query may take, in seconds")
    parser.add_argument("--only", default=",".join(STATES), help="databases, separated by commas")
    parser.add_argument("--names", help="choices, separated by commas; default: all")
    parser.add_argument("--times", type=Path, help="where to store all times as JSON")
    options = parser.parse_args()
    choices = json.loads((HERE / "choices.json").read_text("utf-8"))
    stored = {}
    for state in options.only.split(","):
        mine = {_NONE: [], **choices[state]}
        mine = {name: mine[name] for name in (options.names or ",".join(mine)).split(",")}
        sizes, times = _measured(options, state, mine)
        stored[state] = times
        _print(state, mine, sizes, times, options.limit)
    if options.times:
        options.times.write_text(json.dumps(stored), "utf-8")


def _measured(
    options: argparse.Namespace, state: str, choices: dict[str, list[str]]
) -> tuple[dict[str, int], Times]:
    """Return the bytes of each choice's indexes, and the seconds of each of its rounds and queries."""
    first = {tuple(indexes): name for name, indexes in reversed(choices.items())}
    chance, rounds, sizes = random.Random(1), Times(), dict[str, int]()
    with connected(options.server, f"tpch_{state}") as connection:
        base = index_sizes(connection)
    with ExitStack() as opened:
        open_ = {}
        for indexes, name in first.items():
            copy_database(options.server, f"tpch_{state}", f"tpch_{state}_{name}", indexes)
            open_[name] = opened.enter_context(connected(options.server, f"tpch_{state}_{name}"))
            built = index_sizes(open_[name])
            sizes[name] = sum(size for index, size in built.items() if index not in base)
            rounds[name] = []
            for query in QUERIES:
                seconds_of(open_[name], query, 1.0)  # fills the caches
        for _ in range(options.rounds):
            for each in rounds.values():
                each.append([])
            for query in QUERIES:
                for name in chance.sample(list(open_), len(open_)):
                    rounds[name][-1].append(seconds_of(open_[name], query, options.limit))
    same = {name: first[tuple(indexes)] for name, indexes in choices.items()}
    return {name: sizes[other] for name, other in same.items()}, {
        name: rounds[other] for name, other in same.items()
    }


def _print(
    state: str, choices: dict[str, list[str]], sizes: dict[str, int], times: Times, limit: float
) -> None:
    totals = {name: [sum(one) for one in rounds] for name, rounds in times.items()}
    print(f"\n| {state} | indexes | size | all queries | ratio to none | uncork's ratio to it |")
    print("|---|---|---|---|---|---|")
    for name, mine in totals.items():
        cut = sum(median(one[place] for one in times[name]) >= limit for place in range(len(QUERIES)))
        print(
            f"| {name} | {len(choices[name])} | {sizes[name] / 1e6:.1f} MB "
            f"| {_interval(mine, 's')}{f', {cut} cancelled' if cut else ''} "
            f"| {_ratio(mine, totals.get(_NONE))} | {_ratio(totals.get('uncork'), mine)} |"
        )
    print(f"\n| query | {' | '.join(times)} |\n|---|{'---|' * len(times)}")
    for place in range(len(QUERIES)):
        each = [median(one[place] for one in rounds) * 1000 for rounds in times.values()]
        print(f"| {place + 1} | {' | '.join(f'{one:.0f} ms' for one in each)} |", flush=True)


def _ratio(one: list[float] | None, other: list[float] | None) -> str:
    """Return the geometric mean of the rounds' ratios, with its interval."""
    if not one or not other:
        return ""
    return "1" if one == other else _interval([mine / its for mine, its in zip(one, other, strict=True)])


def _interval(values: list[float], unit: str = "") -> str:
    """Return the geometric mean of the rounds, with its interval."""
    units = [math.log(one) for one in values]
    low, high = confidence_sequence(units, 0.95)
    number, end = f"{math.exp(sum(units) / len(units)):.3f}", f" {unit}" if unit else ""
    return f"{number}{end} [{math.exp(low):.3f}, {math.exp(high):.3f}]"


if __name__ == "__main__":
    main()
