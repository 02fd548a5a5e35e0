"""Services in an experiment file: what is started beside the database, and what a variant changes of it."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from uncork.experiment.spec.fields import Name, Nanoseconds, Section, needs_sql
from uncork.experiment.spec.http_workloads import Path
from uncork.model.http import OnClose

__all__ = [
    "RESERVED",
    "Database",
    "OwnHttp",
    "OwnService",
    "Service",
    "fill_texts",
    "text_names",
]

RESERVED = ("HOST", "PORT", "FOLDER", "DATABASE_URL", "PATH", "HOME", "LANG")
"""Variables that every service is given."""

_TEXT = re.compile(r"(?<![\w:]):([A-Za-z][A-Za-z0-9_]*)")


def _variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError(
            f'a variable of the environment holds letters, digits and "_", and starts with no digit; '
            f'found "{value}"'
        )
    if value in RESERVED or value.startswith(("SERVICE_", "DATABASE_URL_")):
        raise ValueError(f"{value} is given by uncork; choose another name")
    return value


Variable = Annotated[str, AfterValidator(_variable)]
Command = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]


class Service(Section):
    """A program that runs beside the database: started for a cell in a round, ended after it.

    It is given `HOST` and `PORT` to listen at, `DATABASE_URL` (the data of the variant), `DATABASE_URL_NAME`
    of each `[databases.NAME]`, `SERVICE_NAME` of each service that it comes after, and `FOLDER`, its working
    directory. It must end on SIGTERM.
    """

    command: Command = Field(
        description="The program and its arguments; no shell. {python} is the interpreter that runs uncork, "
        "{port}, {host} and {folder} are what the program is given. Files beside this one are put into its "
        "folder. Of a guard {image} is a side's image, {checkout} the top folder of its commit's checkout."
    )
    environment: dict[Variable, str] = Field(
        default_factory=dict,
        description="Variables of its environment; `:name` stands for a variant's value or a factor.",
    )
    ready: Path | None = Field(
        default=None,
        description="A path that answers 200 to 399 once it is ready; if absent, its port takes connections.",
    )
    timeout: Nanoseconds = Field(default=20 * 10**9, description="How long it may take to be ready.")
    after: list[Name] = Field(
        default_factory=list, description="Services further up that it needs; it is told where they are."
    )
    requires: list[str] = Field(
        default_factory=list,
        description='Programs ("nginx") and modules ("python:granian") without which variants that use it '
        "are skipped.",
    )
    files: list[str] = Field(
        default_factory=list,
        description="Further files beside this one that it needs, such as modules that it imports.",
    )


class OwnService(Section):
    """What one variant changes of a service."""

    command: Command | None = Field(default=None, description="In place of the service's command.")
    environment: dict[Variable, str] = Field(
        default_factory=dict, description="Variables over those of the service."
    )
    files: dict[str, str] = Field(
        default_factory=dict,
        description="Files that it has in place of the service's, by the name they have there: which file "
        "beside this one each is.",
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.command is None and not self.environment and not self.files:
            raise ValueError("changes nothing: give command, environment or files")
        return self


class OwnHttp(Section):
    """How one variant sends the requests of HTTP workloads, in place of what they say."""

    version: Literal["1.1", "2"] | None = Field(default=None, description="Version of HTTP.")
    streams: int | None = Field(
        default=None, ge=1, le=10_000, description="Requests under way at once on a connection."
    )
    clients: int | None = Field(default=None, ge=1, le=1000, description="Connections.")
    on_close: OnClose | None = Field(default=None, description="What follows when one is closed.")


class Database(Section):
    """A database beside the variants' own, made once and the same for all of them. Services only read it."""

    sql: str | None = Field(default=None, description="SQL that creates and fills its tables.")
    file: str | None = Field(default=None, description="A file beside this one that holds the SQL.")
    timeout: Nanoseconds = Field(default=600 * 10**9, description="The longest that may take.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self


def text_names(text: str) -> set[str]:
    """Return the names that stand as ``:name`` in a command or a variable; not those behind a word."""
    return set(_TEXT.findall(text))


def fill_texts(text: str, texts: dict[str, str]) -> str:
    """Put the texts of a variant and a cell in place of ``:name``."""
    return _TEXT.sub(lambda match: texts.get(match[1], match[0]), text)
