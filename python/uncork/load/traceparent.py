"""Give each request of a load a trace of its own: the header `traceparent` of W3C Trace Context. Pure.

A trace's ID has 32 hexadecimal digits: eight that mark traces of uncork (`MARK`), six of the load, two of
the request by its place in the load from 1, and 16 that are drawn anew for each request. The drawn ones are a
variable of the load, so the core needs no code for them. They are decimal digits, which are hexadecimal
digits too: 2^53 values. The second version of the recommendation wants the last 14 digits of an ID to be
random.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from uncork.model.http import HttpSpec, Request, Variable

MARK: Final = "756e636b"
"""How the traces of uncork begin: ``unck``. The reader of logs in the core knows the same digits."""
GROUP: Final = 16
"""How many digits name the load and the request."""
HEADER: Final = "traceparent"
_TRACE: Final = Variable("uncork_trace", 10**15, 10**16 - 1)
_SPAN: Final = Variable("uncork_span", 10**15, 10**16 - 1)
_MOST: Final = 0xFF
"""The number of all requests from the 255th on."""
_LOGIN: Final = 0


def traced(spec: HttpSpec) -> HttpSpec:
    """Return a load whose requests have the header, if its `trace` says so."""
    if spec.trace is None:
        return spec
    return replace(
        spec,
        variables=(*spec.variables, _TRACE, _SPAN),
        login=tuple(_with_header(request, spec.trace, _LOGIN) for request in spec.login),
        requests=tuple(
            _with_header(request, spec.trace, place) for place, request in enumerate(spec.requests, 1)
        ),
        trace=None,
    )


def untraced(spec: HttpSpec) -> HttpSpec:
    """Return the load that `traced` was given, from what it returned."""
    found = [value for request in spec.requests for name, value in request.headers if _is_own(name, value)]
    if not found:
        return spec
    begin = len("00-") + len(MARK)
    return replace(
        spec,
        variables=tuple(variable for variable in spec.variables if variable not in (_TRACE, _SPAN)),
        login=tuple(map(_without_header, spec.login)),
        requests=tuple(map(_without_header, spec.requests)),
        trace=found[0][begin : begin + 6],
    )


def group_of(trace: str, place: int) -> str:
    """Return how the traces of a request begin; `place` counts the requests of the load from 1."""
    return f"{MARK}{trace}{min(place, _MOST):02x}"


def _with_header(request: Request, trace: str, place: int) -> Request:
    if any(name.lower() == HEADER for name, _ in request.headers):
        return request
    value = f"00-{group_of(trace, place)}{{{_TRACE.name}}}-{{{_SPAN.name}}}-01"
    return replace(request, headers=(*request.headers, (HEADER, value)))


def _without_header(request: Request) -> Request:
    return replace(request, headers=tuple(header for header in request.headers if not _is_own(*header)))


def _is_own(name: str, value: str) -> bool:
    return name == HEADER and value.startswith(f"00-{MARK}") and f"{{{_TRACE.name}}}" in value
