"""Statements that wait for a lock of another statement, as logs show them (log_lock_waits). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule, worth
from uncork.model.database.finding import Candidate, Finding
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_duration

__all__ = ["RULE"]


def _find(seen: Evidence) -> Iterator[Finding]:
    """A watched server has the waits that are too short for deadlock_timeout too, so it is asked instead."""
    log = seen.log
    if log is None or seen.database is not None or log.first_us is None or log.last_us is None:
        return
    for one in log.blocking:
        bill = seen.bill_of_seconds(one.sum_ns / 1e9)
        if not worth(bill):
            continue
        who = f"application {one.holding_application}" if one.holding_application else "another session"
        number = seen.log_numbers.get(-1 if one.waiting_number is None else one.waiting_number)
        evidence = [
            f"{count_words(one.waits, 'wait')} longer than deadlock_timeout took "
            f"{format_duration(float(one.sum_ns))} in total, at most {format_duration(float(one.max_ns))}."
        ]
        if one.holding_text:
            evidence.append(f"The holder's last statement was {short_template(one.holding_text, 90)}")
        yield Finding(
            RULE.name,
            f"{count_words(one.waits, 'statement')} waited for locks that {who} held",
            objects=(one.holding_application,) if one.holding_application else (),
            bill=bill,
            templates=() if number is None else (number,),
            statement=one.waiting_text,
            evidence=tuple(evidence),
            candidates=(
                Candidate("client", "Shorten the transaction that holds the locks, or lock later in it."),
            ),
            proof="Compare both orders or lengths of the transaction with uncork run, under as many clients.",
        )


RULE: Final = Rule("lock-wait", _find)
