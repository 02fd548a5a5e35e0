"""Types of values in an experiment file: times and shares with units, names, settings."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from uncork.model.redaction import redact
from uncork.model.units import parse_duration, parse_share


def _duration(value: object) -> object:
    if isinstance(value, str):
        return parse_duration(value)
    raise ValueError(f'expected a time with a unit, such as "250ms", "30s" or "5min"; found {value!r}')


def _share(value: object) -> object:
    if isinstance(value, str):
        return parse_share(value)
    raise ValueError(f'expected a percentage in quotes, such as "3%"; found {value!r}')


def matching(pattern: str, message: str) -> AfterValidator:
    """Return a check that texts match a pattern; the error is `message`, which shows the text."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value, re.DOTALL):
            raise ValueError(f'{message}; found "{value}"')
        return value

    return AfterValidator(check)


def compiling(message: str) -> AfterValidator:
    """Return a check of regular expressions; `message` has ``{value}`` and ``{error}``."""

    def check(value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(message.format(value=value, error=error)) from error
        return value

    return AfterValidator(check)


_DURATION_SCHEMA = WithJsonSchema(
    {
        "type": "string",
        "pattern": r"^\s*[0-9][0-9._]*\s*(ns|us|µs|ms|s|min|h)\s*$",
        "examples": ["250ms", "30s"],
    }
)
_SHARE_SCHEMA = WithJsonSchema(
    {"type": "string", "pattern": r"^\s*[0-9][0-9._]*\s*%\s*$", "examples": ["3%"]}
)

Nanoseconds = Annotated[int, BeforeValidator(_duration), Field(gt=0), _DURATION_SCHEMA]
Share = Annotated[float, BeforeValidator(_share), Field(gt=0, lt=1), _SHARE_SCHEMA]
Confidence = Annotated[float, BeforeValidator(_share), Field(ge=0.5, lt=1), _SHARE_SCHEMA]
Name = Annotated[
    str,
    Field(min_length=1, max_length=40),
    matching(
        "[A-Za-z][A-Za-z0-9_-]*",
        'a name must start with a letter and contain only letters, digits, "_" and "-"',
    ),
]
Word = Annotated[
    str,
    Field(min_length=1, max_length=40),
    matching(
        "[A-Za-z][A-Za-z0-9_]*",
        'a name that SQL uses as :name must start with a letter and contain only letters, digits and "_"',
    ),
]
Setting = str | int | float | bool


class Section(BaseModel):
    """A table of the file. Unknown keys are errors, and values are never converted to another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def key(description: str, default: Any = None, **limits: Any) -> Any:
    """Return the field of a key that may be left out; `default`: its value then, or type."""
    if isinstance(default, type):
        return Field(default_factory=default, description=description, **limits)
    return Field(default=default, description=description, **limits)


def refuse_password(conninfo: str) -> str:
    """Return a connection string unchanged; raise ValueError if it contains a password."""
    if redact(conninfo) != conninfo:
        raise ValueError("must not contain a password; use PGPASSWORD or ~/.pgpass")
    return conninfo


def needs_sql(sql: str | tuple[str, ...] | None) -> None:
    """Raise ValueError if there is no SQL."""
    if not sql:
        raise ValueError("has no SQL; add sql or file")


class SqlSection(Section):
    """A section whose SQL is in the file, or in a file beside it."""

    sql: str | tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        needs_sql(self.sql)
        return self


def several(sql: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return one statement or a list of statements as a tuple."""
    return (sql,) if isinstance(sql, str) else sql or ()
