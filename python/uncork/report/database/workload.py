"""Sentences about a captured workload: how much of the server's time it covers, and what is missing."""

from __future__ import annotations

from collections import Counter
from typing import Final

from uncork.model.database.workload import CapturedWorkload, ValueOrigin
from uncork.model.units import count_words, share_text

_WORDS: Final[dict[ValueOrigin, str]] = {
    "none": "none needed",
    "executed": "from executions in the logs",
    "seen": "from the sessions' statements",
    "drawn": "drawn from the columns' statistics",
    "rows": "drawn together from rows of a table",
}
_MOST_REASONS: Final = 3


def origin_words(origin: ValueOrigin) -> str:
    """Return where the values of a statement come from."""
    return _WORDS[origin]


def captured_answer(workload: CapturedWorkload) -> tuple[str, ...]:
    """Return two or three sentences: what was captured, where its values come from, and what is missing."""
    captured = workload.statements
    covered = sum(statement.share for statement in captured)
    rate = sum(statement.calls_per_hour for statement in captured) / 3600
    found = [
        f"Captured {count_words(len(captured), 'statement')} with {share_text(covered)} of the time of all "
        f"statements, at {rate:.4g} executions a second."
    ]
    origins = Counter(statement.origin for statement in captured if statement.origin != "none")
    if origins:
        parts = (f"{_WORDS[origin]} for {many}" for origin, many in origins.most_common())
        found.append(f"Values of parameters: {', '.join(parts)} of them.")
    if workload.missing:
        shares: dict[str, float] = {}
        for not_captured in workload.missing:
            shares[not_captured.reason] = shares.get(not_captured.reason, 0.0) + not_captured.share
        largest = sorted(shares.items(), key=lambda one: -one[1])[:_MOST_REASONS]
        listed = "; ".join(f"{share_text(share)}: {reason}" for reason, share in largest)
        more = len(shares) - _MOST_REASONS
        others = f"; and {count_words(more, 'other reason')}" if more > 0 else ""
        found.append(f"Missing: {count_words(len(workload.missing), 'statement')} ({listed}{others}).")
    return tuple(found)
