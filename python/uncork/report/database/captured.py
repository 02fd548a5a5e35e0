"""Sentences about recorded sessions and captured workloads: what they hold, and what is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median
from typing import Final

from uncork.model.database.recording import Recording
from uncork.model.database.workload import CapturedWorkload, ValueOrigin
from uncork.model.units import count_words, format_count, format_duration, share_text

_MOST_REASONS: Final = 3
_US: Final = 1e3


def recording_answer(recording: Recording) -> tuple[str, ...]:
    """Return two or three sentences: what was recorded, its pauses, and what is missing."""
    sent = recording.transactions
    rate = len(sent) / max(recording.seconds, 1e-3)
    found = [
        f"Recorded {count_words(len(sent), 'transaction')} of {count_words(recording.sessions, 'session')} "
        f"over {format_duration(recording.seconds * 1e9)}, {rate:.4g} a second."
    ]
    took = sum(transaction.took_us for transaction in sent)
    paused = sum(
        sum(int(value or 0) for name, value in transaction.values.items() if name.startswith("w"))
        for transaction in sent
    )
    if took:
        found.append(
            f"Transactions were open for {format_duration(took * _US)} in all; for "
            f"{share_text(paused / took)} of that they waited for their client."
        )
    if recording.missing:
        many = sum(recording.missing.values())
        ordered = sorted(recording.missing.items(), key=lambda item: -item[1])[:_MOST_REASONS]
        listed = "; ".join(f"{format_count(count)}: {reason}" for reason, count in ordered)
        found.append(f"Missing: {count_words(many, 'transaction')} ({listed}).")
    return tuple(found)


def recording_readme(recording: Recording, folder: str) -> str:
    """Return the README of a recording's folder."""
    rate = len(recording.transactions) / max(recording.seconds, 1e-3)
    took: dict[str, list[int]] = defaultdict(list)
    for transaction in recording.transactions:
        took[transaction.script].append(transaction.took_us)
    lines = [
        "# Recorded sessions",
        "",
        *recording_answer(recording),
        "",
        "The folder holds values of the database. Replay the sessions, on a copy from before the recording:",
        "",
        f"    uncork load sql --replay {folder} DSN",
        "",
        "Or send the same transactions in random order, at any rate:",
        "",
        f"    uncork load sql -f {folder} -R {rate:.4g} -T 60 DSN",
        "",
        "| script | transactions | median time as recorded |",
        "|---|---|---|",
        *(
            f"| {name} | {format_count(len(took[name]))} | {format_duration(median(took[name]) * _US)} |"
            for name in recording.scripts
        ),
    ]
    if recording.missing:
        lines += ["", "Missing:", ""]
        lines += [
            f"- {count_words(count, 'transaction')}: {reason}"
            for reason, count in sorted(recording.missing.items(), key=lambda item: -item[1])
        ]
    return "\n".join(lines) + "\n"


_WORDS: Final[dict[ValueOrigin, str]] = {
    "none": "none needed",
    "executed": "from executions in the logs",
    "seen": "from the sessions' statements",
    "drawn": "drawn from the columns' statistics",
    "rows": "drawn together from rows of a table",
}


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
