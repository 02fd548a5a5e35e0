"""Tables of HTTP requests, the same in an experiment file and in a requests file of `uncork load http`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Self
from urllib.parse import quote_plus

from pydantic import BeforeValidator, Field, model_validator

from uncork.experiment.spec import problems
from uncork.experiment.spec.fields import Section, compiling, key, matching
from uncork.model.http import BodyKind, Capture, Checks, Request

VALUE_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_NAME = re.compile(rf"\$?\{{{VALUE_NAME}(?:\.{VALUE_NAME})?\}}")
_JSON_TYPE, _FORM_TYPE = "application/json", "application/x-www-form-urlencoded"


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _of_url(value: object) -> object:
    return {"url": value} if isinstance(value, str) else value


ValueName = Annotated[
    str,
    Field(min_length=1, max_length=60),
    matching(VALUE_NAME, 'a name must start with a letter and contain only letters, digits and "_"'),
]
Status = Annotated[int, Field(ge=100, le=599)]
_Pointer = Annotated[str, matching("(/.*)?", 'a JSON pointer must begin with "/", such as "/items/0/id"')]
_Method = Annotated[str, matching("[A-Z]+", "a method must be a word in capital letters, such as GET")]
_Regex = Annotated[str, compiling('the regular expression "{value}" is not valid: {error}')]
_Statuses = Annotated[list[Status], BeforeValidator(_listed, json_schema_input_type=Status | list[Status])]
_Texts = Annotated[list[str], BeforeValidator(_listed, json_schema_input_type=str | list[str])]
_Pointers = Annotated[
    list[_Pointer], BeforeValidator(_listed, json_schema_input_type=_Pointer | list[_Pointer])
]


class CaptureTable(Section):
    """Where in an answer a value is that later requests of the same client use as `{name}`."""

    json_pointer: _Pointer | None = key("The JSON body at this pointer, such as /token.", alias="json")
    header: str | None = key("The value of this header.")
    regex: _Regex | None = key("The first group of this regular expression in the body, or its whole match.")
    default: str | None = key(
        "The value until an answer has one. Without it, requests that use it fail until then."
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        given = [text for text in (self.json_pointer, self.header, self.regex) if text is not None]
        if len(given) != 1:
            raise problems.at((), "expected exactly one of json, header and regex")
        return self

    def capture(self, name: str) -> Capture:
        """Return the capture under a name."""
        if self.json_pointer is not None:
            return Capture(name, "json", self.json_pointer, self.default)
        if self.header is not None:
            return Capture(name, "header", self.header, self.default)
        return Capture(name, "regex", self.regex or "", self.default)


class ChecksTable(Section):
    """What the answer must be. A request whose answer is different has failed."""

    status: _Statuses = key("One status or several. Default: any from 200 to 399.", list)
    contains: _Texts = key("Texts that the body must contain.", list)
    json_values: dict[_Pointer, Any] = key(
        'Values that the JSON body must have, by pointer: {"/items/0/id" = 7}.', dict, alias="json"
    )
    exists: _Pointers = key("Pointers at which the JSON body must have any value.", list)
    headers: dict[str, str | bool] = key("Headers with their value, or true if any value will do.", dict)
    size: int | None = key("The size of the body in bytes.", ge=0)
    sha256: str | None = key("The SHA-256 digest of the body.", pattern="^[0-9a-fA-F]{64}$")

    @property
    def texts(self) -> Iterator[str]:
        """Yield every text that may contain ``{name}``."""
        yield from self.contains
        yield from (value for value in self.json_values.values() if isinstance(value, str))


class RequestTable(Section):
    """One kind of request. `{name}` in URL, headers, body and checks is replaced by a value."""

    name: str | None = key("Its name in results. Default: method and URL.", min_length=1, max_length=100)
    method: _Method | None = key("Such as GET. Default: GET, or POST with a body.")
    url: str | None = key("Path and query string, beginning with a slash.")
    path: str | None = key("The same as url.")
    headers: dict[str, str] = key("Additional headers.", dict)
    body: str | None = key("The body as text.")
    json_body: Any = key(
        "A JSON body: a table, or its text, in which {name} without quotes can be a number. "
        "Values in quotes are escaped.",
        alias="json",
    )
    form: dict[str, str | int | float | bool] | None = key("The fields of an HTML form as body.")
    weight: int = key("Relative frequency of this request; 0 sends it never.", 1, ge=0, le=1_000_000)
    checks: ChecksTable = key("What the answer must be.", ChecksTable)
    capture: dict[ValueName, CaptureTable] = key(
        "Values of the answer that later requests use, by name.", dict
    )

    @model_validator(mode="after")
    def _is_one_request(self) -> Self:
        if (self.url is None) == (self.path is None):
            raise problems.at(
                ("url",),
                "is required but missing; add it"
                if self.url is None
                else "and path are both given; remove one",
            )
        given = [name for name in ("body", "json", "form") if self._body_of(name) is not None]
        if len(given) > 1:
            raise problems.at((given[1],), f"and {given[0]} both give the body; remove one")
        if isinstance(self.json_body, str):
            _check_json(self.json_body)
        return self

    def _body_of(self, name: str) -> object:
        return self.json_body if name == "json" else getattr(self, name)

    @property
    def target(self) -> str:
        """The URL or path as given."""
        return self.url if self.url is not None else self.path or ""

    @property
    def verb(self) -> str:
        """The method, or its default."""
        return self.method or ("GET" if self.content[0] is None else "POST")

    @property
    def content(self) -> tuple[str | None, BodyKind]:
        """The body as text, and how values in it are escaped."""
        if self.json_body is not None:
            text = self.json_body
            return (text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)), "json"
        if self.form is not None:
            fields = ((_form_text(name), _form_text(_word(value))) for name, value in self.form.items())
            return "&".join(f"{name}={value}" for name, value in fields), "form"
        return self.body, "text"

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers, with the type of the body unless it is given."""
        kind = {"json": _JSON_TYPE, "form": _FORM_TYPE}.get(self.content[1])
        if kind is None or any(name.lower() == "content-type" for name in self.headers):
            return self.headers
        return {"Content-Type": kind, **self.headers}

    @property
    def texts(self) -> Iterator[str]:
        """Yield every text that may contain ``{name}``."""
        yield self.target
        yield self.content[0] or ""
        for name, value in self.headers.items():
            yield from (name, value)
        yield from self.checks.texts

    def request(
        self,
        name: str,
        fill: Callable[[str], str] = str,
        *,
        target: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        statuses: tuple[int, ...] = (),
    ) -> Request:
        """Return the request under a name, with texts filled.

        `target` replaces its URL; `headers` are sent unless it has its own of the same name; `statuses` are
        accepted unless it has its own.
        """
        body, kind = self.content
        own = {fill(name): fill(value) for name, value in self.all_headers.items()}
        lower = {name.lower() for name in own}
        shared = [(name, value) for name, value in headers if name.lower() not in lower]
        checks = self.checks
        return Request(
            name=name,
            method=self.verb,
            path=fill(self.target if target is None else target),
            weight=self.weight,
            headers=(*shared, *own.items()),
            body=None if body is None else fill(body).encode(),
            checks=Checks(
                statuses=tuple(checks.status) or statuses,
                headers=tuple(
                    (name, value if isinstance(value, str) else None)
                    for name, value in checks.headers.items()
                ),
                size=checks.size,
                sha256=checks.sha256,
                json=tuple(
                    (pointer, fill(value) if isinstance(value, str) else value)
                    for pointer, value in checks.json_values.items()
                ),
                exists=tuple(checks.exists),
                contains=tuple(fill(text) for text in checks.contains),
            ),
            body_kind=kind,
            captures=tuple(table.capture(name) for name, table in self.capture.items()),
        )


RequestTables = Annotated[RequestTable, BeforeValidator(_of_url, json_schema_input_type=str | RequestTable)]


def _check_json(text: str) -> None:
    try:
        json.loads(_with_words(text))
    except ValueError as error:
        raise problems.at(("json",), f"is not JSON: {error}; write a table, or JSON text") from error


def _with_words(text: str) -> str:
    """Replace each ``{name}`` by a number, or inside of quotes by a word."""
    inside, found, at = False, [], 0
    while at < len(text):
        name = _NAME.match(text, at)
        if name is not None:
            found.append("x" if inside else "0")
            at = name.end()
            continue
        if text[at] == "\\" and inside:
            found.append(text[at : at + 2])
            at += 2
            continue
        inside ^= text[at] == '"'
        found.append(text[at])
        at += 1
    return "".join(found)


def _word(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _form_text(text: str) -> str:
    parts = re.split(rf"({_NAME.pattern}|\{{\{{)", text)
    return "".join(part if number % 2 else quote_plus(part) for number, part in enumerate(parts))
