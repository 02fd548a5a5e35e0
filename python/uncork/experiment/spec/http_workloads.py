"""Workloads by HTTP in an experiment file: which requests are sent, and how."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from uncork.experiment.spec import problems
from uncork.experiment.spec.fields import Nanoseconds, Section
from uncork.model.http import OnClose

__all__ = ["HttpFacts", "Path", "RequestFacts"]


def path_text(value: str) -> str:
    """Return a path, which begins with a slash."""
    if not value.startswith("/"):
        raise ValueError(f'a path begins with "/"; found "{value}"')
    return value


def _method(value: str) -> str:
    if not re.fullmatch("[A-Z]+", value):
        raise ValueError(f'a method is a word in capitals, such as GET; found "{value}"')
    return value


def _of_path(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


Path = Annotated[str, AfterValidator(path_text)]
Status = Annotated[int, Field(ge=100, le=599)]


class RequestFacts(Section):
    """One kind of request. `{name}` in path, headers and body stands for a parameter, value or factor."""

    path: Path = Field(description="From the slash on, with the query.")
    method: Annotated[str, AfterValidator(_method)] = Field(default="GET", description="Such as GET or POST.")
    headers: dict[str, str] = Field(default_factory=dict, description="Headers beside those that must be.")
    body: str | None = Field(default=None, description="The body as text.")
    weight: int = Field(default=1, ge=1, le=1_000_000, description="How often it is chosen, beside others.")
    statuses: list[Status] = Field(
        default_factory=list, description="The statuses that are right; 200 to 399 if absent."
    )


Request = Annotated[RequestFacts, BeforeValidator(_of_path, json_schema_input_type=str | RequestFacts)]


class HttpFacts(Section):
    """Requests to the variant's service, in place of SQL; an operation is a request with its answer."""

    requests: list[Request] = Field(
        min_length=1, description="Paths, or tables of path, method, headers, body, weight and statuses."
    )
    timeout: Nanoseconds = Field(
        default=30 * 10**9, description="Each request's deadline: one that takes longer has failed."
    )
    deadline: Nanoseconds | None = Field(
        default=None,
        description="A deadline below the timeout: answers after it have failed too, but are waited for, so "
        "that it is known how long they take.",
    )
    version: Literal["1.1", "2"] = Field(
        default="1.1", description="Version of HTTP; 2 with prior knowledge (h2c)."
    )
    streams: int = Field(
        default=1, ge=1, le=10_000, description="Requests under way at once on a connection."
    )
    on_close: OnClose = Field(
        default="reconnect",
        description="When the service closes a connection: open it again and go on, or stop; requests under "
        "way have then failed.",
    )
    rate: float | None = Field(
        default=None,
        gt=0,
        description="Open loop: requests arrive at this rate a second, whatever the service does, and "
        "latency counts from when each was due. Absent: closed loop.",
    )

    @model_validator(mode="after")
    def _waits_for_late_ones(self) -> Self:
        if self.deadline is not None and self.deadline >= self.timeout:
            raise problems.at(
                ("deadline",), "must be below timeout: what is later than that is not waited for"
            )
        return self

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text in which ``{name}`` may stand."""
        return tuple(
            text
            for one in self.requests
            for text in (one.path, one.body or "", *one.headers, *one.headers.values())
        )
