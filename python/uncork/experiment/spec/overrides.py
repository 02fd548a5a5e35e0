"""What a variant brings of its own: set-up and SQL in another dialect, or another schema altogether."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from uncork.experiment.spec.fields import Section, needs_sql

__all__ = ["OwnSetup", "OwnWorkload"]


class OwnSetup(Section):
    """The set-up of one variant, in place of `[setup]`'s SQL."""

    sql: str | None = Field(default=None, description="SQL that creates and fills the tables.")
    file: str | None = Field(default=None, description="A file beside this one that holds the SQL.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self


class OwnWorkload(Section):
    """What one variant sends for a workload, in place of the workload's own SQL."""

    sql: str | Annotated[tuple[str, ...], Field(strict=False)] | None = Field(
        default=None, description="One statement, or as many as the workload has."
    )
    file: str | None = Field(default=None, description="A file beside this one that holds one statement.")
    check: str | None = Field(default=None, description="In place of the workload's check; that if absent.")
    undo: str | Annotated[tuple[str, ...], Field(strict=False)] | None = Field(
        default=None, description="In place of the workload's undo; that if absent."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self
