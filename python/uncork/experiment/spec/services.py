"""Services in an experiment file: programs started beside the database, and what a variant changes."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from uncork.experiment.spec.fields import Name, Nanoseconds, Section, SqlSection, key
from uncork.experiment.spec.http_workloads import Path
from uncork.model.http import OnClose

RESERVED = ("HOST", "PORT", "FOLDER", "DATABASE_URL", "PATH", "HOME", "LANG")
"""Variables that uncork sets for every service."""

_TEXT = re.compile(r"(?<![\w:]):([A-Za-z][A-Za-z0-9_]*)")


def _variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError(
            'an environment variable may contain only letters, digits and "_", and must not start with a '
            f'digit; found "{value}"'
        )
    if value in RESERVED or value.startswith(("SERVICE_", "DATABASE_URL_")):
        raise ValueError(f"{value} is set by uncork; choose another name")
    return value


Variable = Annotated[str, AfterValidator(_variable)]
Command = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]


class Service(Section):
    """A program that runs beside the database. It starts for each cell and round, and ends afterwards.

    Its environment has `HOST` and `PORT` to listen at, `DATABASE_URL` (the variant's data),
    `DATABASE_URL_NAME` for each `[databases.NAME]`, `SERVICE_NAME` for each service in `after`, and `FOLDER`,
    its working directory. It must end on SIGTERM.
    """

    command: Command = Field(
        description="The program and its arguments, without a shell. {python} is the interpreter that runs "
        "uncork; {port}, {host} and {folder} are the service's own, and {database_url} (or {database_host}, "
        "_port, _name, _user, _password) its variant's database. Files beside this one are copied to its "
        "folder. In a guard, {image} is a side's image and {checkout} the root of its commit's checkout."
    )
    environment: dict[Variable, str] = key(
        "Environment variables. `:name` is replaced by a variant's value or a factor, {port} and "
        "the like as in the command, ${NAME} by a variable of uncork's own environment, which is not stored.",
        dict,
    )
    ready: Path | None = key(
        "A path that answers 200 to 399 once the service is ready. Default: wait until the port "
        "accepts connections."
    )
    tls: bool = key(
        "Whether its port expects TLS. uncork does not verify the certificate, because it "
        "starts the service itself.",
        False,
    )
    timeout: Nanoseconds = key("Maximum time until it is ready.", 20 * 10**9)
    after: list[Name] = key("Services listed earlier that it needs; it gets their addresses.", list)
    requires: list[str] = key(
        'Required programs ("nginx") and modules ("python:granian"). If one is missing, variants '
        "that use the service are skipped.",
        list,
    )
    files: list[str] = key("More files beside this one that it needs, such as modules that it imports.", list)


class OwnService(Section):
    """What one variant changes of a service."""

    command: Command | None = key("Replaces the service's command.")
    environment: dict[Variable, str] = key("Variables that are added or replaced.", dict)
    files: dict[str, str] = key(
        "Files that replace the service's: maps a name in the service's folder to a file beside this one.",
        dict,
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.command is None and not self.environment and not self.files:
            raise ValueError("changes nothing; add command, environment or files")
        return self


class OwnHttp(Section):
    """How one variant sends the requests of HTTP workloads, overriding the workloads' own values."""

    version: Literal["1.1", "2", "3"] | None = key("HTTP version.")
    streams: int | None = key("Number of concurrent requests per connection.", ge=1, le=10_000)
    clients: int | None = key("Number of connections.", ge=1, le=1000)
    on_close: OnClose | None = key("What to do when the service closes a connection.")


class Database(SqlSection):
    """A database beside the variants' own, made once for all variants. Services only read it."""

    sql: str | None = key("SQL that creates and fills its tables.")
    file: str | None = key("A file beside this one with the SQL.")
    timeout: Nanoseconds = key("Maximum time for this SQL.", 600 * 10**9)


def text_names(text: str) -> set[str]:
    """Return the names written as ``:name`` in a command or a variable, except directly after a word."""
    return set(_TEXT.findall(text))


def fill_texts(text: str, texts: dict[str, str]) -> str:
    """Replace ``:name`` by the texts of a variant and a cell."""
    return _TEXT.sub(lambda match: texts.get(match[1], match[0]), text)
