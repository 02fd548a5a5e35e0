"""Draw values for a trial's parameters from named random streams, the same for every arm of a block."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from uncork.errors import SetupError
from uncork.experiment.spec.schema import Generator, Workload

ROWS_FOR_A_DURATION = 4096
"""Number of parameter rows drawn for a trial of fixed duration, which uses them repeatedly."""


def draw(
    workload: Workload,
    pools: Mapping[str, Sequence[str | None]],
    *,
    seed: int,
    stream: str,
    rows: int | None = None,
) -> list[list[str | None]]:
    """Draw the parameter table of one trial, one column per parameter in the order of the file.

    Args:
        workload: the workload with the parameters.
        pools: for each parameter with a query, the first column of its result.
        seed: the experiment's seed.
        stream: names the draw; the same stream gives the same positions for any pool.
        rows: number of rows; by default what the trial executes, or `ROWS_FOR_A_DURATION`.

    Raises:
        SetupError: if a query returned no rows.
    """
    if rows is None:
        rows = (
            ROWS_FOR_A_DURATION
            if workload.operations is None
            else workload.operations + workload.warmup_operations
        )
    columns: list[list[str | None]] = []
    for name, parameter in workload.sources.items():
        source = f"{seed}/{stream}/{name}"
        if parameter.generator is not None:
            columns.append([str(value) for value in _numbers(parameter.generator, rows, source)])
            continue
        pool = pools[name]
        if not pool:
            raise SetupError(
                f"parameter {name}: its query returned no rows to draw from; correct the query or the set-up"
            )
        positions = _series(parameter.pick, len(pool), rows, parameter.exponent, source)
        columns.append([pool[index] for index in positions])
    return columns


def _generator(stream: str) -> np.random.Generator:
    digest = hashlib.sha256(stream.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def _numbers(generator: Generator, rows: int, source: str) -> list[int]:
    size = generator.max - generator.min + 1
    if generator.kind == "permutation" and size > 50_000_000:
        raise SetupError(f'a permutation of {size} numbers is too large; use kind = "uniform"')
    drawn = _series(generator.kind, size, rows, generator.exponent, source)
    return [generator.min + value for value in drawn]


@lru_cache(maxsize=16)
def _series(kind: str, size: int, rows: int, exponent: float, source: str) -> list[int]:
    """Return `rows` whole numbers in [0, size) from a named stream; all arms of a block share them."""
    random = _generator(source)
    if kind == "sequence":
        return [int(value) for value in np.arange(rows) % size]
    if kind == "uniform":
        return [int(value) for value in random.integers(0, size, rows)]
    if kind == "permutation":
        turns = -(-rows // size)
        return [
            int(value) for value in np.concatenate([random.permutation(size) for _ in range(turns)])[:rows]
        ]
    ranks = np.arange(1, min(size, 1_000_000) + 1, dtype=float)
    cumulative = np.cumsum(ranks**-exponent)
    drawn = np.searchsorted(cumulative, random.random(rows) * cumulative[-1])
    return [int(value) for value in drawn]
