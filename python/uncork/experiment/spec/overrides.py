"""What a variant overrides: set-up and SQL in another dialect, or a different schema."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from uncork.experiment.spec.fields import Section, needs_sql

__all__ = ["OwnSetup", "OwnWorkload"]


class OwnSetup(Section):
    """The set-up of one variant, instead of `[setup]`'s SQL."""

    sql: str | None = Field(default=None, description="SQL that creates and fills the tables.")
    file: str | None = Field(default=None, description="A file beside this one with the SQL.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self


class OwnWorkload(Section):
    """The SQL that one variant sends for a workload, instead of the workload's own SQL."""

    sql: str | Annotated[tuple[str, ...], Field(strict=False)] | None = Field(
        default=None, description="As many statements as the workload has."
    )
    file: str | None = Field(default=None, description="A file beside this one with one statement.")
    check: str | None = Field(default=None, description="Replaces the workload's check.")
    undo: str | Annotated[tuple[str, ...], Field(strict=False)] | None = Field(
        default=None, description="Replaces the workload's undo."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self
