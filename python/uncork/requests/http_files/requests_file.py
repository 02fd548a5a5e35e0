"""Read the requests file of `uncork load http -f`, or refuse it with line and key. Pure.

Files and environment variables are read through functions that the caller passes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from uncork.experiment.spec import problems
from uncork.experiment.spec.fields import Section
from uncork.experiment.spec.http_requests import VALUE_NAME, RequestTable, RequestTables, ValueName
from uncork.model.http import Request, Variable

ReadFile = Callable[[str], str]
_RANGE: Final = re.compile(r"(\d{1,18})\.\.(\d{1,18})")
_IN_BRACES: Final = re.compile(rf"\{{\{{|\{{({VALUE_NAME}(?:\.{VALUE_NAME})?)\}}")
_SECRET: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _of_values(value: object) -> object:
    if isinstance(value, str):
        return {"range": value}
    return {"values": value} if isinstance(value, list) else value


class VariableTable(Section):
    """The values of `{name}`; columns of a file or of rows are `{name.column}`."""

    range: str | None = Field(default=None, description="Whole numbers, such as 1..200000.")
    values: list[str | int | float] | None = Field(default=None, min_length=1, description="These values.")
    rows: list[dict[ValueName, str | int | float]] | None = Field(
        default=None, min_length=1, description="Values that belong together: tables with the same keys."
    )
    file: str | None = Field(
        default=None,
        description="A CSV file with a header line; or a text file with one value a line, if it does not end "
        "in .csv.",
    )
    order: Literal["random", "sequential"] = Field(
        default="random", description="Draw the values at random, or use them in turn."
    )
    per: Literal["request", "client"] = Field(
        default="request", description="Draw a value for each request, or one for each client."
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        given = [source for source in (self.range, self.values, self.rows, self.file) if source is not None]
        if len(given) != 1:
            raise problems.at((), "expected exactly one of range, values, rows and file")
        if self.range is not None:
            found = _RANGE.fullmatch(self.range)
            if found is None:
                raise problems.at((), f'expected whole numbers such as "1..200000"; found "{self.range}"')
            if int(found[1]) > int(found[2]):
                raise problems.at((), f'"{self.range}" is empty: {found[1]} is above {found[2]}; swap them')
        if self.rows is not None and any(row.keys() != self.rows[0].keys() for row in self.rows):
            raise problems.at(("rows",), "every row must have the same keys")
        return self


Variables = Annotated[
    VariableTable,
    BeforeValidator(_of_values, json_schema_input_type=str | list[str | int | float] | VariableTable),
]


class RequestsFile(Section):
    """Requests that `uncork load http -f FILE` sends, their checks, and the values in them."""

    base_url: str | None = Field(
        default=None, description="What every URL of the file begins with. The command line can replace it."
    )
    headers: dict[str, str] = Field(default_factory=dict, description="Headers of every request.")
    cookies: bool = Field(default=True, description="Whether each client keeps cookies and sends them.")
    order: Literal["weighted", "sequential"] = Field(
        default="weighted",
        description="Choose requests at random by weight, or repeat them in the order of the file.",
    )
    variables: dict[ValueName, Variables] = Field(
        default_factory=dict, description='Values by name: "1..1000", a list, or a table.'
    )
    login: list[RequestTables] = Field(
        default_factory=list,
        description="Requests that each client sends once, in order, before its first request. They are not "
        "part of the measured load.",
    )
    requests: list[RequestTables] = Field(min_length=1, max_length=200, description="The requests.")


@dataclass(frozen=True, slots=True)
class SentRequests:
    """What a requests file describes. URLs still begin with a slash, or with a scheme and a host."""

    base_url: str | None
    cookies: bool
    in_order: bool
    variables: tuple[Variable, ...]
    login: tuple[Request, ...]
    requests: tuple[Request, ...]
    environment: tuple[tuple[str, str], ...]


def parse_requests(
    file: str,
    content: str,
    *,
    read: ReadFile,
    environment: Mapping[str, str],
    headers: tuple[tuple[str, str], ...] = (),
    statuses: tuple[int, ...] = (),
) -> SentRequests:
    """Return what a requests file describes.

    `headers` and `statuses` apply to every request that has no own ones.

    Raises:
        SpecError: with all problems of the file, each with its line and key.
        UsageError: if a file that it names cannot be read.
    """
    data = problems.toml_data(file, content)
    found: list[problems.Problem] = []
    try:
        parsed = RequestsFile.model_validate(data)
    except ValidationError as error:
        problems.refuse(problems.from_validation(error, RequestsFile), file, content)
        raise
    variables: list[Variable] = []
    for number, (name, table) in enumerate(parsed.variables.items()):
        try:
            variables += _variables(name, table, number, read)
        except ValueError as error:
            found.append(problems.Problem(("variables", name), str(error)))
    found += _names(parsed, {variable.name for variable in variables})
    found += _secrets(parsed, environment)
    problems.refuse(found, file, content)
    given = {name.lower() for name, _ in headers}
    shared = (*headers, *(pair for pair in parsed.headers.items() if pair[0].lower() not in given))
    login = []
    for (name, step), missing in zip(_named(parsed.login), _not_captured(parsed), strict=True):
        # A token that the login obtains cannot be sent before.
        sent = tuple(pair for pair in shared if not missing.intersection(_names_in(pair[1])))
        login.append(step.request(name, headers=sent, statuses=statuses))
    used = {name for text in _texts(parsed) for name in _SECRET.findall(text)}
    return SentRequests(
        base_url=parsed.base_url and _SECRET.sub(lambda match: environment[match[1]], parsed.base_url),
        cookies=parsed.cookies,
        in_order=parsed.order == "sequential",
        variables=tuple(variables),
        login=tuple(login),
        requests=tuple(
            table.request(name, headers=shared, statuses=statuses) for name, table in _named(parsed.requests)
        ),
        environment=tuple((name, environment[name]) for name in sorted(used)),
    )


def _named(tables: list[RequestTable]) -> list[tuple[str, RequestTable]]:
    """Return the tables with unique names; by default the method and the URL."""
    named: dict[str, RequestTable] = {}
    for table in tables:
        name = table.name or f"{table.verb} {table.target}"
        plain, number = name, 2
        while name in named:
            name, number = f"{plain} ({number})", number + 1
        named[name] = table
    return list(named.items())


def _not_captured(parsed: RequestsFile) -> Iterator[set[str]]:
    """Yield for each step of the login the names that no earlier step captures, and that have no default."""
    tables = [table.capture for _, table in _all(parsed)]
    missing = {name for table in tables for name, capture in table.items() if capture.default is None}
    for step in parsed.login:
        yield missing
        missing = missing - set(step.capture)


def _variables(name: str, table: VariableTable, group: int, read: ReadFile) -> Iterator[Variable]:
    """Yield the variables of a table. Raises ValueError if its file has no values."""
    in_turn, per_client = table.order == "sequential", table.per == "client"
    if table.range is not None:
        first, last = (int(word) for word in table.range.split(".."))
        yield Variable(name, first, last, (), in_turn, per_client)
    elif table.values is not None:
        yield Variable(name, 0, 0, tuple(map(str, table.values)), in_turn, per_client)
    else:
        rows = table.rows if table.rows is not None else _rows(table.file or "", read)
        for column in rows[0]:
            values = tuple(str(row[column]) for row in rows)
            full = f"{name}.{column}" if column else name
            yield Variable(full, 0, 0, values, in_turn, per_client, group if column else None)


def _rows(name: str, read: ReadFile) -> list[dict[str, Any]]:
    """Return the rows of a CSV file, or the lines of another file under an empty name."""
    text = read(name)
    if not name.lower().endswith(".csv"):
        lines = [{"": line} for line in text.splitlines() if line]
        if not lines:
            raise ValueError(f"{name} has no values; write one a line")
        return lines
    rows = [row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"))) if row]
    if len(rows) < 2:
        raise ValueError(
            f"{name} has no rows; write a line with the names of the columns, and the rows below"
        )
    names = [word.strip() for word in rows[0]]
    wrong = next((word for word in names if not re.fullmatch(VALUE_NAME, word)), None)
    if wrong is not None:
        raise ValueError(f'{name}:1: "{wrong}" is not a name of a column; use letters, digits and "_"')
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise ValueError(
                f"{name}: row {number} has {len(row)} values, but the header has {len(names)} columns"
            )
    return [dict(zip(names, row, strict=True)) for row in rows[1:]]


def _all(parsed: RequestsFile) -> Iterator[tuple[tuple[str, str], RequestTable]]:
    for section, tables in (("login", parsed.login), ("requests", parsed.requests)):
        for number, table in enumerate(tables):
            yield (section, str(number)), table


def _texts(parsed: RequestsFile) -> Iterator[str]:
    yield parsed.base_url or ""
    yield from parsed.headers.values()
    for _, table in _all(parsed):
        yield from table.texts


def _names(parsed: RequestsFile, variables: set[str]) -> Iterator[problems.Problem]:
    """Check that names of requests are unique, and that every ``{name}`` has a value."""
    captured = {name for _, table in _all(parsed) for name in table.capture}
    for name in captured & set(parsed.variables):
        yield problems.Problem(("variables", name), "is also captured from an answer; rename one of them")
    known = variables | captured
    seen: set[tuple[str, str]] = set()
    if not any(table.weight for table in parsed.requests):
        yield problems.Problem(("requests",), "no request has a weight above 0; give one a weight")
    for (number, step), missing in zip(enumerate(parsed.login), _not_captured(parsed), strict=True):
        for name in sorted({found for text in step.texts for found in _names_in(text)} & missing):
            yield problems.Problem(
                ("login", str(number)), f"uses {{{name}}}, which no earlier step of the login captures"
            )
    for key, table in _all(parsed):
        if table.name is not None and (key[0], table.name) in seen:
            yield problems.Problem((*key, "name"), f'"{table.name}" is used twice; rename one of them')
        seen.add((key[0], table.name or ""))
        target = table.target
        if not re.match(r"https?://|/|\{", _SECRET.sub("", target)) and not target.startswith("${"):
            yield problems.Problem(
                (*key, "url"), f'must begin with a slash, or with http:// or https://; found "{target}"'
            )
        yield from _unknown(key, table.texts, known, parsed)
    yield from _unknown(("headers",), parsed.headers.values(), known, parsed)


def _unknown(
    key: tuple[str, ...], texts: Any, known: set[str], parsed: RequestsFile
) -> Iterator[problems.Problem]:
    used = {found for text in texts for found in _names_in(_SECRET.sub("", text))}
    for name in sorted(used - known):
        table, dot, _ = name.partition(".")
        if dot and table not in parsed.variables:
            continue  # braces around any other text
        columns = [text for text in known if text.startswith(f"{name}.")]
        more = f"; it has the columns {', '.join(sorted(columns))}" if columns else problems.hint(name, known)
        add = "" if name in parsed.variables else '; add it to [variables], or capture it ("{{" is a brace)'
        yield problems.Problem(key, f"uses {{{name}}}, which has no value{more}{add}")


def _secrets(parsed: RequestsFile, environment: Mapping[str, str]) -> Iterator[problems.Problem]:
    places = [(("base_url",), [parsed.base_url or ""]), (("headers",), list(parsed.headers.values()))]
    for key, texts in [*places, *((key, list(table.texts)) for key, table in _all(parsed))]:
        for name in sorted({name for text in texts for name in _SECRET.findall(text)} - set(environment)):
            yield problems.Problem(
                key,
                f"uses ${{{name}}}, but there is no environment variable {name}; set it: export {name}=...",
            )


def _names_in(text: str) -> Iterator[str]:
    return (match[1] for match in _IN_BRACES.finditer(text) if match[1])
