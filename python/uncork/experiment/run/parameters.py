"""Values for a trial's parameters: the same draw for every arm of a block, from named random streams."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from uncork.errors import SetupError
from uncork.experiment.spec.schema import Generator, Workload

__all__ = ["ROWS_FOR_A_DURATION", "draw"]

ROWS_FOR_A_DURATION = 4096
"""How many parameter rows are drawn for a trial that ends by time; it goes through them again and again."""


def draw(
    workload: Workload,
    pools: Mapping[str, Sequence[str | None]],
    *,
    seed: int,
    stream: str,
    rows: int | None = None,
) -> list[list[str | None]]:
    """Draw the parameter table of one trial, a column a parameter in the order of the file.

    Args:
        workload: whose parameters.
        pools: for each parameter with a query, the first column of its result.
        seed: the experiment's.
        stream: names the draw; the same stream gives the same positions whatever the pool holds.
        rows: how many; by default what the trial executes, or `ROWS_FOR_A_DURATION`.

    Raises:
        SetupError: if a query gave no rows.
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
            raise SetupError(f"parameter {name}: its query gave no rows; there is nothing to draw from")
        positions = _series(parameter.pick, len(pool), rows, parameter.exponent, source)
        columns.append([pool[index] for index in positions])
    return columns


def _generator(stream: str) -> np.random.Generator:
    digest = hashlib.sha256(stream.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def _numbers(generator: Generator, rows: int, source: str) -> list[int]:
    size = generator.max - generator.min + 1
    if generator.kind == "permutation" and size > 50_000_000:
        raise SetupError(f"a permutation of {size} numbers is too large; use uniform")
    drawn = _series(generator.kind, size, rows, generator.exponent, source)
    return [generator.min + value for value in drawn]


@lru_cache(maxsize=16)
def _series(kind: str, size: int, rows: int, exponent: float, source: str) -> list[int]:
    """Return `rows` whole numbers in [0, size) from a named stream; all arms of a block ask for the same."""
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
