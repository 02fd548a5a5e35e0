"""Questions that are asked once of each variant's data: what a layout no longer guarantees, for example."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from uncork.experiment.spec.fields import Section, needs_sql

__all__ = ["DataCheck"]


class DataCheck(Section):
    """A question asked once of each variant's data, when it is made; reports show what each answers.

    `:name` stands for values of the variant and levels of factors.
    """

    title: str | None = Field(
        default=None, description="How reports call what is counted; the name if absent."
    )
    sql: str | None = Field(default=None, description="A query; the first column of its first row is shown.")
    file: str | None = Field(default=None, description="A file beside this one that holds the query.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self
