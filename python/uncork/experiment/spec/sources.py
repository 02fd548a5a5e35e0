"""Sources of a workload's parameter values and of the rows of its batches."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from uncork.experiment.spec.fields import Section, Word


class Generator(Section):
    """Numbers for a parameter, generated from the seed."""

    kind: Literal["sequence", "uniform", "zipfian", "permutation"] = Field(
        description="sequence: min, min+1, ... ; uniform: evenly random; zipfian: skewed to low numbers; "
        "permutation: every number once in random order, then again in a new order."
    )
    min: int = 1
    max: int
    exponent: float = Field(default=1.1, gt=0, lt=10, description="Skew of zipfian.")

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.max < self.min:
            raise ValueError(f"max ({self.max}) must not be below min ({self.min})")
        return self


class Parameter(Section):
    """Values for `:name` in a workload: rows of a query's result, or generated numbers."""

    query: str | None = Field(
        default=None, description="SQL that runs on the variant's own data; uses the first column."
    )
    pick: Literal["sequence", "uniform", "zipfian", "permutation"] = Field(
        default="uniform", description="How rows of the query's result are chosen."
    )
    exponent: float = Field(default=1.1, gt=0, lt=10, description="Skew of pick = zipfian.")
    generator: Generator | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.query is None) == (self.generator is None):
            raise ValueError("give exactly one of query and generator")
        return self


class BatchFacts(Section):
    """Makes one operation one batch of rows. The variants' `batching` decides how the rows are sent.

    The SQL reads the rows from `:batch` as from a table: `INSERT INTO item SELECT id, name FROM :batch`.
    Or it names the columns: `:id` is a value, or with unnest the array of all values.
    """

    rows: int | str = Field(description='Rows per batch, or a factor: ":rows".')
    columns: dict[Word, str] = Field(
        min_length=1, description='Columns of `:batch` with their types: { id = "integer" }.'
    )
    query: str | None = Field(
        default=None,
        description="SQL on the variant's own data that returns these columns; batches use its rows in turn. "
        "Without it, each column is one of the workload's parameters.",
    )
    least_rows: int = Field(
        default=1,
        ge=1,
        description="Small batches are repeated until a trial has at least this many rows. Warm-up uses at "
        "most this many.",
    )
