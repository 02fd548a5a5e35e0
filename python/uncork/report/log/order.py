"""Say which files of one server were not read in the order of time, and what that means for the numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from uncork.model.results.log import FileFacts, LogResult
from uncork.report.quantity_words import instant_text, span_text
from uncork.report.words import count_words

_SLACK_US: Final = 1_000_000
"""Entries of several sessions may be out of order by this much, also where a server begins its next file."""
_SHOWN: Final = 2
_WITHHELD: Final = (
    "Read one after the other, they do not show the order of entries, so uncork reports nothing of this "
    "server that follows from it: transactions, repeated statements, loops, who waited for whom, the longest "
    "waits and open sessions. Other numbers do not depend on the order."
)
_BRIEF: Final = (
    "As long as each session logs in order, as where a busy server begins its next file, transactions, "
    "repeated statements and loops are complete. Lock waits and open sessions of that time can be incomplete."
)
_NO_ORDER: Final = "so they do not show in which order each session sent its statements"
_NEAR: Final = 100
"""How many files before one are tested for overlapping with it."""

_Pairs = list[tuple[FileFacts, FileFacts]]


def order_warnings(result: LogResult) -> Iterator[str]:
    """Yield what is to be known of files of one server that overlap in time, or that were read too late."""
    overlapping, late = _out_of_order(result.files)
    withheld = [pair for pair in overlapping if pair[0].server in result.withheld]
    if withheld:
        yield _overlap_words(withheld, _WITHHELD)
    if len(withheld) < len(overlapping):
        yield _overlap_words([pair for pair in overlapping if pair not in withheld], _BRIEF)
    if late:
        yield _late_words(late)


def overlap_refusal(files: Sequence[FileFacts]) -> str:
    """Return why files that overlap in time do not show what sessions sent, and what to do."""
    pairs = _out_of_order(files)[0]
    if not pairs:
        return f"files of one server overlap in time, {_NO_ORDER}: name files that follow each other"
    one, other = max(pairs, key=lambda pair: _shared_us(*pair))
    choice = "in one format" if one.dialect != other.dialect else "of one server, without copies"
    return (
        f"{one.name} and {other.name} overlap in time, {_shared(one, other)}, {_NO_ORDER}: "
        f"name only files {choice}"
    )


def _out_of_order(all_files: Sequence[FileFacts]) -> tuple[_Pairs, _Pairs]:
    """Return the pairs of files of a server that overlap, and those of which the later one was read first."""
    servers: dict[str, list[FileFacts]] = defaultdict(list)
    for file in all_files:
        if file.first_us is not None:
            servers[file.server].append(file)
    overlapping: _Pairs = []
    late: _Pairs = []
    for files in servers.values():
        latest = files[0]
        for place, file in enumerate(files[1:], 1):
            if _time(file.first_us) < _time(latest.last_us) - _SLACK_US:
                before = reversed(files[max(0, place - _NEAR) : place])
                other = next((earlier for earlier in before if _shared_us(earlier, file) > _SLACK_US), None)
                if other is None:
                    late.append((latest, file))
                else:
                    overlapping.append((other, file))
            if _time(file.last_us) > _time(latest.last_us):
                latest = file
    return overlapping, late


def _shared_us(file: FileFacts, other: FileFacts) -> int:
    """Return how long both were written, in microseconds; below 0 is the time between them."""
    begin = max(_time(file.first_us), _time(other.first_us))
    return min(_time(file.last_us), _time(other.last_us)) - begin


def _overlap_words(pairs: _Pairs, meaning: str) -> str:
    shown = "; ".join(
        f"{file.name} and {other.name}{_on(file)}, {_shared(file, other)}" for file, other in pairs[:_SHOWN]
    )
    more = f"; and {count_words(len(pairs) - _SHOWN, 'other pair')}" if len(pairs) > _SHOWN else ""
    text = f"Files of one server overlap in time: {shown}{more}. {meaning}"
    if any(file.dialect != other.dialect for file, other in pairs):
        text += (
            " Files of different formats can hold the same entries, which then count twice: read only one of "
            "the formats."
        )
    if any(not file.server for file, _ in pairs):
        text += (
            " If several servers wrote them, name the servers: --servers by-folder, or --server NAME=FILES."
        )
    return text


def _late_words(pairs: _Pairs) -> str:
    shown = "; ".join(
        f"{other.name} ends at {instant_text(other.last_us)} UTC, before {file.name}{_on(file)} ends"
        for file, other in pairs[:_SHOWN]
    )
    more = f"; and {count_words(len(pairs) - _SHOWN, 'other file')}" if len(pairs) > _SHOWN else ""
    return (
        f"Logs were not read in the order of time: {shown}{more}. Transactions, repeated statements, loops, "
        "lock waits and open sessions that continue from one to the other are incomplete. Name them in the "
        "order in which they were written."
    )


def _on(file: FileFacts) -> str:
    return f" of server {file.server}" if file.server else ""


def _shared(file: FileFacts, other: FileFacts) -> str:
    begin = max(_time(file.first_us), _time(other.first_us))
    return span_text(begin, min(_time(file.last_us), _time(other.last_us)))


def _time(micros: int | None) -> int:
    return micros or 0
