"""Queries on variants' data: checks, which run once, and metrics, which run after each trial."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from uncork.experiment.spec.fields import Section, needs_sql

__all__ = ["DataCheck", "OwnMetric"]


class DataCheck(Section):
    """A query that runs once on each variant's data, after set-up. Reports show its result.

    `:name` is replaced by values of the variant and levels of factors.
    """

    title: str | None = Field(default=None, description="Title in reports. Default: the name.")
    sql: str | None = Field(default=None, description="A query; the first column of its first row is shown.")
    file: str | None = Field(default=None, description="A file beside this one with the query.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self


class OwnMetric(Section):
    """A query that runs after each trial, outside its time, in the variant's database: one number per trial.

    `:name` is replaced by values of the variant and levels of factors. Variants do not take turns within a
    block then, so that each number belongs to one trial.
    """

    sql: str | None = Field(
        default=None, description="A query; the first column of its first row is the number."
    )
    file: str | None = Field(default=None, description="A file beside this one with the query.")
    better: Literal["lower", "higher"] = Field(default="lower", description="Which direction is better.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self
