"""Values for a trial's parameters: the same draw for every arm of a block, from named random streams."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from uncork.errors import SetupError
from uncork.experiment.spec import Generator, Parameter, Workload

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
        random = _generator(f"{seed}/{stream}/{name}")
        if parameter.generator is not None:
            columns.append([str(value) for value in _numbers(parameter.generator, rows, random)])
            continue
        pool = pools[name]
        if not pool:
            raise SetupError(f"parameter {name}: its query gave no rows; there is nothing to draw from")
        columns.append([pool[index] for index in _positions(parameter, len(pool), rows, random)])
    return columns


def _generator(stream: str) -> np.random.Generator:
    digest = hashlib.sha256(stream.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def _positions(parameter: Parameter, size: int, rows: int, random: np.random.Generator) -> list[int]:
    return _series(parameter.pick, size, rows, parameter.exponent, random)


def _numbers(generator: Generator, rows: int, random: np.random.Generator) -> list[int]:
    size = generator.max - generator.min + 1
    if generator.kind == "permutation" and size > 50_000_000:
        raise SetupError(f"a permutation of {size} numbers is too large; use uniform")
    return [
        generator.min + value for value in _series(generator.kind, size, rows, generator.exponent, random)
    ]


def _series(kind: str, size: int, rows: int, exponent: float, random: np.random.Generator) -> list[int]:
    """Return `rows` whole numbers in [0, size)."""
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
