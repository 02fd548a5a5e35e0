"""The set-up, and what a variant overrides: set-up and SQL in another dialect, or a different schema."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from uncork.experiment.spec.fields import Nanoseconds, Section, needs_sql, refuse_password


class Setup(Section):
    """How a variant's data is made, once for each variant and cell."""

    sql: str | None = Field(default=None, description="SQL that creates and fills the tables.")
    file: str | None = Field(default=None, description="A file beside this one with the SQL.")
    copy_of: Annotated[str, AfterValidator(refuse_password)] | None = Field(
        default=None,
        description="Connection string of a database. Each variant's data begins as a copy of it; the SQL, "
        "which may then be left out, runs afterwards. A password comes from PGPASSWORD or ~/.pgpass.",
    )
    statistics: Literal["analyze", "keep"] = Field(
        default="analyze",
        description="`keep`: the planner's statistics of every variant are those of the copied database, and "
        "what the SQL changes of them; they are not gathered anew for each variant. Needs copy_of.",
    )
    timeout: Nanoseconds = Field(default=600 * 10**9, description="Maximum time for a set-up.")
    shared: bool = Field(
        default=False,
        description="Variants and cells with the same set-up SQL share one database, made once. Then "
        "the workload's undo must undo what a trial changes.",
    )
    answers: int = Field(
        default=20,
        ge=1,
        le=1000,
        description="Operations of each workload whose answers are compared before the trials.",
    )
    cache: Literal["warm", "cold", "as-is"] = Field(
        default="warm",
        description="What is in memory when a trial begins. warm: the data, as far as it fits shared "
        "buffers. cold: nothing; before each trial the embedded server is restarted, and its files are "
        "dropped from the page cache. as-is: what earlier trials left; nothing is read in advance.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.copy_of is None:
            needs_sql(self.sql)
            if self.statistics == "keep":
                raise ValueError('statistics = "keep" needs copy_of: only a copy has statistics to keep')
        return self


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
