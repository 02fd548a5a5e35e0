"""Replay recorded slices as rounds of unequal and of equal length, and compare the intervals.

Reads the slices of stored runs (``.uncork/runs/NAME``), made on a quiet machine or beside other work. In each
cell and workload, the baseline's two arms (A/A, no difference) and the first variant are taken, cycle by
cycle, from a random place on. The same number of consecutive cycles is divided into eight rounds:

* growing: 1, 3, 1, 4, 6, 6, 7 and 8 parts of the whole, as a run of 60 s had them before rounds were sized;
* equal: one eighth each.

A round's unit is the median over its cycles' thirds of the log ratio of mean latencies. The table shows for
both the median half-width of the interval, how often it excludes 1 between equal arms, and how often it
excludes 1 for the variant.

``python bench/round_lengths.py [--cycles 72] [--draws 400] RUN [RUN ...]``
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np

from uncork.stats.effect import Effect, estimate
from uncork.stats.sample import Observation, noise_units, round_units

GROWING = (1, 3, 1, 4, 6, 6, 7, 8)
PARTS = 3
"""A round's cycles are divided into so many blocks."""


def cycles_of(run: Path) -> list[np.ndarray]:
    """Return, for each cell and workload, mean latencies (cycle, arm): baseline, baseline again, variant."""
    rows = duckdb.connect().execute(
        "SELECT cell, workload, variant, again, round, block, cycle, sum_ns / succeeded "
        "FROM read_parquet($files) WHERE succeeded > 0 AND NOT coalesce(aside, false)",
        {"files": str(run / "slices" / "*.parquet")},
    )
    cycles: dict[tuple[str, str], dict[tuple[int, int, int], dict[tuple[str, bool], float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for cell, workload, variant, again, *place, mean_ns in rows.fetchall():
        cycles[cell, workload][tuple(place)][variant, again] = mean_ns
    found = []
    for of_pair in cycles.values():
        arms = {arm for cycle in of_pair.values() for arm in cycle}
        (baseline,) = (variant for variant, again in arms if again)
        others = sorted(variant for variant, _ in arms if variant != baseline)
        wanted = ((baseline, False), (baseline, True), *((other, False) for other in others[:1]))
        whole = [cycle for _, cycle in sorted(of_pair.items()) if set(wanted) <= set(cycle)]
        found.append(np.array([[cycle[arm] for arm in wanted] for cycle in whole]))
    return found


def effects(cycles: np.ndarray, lengths: Sequence[int]) -> tuple[Effect, Effect]:
    """Return the effect of the baseline on itself, and of the variant, in rounds of so many cycles each."""
    observations, begin = [], 0
    for number, length in enumerate(lengths):
        for part, piece in enumerate(np.array_split(cycles[begin : begin + length], min(PARTS, length))):
            for place, name in enumerate(("base", "again", "variant")):
                observations.append(Observation(number, part, name, float(piece[:, place].mean())))
        begin += length
    same = noise_units(observations, baseline="base", again="again")
    other = round_units(observations, baseline="base", again="again", variant="variant")
    return estimate(same, 0.95), estimate(other, 0.95)


def main() -> None:
    """Print a row for each run and way of dividing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--cycles", type=int, default=72)
    parser.add_argument("--draws", type=int, default=400)
    chosen = parser.parse_args()
    lot = np.random.default_rng(1)
    grown = [max(1, round(chosen.cycles * part / sum(GROWING))) for part in GROWING]
    even = [chosen.cycles // len(GROWING)] * len(GROWING)
    print(f"{'run':40} {'rounds':8} {'half-width':>10} {'A/A out':>8} {'variant out':>11}")
    for run in chosen.runs:
        pairs = [cycles for cycles in cycles_of(run) if len(cycles) >= chosen.cycles and cycles.shape[1] == 3]
        for name, lengths in (("growing", grown), ("equal", even)):
            widths, alarms, seen = [], [], []
            for _ in range(chosen.draws if pairs else 0):
                cycles = pairs[lot.integers(len(pairs))]
                begin = lot.integers(len(cycles) - chosen.cycles + 1)
                same, other = effects(cycles[begin : begin + chosen.cycles], lengths)
                widths.append(same.half_width)
                alarms.append(same.excludes_none)
                seen.append(other.excludes_none)
            if widths:
                width = f"{float(np.median(widths)):.1%}"
                print(f"{run.name:40} {name:8} {width:>10} {np.mean(alarms):8.1%} {np.mean(seen):11.1%}")
            else:
                print(f"{run.name:40} has fewer than {chosen.cycles} cycles in each cell")


if __name__ == "__main__":
    main()
