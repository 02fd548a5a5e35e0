"""Data checks: queries that run once on each variant's data, such as what a layout no longer guarantees."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from uncork.experiment.spec.fields import Section, needs_sql

__all__ = ["DataCheck"]


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
