"""HTTP workloads in an experiment file: which requests are sent, and how."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from uncork.experiment.spec import problems
from uncork.experiment.spec.fields import Nanoseconds, Section, compiling, key, matching
from uncork.experiment.spec.http_requests import RequestTable, Status
from uncork.model.http import OnClose
from uncork.model.services.answers import AnswerRules


def _of_path(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


Path = Annotated[str, matching("/.*", 'a path must begin with "/"')]
Place = Annotated[str, matching("(/.*)?", 'a place in JSON begins with "/", as in "/items/*/age"')]
Expression = Annotated[str, compiling('"{value}" is not a regular expression: {error}')]


class RequestFacts(RequestTable):
    """One kind of request. `{name}` in path, headers, body and checks is replaced by a value.

    The value is a parameter, a variant's value, a factor, or what an earlier answer to the same client gave
    (`capture`).
    """

    weight: int = key("Relative frequency of this request.", 1, ge=1, le=1_000_000)
    statuses: list[Status] = key("The same as checks.status. Default: 200 to 399.", list)

    @model_validator(mode="after")
    def _goes_to_the_service(self) -> Self:
        if not self.target.startswith("/"):
            key = "url" if self.path is None else "path"
            raise problems.at((key,), f'a path must begin with "/"; found "{self.target}"')
        if self.statuses and self.checks.status:
            raise problems.at(("statuses",), "and checks.status are both given; remove one")
        return self


Request = Annotated[RequestFacts, BeforeValidator(_of_path, json_schema_input_type=str | RequestFacts)]


class HttpFacts(Section):
    """Requests to the variant's service, instead of SQL. An operation is one request with its answer."""

    requests: list[Request] = Field(
        min_length=1,
        description="Paths, or tables of method, path, headers, body or json, weight and checks.",
    )
    login: list[Request] = key(
        "Requests that each connection sends once, in order, before its first request. They are "
        "neither measured nor part of the comparison of answers.",
        list,
    )
    cookies: bool | None = key(
        "Whether each connection keeps cookies and sends them. Default: only with login."
    )
    order: Literal["weighted", "sequential"] = key(
        "Choose requests at random by weight, or repeat them in the order of the file.", "weighted"
    )
    timeout: Nanoseconds = key("A request that takes longer has failed.", 30 * 10**9)
    deadline: Nanoseconds | None = key(
        "A limit below the timeout. Later answers count as failed, but uncork waits for them to "
        "measure how long they take."
    )
    version: Literal["1.1", "2", "3"] = key(
        "HTTP version. 2 uses prior knowledge (h2c) unless the service has tls. 3 uses QUIC over "
        "UDP, and requires a service with tls.",
        "1.1",
    )
    streams: int = key("Number of concurrent requests per connection.", 1, ge=1, le=10_000)
    on_close: OnClose = key(
        "What to do when the service closes a connection: reconnect and continue, or stop. "
        "Requests in progress have failed in either case.",
        "reconnect",
    )
    rate: float | None = key(
        "Open loop: requests are sent at this rate per second regardless of the service, and "
        "latency counts from each request's intended time. Without it: closed loop.",
        gt=0,
    )

    ignore: list[Place] = key(
        "Places in JSON answers that the answer check leaves out, as JSON pointers; `*` is any "
        'element or key: "/items/*/age".',
        list,
    )
    order_free: list[Place] = key(
        'Lists in JSON answers whose order does not matter: "/items"; "" is the whole answer.', list
    )
    ignore_text: list[Expression] = key(
        "Regular expressions (Python) whose matches the answer check leaves out of answers that "
        "are not JSON.",
        list,
    )

    @model_validator(mode="after")
    def _waits_for_late_ones(self) -> Self:
        if self.deadline is not None and self.deadline >= self.timeout:
            raise problems.at(
                ("deadline",), "must be shorter than timeout; uncork does not wait for later answers"
            )
        return self

    @property
    def rules(self) -> AnswerRules:
        """Return what the answers of variants may differ in."""
        return AnswerRules(tuple(self.ignore), tuple(self.order_free), tuple(self.ignore_text))

    @property
    def texts(self) -> tuple[str, ...]:
        """Return every text that may contain ``{name}``."""
        return tuple(text for request in (*self.login, *self.requests) for text in request.texts)

    @property
    def captured(self) -> set[str]:
        """Return the names of values that requests take from answers."""
        return {name for request in (*self.login, *self.requests) for name in request.capture}

    @property
    def keeps_cookies(self) -> bool:
        """Whether connections keep cookies."""
        return bool(self.login) if self.cookies is None else self.cookies
