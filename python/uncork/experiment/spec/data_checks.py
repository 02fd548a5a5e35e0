"""Questions about variants' data: checks, which run once, and metrics, which run after each trial."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from uncork.experiment.spec.fields import Nanoseconds, Section, key, needs_sql
from uncork.experiment.spec.services import Command


class DataCheck(Section):
    """A query that runs once on each variant's data, after set-up. Reports show its result.

    `:name` is replaced by values of the variant and levels of factors.
    """

    title: str | None = key("Title in reports. Default: the name.")
    sql: str | None = key("A query; the first column of its first row is shown.")
    file: str | None = key("A file beside this one with the query.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self


class OwnMetric(Section):
    """A query or a command that runs after each trial, outside its time: one number per trial.

    A query runs in the variant's database. A command runs without a shell, in a folder of its own; the last
    line that it prints is the number. Its environment has `DATABASE_URL` (the variant's data, if it is in
    PostgreSQL), `VARIANT` and `WORKLOAD`. `:name` is replaced by values of the variant and levels of factors.
    Variants do not take turns within a block then, so that each number belongs to one trial.
    """

    sql: str | None = key("A query; the first column of its first row is the number.")
    file: str | None = key("A file beside this one with the query.")
    command: Command | None = key(
        "In place of a query: the program and its arguments, as a list. {python} is the "
        "interpreter that runs uncork, and {database_url} (or {database_host}, _port, _name, _user, "
        "_password) the variant's database. Files beside this one that it names are copied to its folder."
    )
    timeout: Nanoseconds = key("Maximum time for the command.", 10 * 10**9)
    better: Literal["lower", "higher"] = key("Which direction is better.", "lower")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.command is None:
            if not self.sql:
                raise ValueError("has neither a query nor a command; add sql, file or command")
            if "timeout" in self.model_fields_set:
                raise ValueError("timeout is for a command; remove it")
        elif self.sql:
            raise ValueError("has a query and a command; remove one of them")
        elif not self.command[0].strip():
            raise ValueError("command names no program")
        return self
