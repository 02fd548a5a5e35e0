"""What the log says about limits that the server refused to exceed: how often, and when. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from uncork.advise.evidence import Evidence
from uncork.advise.servers import on_servers, servers_of
from uncork.model.results.log import ErrorFacts
from uncork.model.units import count_words


def refusals(evidence: Evidence, wanted: Callable[[ErrorFacts], bool]) -> tuple[ErrorFacts, ...]:
    """Return the errors of the log that are wanted, the most frequent first."""
    errors = () if evidence.log is None else evidence.log.errors
    return tuple(sorted(filter(wanted, errors), key=lambda error: -error.count))


def when(found: Sequence[ErrorFacts]) -> str:
    """Return when errors happened as words: once, or from the first to the last; and on which servers."""
    first = min((one.first_us for one in found if one.first_us is not None), default=None)
    last = max((one.last_us for one in found if one.last_us is not None), default=None)
    many = count_words(sum(one.count for one in found), "time") + on_servers(servers_of(found))
    if first is None or last is None:
        return many
    if _moment(first) == _moment(last):
        return f"{many}, at {_moment(first)} UTC"
    return f"{many}, from {_moment(first)} to {_moment(last)} UTC"


def _moment(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"
