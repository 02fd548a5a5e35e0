"""Find which statements an application's transactions send, in which order, from samples or a log. Pure.

A sample has the age of the transaction and the time since the session entered its state, so it shows how long
after BEGIN a statement began. In transactions that send the same statements in the same order, a statement
therefore begins later in its transaction than those before it. A statement that is executed as often as
there are transactions, and that samples show within them, belongs to each. Where that decides nothing, a
transaction that had changed no row while its client paused tells that its changes came after the pause.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

from uncork.model.database.recording import LoggedStatement, LoggedTransaction
from uncork.model.database.transaction import OrderedStatement, StatementOrder
from uncork.model.database.wait_classes import IDLE
from uncork.model.template_words import short_template
from uncork.model.units import count_words, share_text
from uncork.profile.recording.transactions import LoggedSessions

LOG_SETTINGS: Final = (
    "set log_min_duration_statement = 0 and log_line_prefix = '%m [%p] %q%u@%d %a ' for a while, and give "
    "the log with --logs"
)
"""How a user lets the server log the order of statements."""
_CONTROL: Final = re.compile(r"(begin|start transaction|commit|end|rollback|abort)\b")
_BEGIN: Final = re.compile(r"(begin|start transaction)\b")
_CHANGES: Final = re.compile(
    r"(insert|update|delete|merge|with|call)\b|select\b.*\bfor (no key )?update\b", re.S
)
_ALONE_US: Final = 25
"""A statement that begins within this time of its transaction is a transaction of its own: a client needs
longer to receive the answer of BEGIN and to send a statement."""
_SIMILAR: Final = 0.1
_CUT: Final = 2
"""A statement is executed once in each transaction if both numbers differ by at most this fraction and this
many: the watch begins and ends in the middle of some."""
_MIXED: Final = 0.2
"""Ratio of samples from which on a statement is also sent without BEGIN."""
_SURE: Final = 0.75
"""Fraction of the samples of a statement that must begin on the same side of another one."""
_SAMPLES: Final = 3
_BEYOND: Final = 0.05
_MANY: Final = 20
"""A sample is surely later or earlier than a statement with so many samples if at most this fraction of them
is beyond it."""
_PAUSES: Final = 5
"""Fewest samples of a pause."""
_LEAST_PAUSE_NS: Final = 1e6
"""Shortest mean pause that is sent again; a load generator pauses a little after each answer, too."""

Row = Mapping[str, Any]


class NoOrder(Exception):
    """The samples do not show the order of the statements; the text is the reason, as a sentence."""


@dataclass(slots=True)
class _Seen:
    """When a statement began and ended in its transactions, in microseconds, and how often it was sampled.

    `held` says for each pause after it whether the transaction kept dead rows from VACUUM, as one that has
    changed rows does.
    """

    begun: list[int]
    ended: list[int]
    alone: int = 0
    held: list[bool] | None = None

    @property
    def place(self) -> float:
        return median(self.begun or self.ended)


def sampled_order(
    rows: Sequence[Row],
    samples: int,
    seconds: float,
    anchor: int,
    calls: Mapping[int, int],
    texts: Mapping[int, str],
) -> StatementOrder:
    """Return the transactions of an application that execute statement `anchor`.

    Args:
        rows: the application's sessions in samples of a watch (rows of database_activity).
        samples: how many samples were taken.
        seconds: length of the watch.
        anchor: the statement's template, which each of the transactions executes once.
        calls: executions during the watch, by template.
        texts: the text of each template.

    Raises NoOrder if the samples do not show it.
    """
    count = calls.get(anchor, 0)
    seen = _seen(rows, texts)
    if not count or anchor not in seen:
        raise NoOrder("The samples do not show its transactions.")
    own = seen[anchor]
    if _is_alone(own, rows, texts):
        sessions = sum(row["template"] == anchor for row in rows) / max(1, samples)
        basis = ("The statement is a transaction of its own, as samples of sessions showed.",)
        alone = (OrderedStatement(anchor),)
        return StatementOrder(alone, count, seconds, sessions, "samples", block=False, basis=basis)
    if own.alone > _MIXED * len(own.begun) + _CUT:
        raise NoOrder(
            f'"{short_template(texts[anchor])}" is executed in other transactions, too, which samples do not '
            f"tell apart: {LOG_SETTINGS}."
        )
    members = {
        number: found
        for number, found in seen.items()
        if _is_once(calls.get(number, 0), count) and len(found.begun) + len(found.ended) > found.alone
    }
    order = sorted(members, key=lambda member: members[member].place)
    for number in order:
        if number != anchor and not _is_sure(members[number], own):
            raise NoOrder(
                f'The samples do not show whether "{short_template(texts[number])}" comes before or after '
                f'"{short_template(texts[anchor])}": {LOG_SETTINGS}.'
            )
    pauses = {number: _pause_ns(rows, number, samples, seconds, count) for number in order}
    order += _unseen(order, pauses, members, calls, count, texts)
    open_rows = sum(row["template"] in order and row["transaction_us"] is not None for row in rows)
    begins = [number for number in texts if _BEGIN.match(texts[number])]
    left_out = sum(1 for number in seen if number not in order)
    return StatementOrder(
        statements=tuple(OrderedStatement(number, pauses.get(number, 0.0)) for number in order),
        count=count,
        seconds=seconds,
        sessions=open_rows / max(1, samples),
        origin="samples",
        first_ns=sum(_pause_ns(rows, number, samples, seconds, count) for number in begins),
        basis=tuple(_basis(len(order), samples, left_out)),
    )


def logged_order(
    found: LoggedSessions, template_of: Callable[[str], int | None], anchor: int
) -> StatementOrder:
    """Return those transactions of a log that take most time, of all that execute statement `anchor`.

    `template_of` returns the template of a statement's text in the watch; None if the watch does not have it.
    Raises NoOrder if the log has no such transaction, or the watch lacks one of its statements.
    """
    by_shape: dict[tuple[int | None, ...], list[LoggedTransaction]] = defaultdict(list)
    for transaction in found.transactions:
        shape = tuple(template_of(statement.text) for statement in _inner(transaction))
        if anchor in shape:
            by_shape[shape].append(transaction)
    if not by_shape:
        raise NoOrder("The log has no whole transaction with its statement.")
    open_us = {
        shape: sum(transaction.end_us - transaction.begin_us for transaction in alike)
        for shape, alike in by_shape.items()
    }
    shape = max(open_us, key=open_us.__getitem__)
    chosen = by_shape[shape]
    if any(number is None for number in shape):
        raise NoOrder("The log has statements in its transactions that the watch did not see.")
    begin = min(transaction.begin_us for transaction in chosen)
    end = max(transaction.end_us for transaction in chosen)
    block = len(chosen[0].statements) > len(shape)
    pauses = []
    for alike in list(zip(*(transaction.statements for transaction in chosen), strict=True))[block:]:
        pause_ns = 1000.0 * fmean(statement.pause_us for statement in alike)
        pauses.append(pause_ns if pause_ns >= _LEAST_PAUSE_NS else 0.0)
    after = pauses[1:] if block else [0.0]
    part = len(chosen) / sum(map(len, by_shape.values()))
    many, taken = count_words(len(shape), "statement"), count_words(len(chosen), "transaction")
    order = "That it has one statement" if len(shape) == 1 else f"The order of the {many}"
    return StatementOrder(
        statements=tuple(
            OrderedStatement(number, pause)
            for number, pause in zip(shape, after, strict=True)
            if number is not None
        ),
        count=len(chosen),
        seconds=(end - begin) / 1e6,
        sessions=open_us[shape] / max(1, end - begin),
        origin="log",
        block=block,
        first_ns=pauses[0] if block else 0.0,
        basis=(
            f"{order} and the mean pauses come from {taken} of the log, {share_text(part)} "
            "of those with the statement.",
        ),
    )


def _inner(transaction: LoggedTransaction) -> Sequence[LoggedStatement]:
    statements = transaction.statements
    return statements[1:-1] if _CONTROL.match(statements[0].text.strip().lower()) else statements


def _seen(rows: Sequence[Row], texts: Mapping[int, str]) -> dict[int, _Seen]:
    found: dict[int, _Seen] = defaultdict(lambda: _Seen([], [], held=[]))
    for row in rows:
        template = row["template"]
        age, since = row["transaction_us"], row["state_us"]
        if template is None or age is None or since is None or _CONTROL.match(texts.get(template, "")):
            continue
        one = found[template]
        if str(row["state"] or "").startswith(IDLE):
            one.ended.append(age - since)
            if one.held is not None:
                one.held.append(row["held_age"] is not None)
        elif age - since <= _ALONE_US:
            one.alone += 1
        else:
            one.begun.append(age - since)
    return dict(found)


def _is_alone(anchor: _Seen, rows: Sequence[Row], texts: Mapping[int, str]) -> bool:
    """Return whether a statement is a transaction of its own.

    Its client never pauses after it, and it begins with its transaction, or the application has no others.
    The server's count of BEGIN decides nothing: it counts a prepared one only once.
    """
    if anchor.ended:
        return False
    others = any(
        str(row["state"] or "").startswith(IDLE) or _CONTROL.match(texts.get(row["template"], ""))
        for row in rows
    )
    return anchor.alone > len(anchor.begun) or not others


def _is_once(calls: int, count: int) -> bool:
    return abs(calls - count) <= _SIMILAR * count + _CUT


def _is_sure(one: _Seen, anchor: _Seen) -> bool:
    """Return whether a statement surely begins before, or surely after, the anchor does.

    One sample suffices if it is beyond nearly all of the anchor: in other transactions, the anchor begins at
    about the same time. Otherwise several samples have to be on one side. A short anchor before a pause is
    seldom seen at its begin, but its end is known whenever a sample shows the pause.
    """
    ended = sorted(anchor.ended)
    if len(ended) >= _MANY and one.begun and min(one.begun) > ended[int((1 - _BEYOND) * (len(ended) - 1))]:
        return True
    times = one.begun or one.ended
    others = sorted((anchor.begun if one.begun and anchor.begun else anchor.ended) or anchor.begun)
    least, most = others[int(_BEYOND * len(others))], others[int((1 - _BEYOND) * (len(others) - 1))]
    clear = {time > most for time in times if time < least or time > most}
    if len(others) >= _MANY and len(clear) == 1:
        return True
    after = sum(time > median(others) for time in times) / len(times)
    return len(times) >= _SAMPLES and (after >= _SURE or after <= 1 - _SURE)


def _unseen(
    order: Sequence[int],
    pauses: Mapping[int, float],
    members: Mapping[int, _Seen],
    calls: Mapping[int, int],
    count: int,
    texts: Mapping[int, str],
) -> list[int]:
    """Return the changes that no sample shows, if they surely come after the only pause.

    Such statements are executed as often as the transactions. A transaction that had changed no row during
    the pause executes its changes later. What only reads holds no lock that others wait for: it is left out.
    """
    unseen = [
        number
        for number, times in calls.items()
        if number not in members and _is_once(times, count) and _CHANGES.match(texts.get(number, ""))
    ]
    if not unseen:
        return []
    long = [number for number in order if pauses[number]]
    held = [each for number in long for each in members[number].held or ()]
    if len(long) == 1 and long[0] == order[-1] and held and sum(held) <= (1 - _SURE) * len(held):
        return unseen
    raise NoOrder(
        f'The samples do not show where in its transactions "{short_template(texts[unseen[0]])}" is: '
        f"{LOG_SETTINGS}."
    )


def _pause_ns(rows: Sequence[Row], template: int, samples: int, seconds: float, count: int) -> float:
    idle = sum(row["template"] == template and str(row["state"] or "").startswith(IDLE) for row in rows)
    pause_ns = idle / max(1, samples) * seconds * 1e9 / count
    return pause_ns if idle >= _PAUSES and pause_ns >= _LEAST_PAUSE_NS else 0.0


def _basis(statements: int, samples: int, left_out: int) -> list[str]:
    many, taken = count_words(statements, "statement"), count_words(samples, "sample")
    order = "That it has one statement" if statements == 1 else f"The order of the {many}"
    found = [f"{order} comes from {taken} of sessions, and the pauses are means of the watch."]
    if statements > 2:
        found.append(
            "Each is surely before or after the finding's statement; the rest of the order is only likely."
        )
    if left_out:
        verb = "is" if left_out == 1 else "are"
        others = f"{count_words(left_out, 'other statement')} of the application, executed at other rates,"
        found.append(f"{others[:1].upper()}{others[1:]} {verb} left out.")
    return found
