"""One trial's load by HTTP, and the requests and answers of the answer check."""

from __future__ import annotations

import re
from collections.abc import Mapping

from uncork.model.http import HttpSpec
from uncork.model.records import Record
from uncork.model.request import LoadRequest
from uncork.model.server import Target
from uncork.model.service import Served

_BRACES = re.compile(r"\{\{|\{([A-Za-z_][A-Za-z0-9_]*)\}")


class HttpTrial(Record):
    """A load by HTTP on a service; `target` is the database behind it, whose processor time is read too.

    `warmup_operations` are sent before those of `spec` are measured. `deadline_ns` limits the whole trial;
    answers that take longer than `late_ns` count as failed even if they arrive.
    """

    target: Target
    served: Served
    spec: HttpSpec
    warmup_operations: int
    deadline_ns: int
    late_ns: int | None = None


TrialRequest = LoadRequest | HttpTrial
"""What a trial sends: statements, or HTTP requests."""


class AskedRequest(Record):
    """A request with its values filled in, sent once to see its answer."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None

    @property
    def line(self) -> str:
        """Return the request line that reports show."""
        return f"{self.method} {self.path}"


class HttpAnswer(Record):
    """The answer to a request: its status, and the body as canonical JSON text, or else its digest.

    `json` is None if the body is not JSON; then `text` is the body, unless it is not UTF-8. `digest` and
    `size` describe the body as received.
    """

    request: str
    status: int
    json: str | None
    digest: str
    size: int
    text: str | None = None


def names_in_braces(text: str) -> set[str]:
    """Return the names that occur in a text as ``{name}``."""
    return {match[1] for match in _BRACES.finditer(text) if match[1]}


def fill(text: str, values: Mapping[str, str], *, last: bool = True) -> str:
    """Replace ``{name}`` by its value; names without a value stay.

    With `last` the result is sent as it is: ``{{`` becomes a brace. Otherwise the text is filled again later,
    so braces stay, and those of a value are doubled.
    """

    def replaced(match: re.Match[str]) -> str:
        if match[1] is None:
            return "{" if last else match[0]
        if match[1] not in values:
            return match[0]
        value = values[match[1]]
        return value if last else value.replace("{", "{{")

    return _BRACES.sub(replaced, text)
