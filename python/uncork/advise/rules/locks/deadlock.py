"""Transactions that wait for one another until the server cancels one of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.locks.causes import Cause, blockers_by_cause
from uncork.advise.rules.writes.written import written
from uncork.advise.servers import on_servers, servers_of
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.results.log import ErrorFacts
from uncork.model.template_words import short_template
from uncork.model.units import count_words

_LEAST: Final = 3
_PER_S: Final = 0.02
"""Deadlocks in all, and per second, from which on they are no accident: more than one a minute."""
_RELATION: Final = re.compile(r"relation \"([^\"]+)\"")


def deadlocks(evidence: Evidence) -> float:
    """Return how many deadlocks the server broke up while it was watched."""
    if evidence.rates is not None:
        return evidence.rates.deadlocks * evidence.seconds
    counters = () if evidence.database is None else evidence.database.counters
    return sum(counter.delta for counter in counters if counter.counter == "deadlocks")


def _find(evidence: Evidence) -> Iterator[Finding]:
    """The server looks for a deadlock only after deadlock_timeout (1 s), so each costs that time at least."""
    number = round(deadlocks(evidence))
    if number < _LEAST or number / evidence.seconds < _PER_S:
        return
    causes = blockers_by_cause(evidence)
    found = causes.get(Cause.DEADLOCK, [])
    held = sum(one.sessions for one in found)
    # A log has a wait that ended in a deadlock, unlike most others, which are too short for it.
    bill = evidence.bill_of_waiting(
        "Lock", held if evidence.database is not None else evidence.of_class("Lock")
    )
    waiters = sorted(
        (
            waiter
            for one in (found or [one for cause in causes.values() for one in cause])
            for waiter in one.waiters
        ),
        key=lambda waiter: -waiter.sessions,
    )
    numbers = tuple(dict.fromkeys(waiter.template for waiter in waiters if waiter.template is not None))
    known = [
        (evidence.statements[number], written(evidence.statements[number]))
        for number in numbers
        if number in evidence.statements
    ]
    texts = [statement.text for statement, _ in known]
    tables = tuple(dict.fromkeys(what.table for _, what in known if what is not None))
    failed = [] if evidence.log is None else [error for error in evidence.log.errors if _is_deadlock(error)]
    servers = servers_of(failed)
    if not known and failed:
        named = (_RELATION.search(one.context) for one in failed)
        tables = tuple(dict.fromkeys(match[1] for match in named if match is not None))
        texts = [one.statement for one in failed if one.statement]
    name = tables[0] if tables else "the database"
    in_all = f" in {count_words(round(evidence.seconds), 'second')}"
    keys = next((what.keys for _, what in known if what is not None and what.keys), ())
    yield Finding(
        RULE.name,
        f"{count_words(number, 'deadlock')}{in_all}: transactions lock rows of {name} in different orders",
        objects=tables,
        bill=bill if worth(bill) else None,
        templates=numbers if worth(bill) else (),
        statement=texts[0] if texts else "",
        cost="" if worth(bill) else f"{count_words(number, 'failed transaction')}",
        evidence=(
            *(f"Sessions that waited for one another were in: {short_template(text)}" for text in texts[:3]),
            *([f"The transactions failed{on_servers(servers)}."] if servers else []),
        ),
        candidates=(
            Candidate(
                "client",
                "Let all transactions lock rows in the same order, for example sorted by their key, before "
                "they change them.",
                sql=_in_order(tables[0], keys[0]) if tables and keys else "",
            ),
            Candidate("client", "Retry transactions that fail with SQLSTATE 40P01 (deadlock_detected)."),
        ),
        proof="After the change, pg_stat_database.deadlocks must not grow.",
    )


def _is_deadlock(error: ErrorFacts) -> bool:
    return error.sqlstate == "40P01" or (not error.sqlstate and error.message == "deadlock detected")


def _in_order(table: str, column: str) -> str:
    key = quoted(column)
    return f"SELECT 1 FROM {sql_name(table)} WHERE {key} = ANY ($1) ORDER BY {key} FOR UPDATE;"  # noqa: S608


RULE: Final = Rule("deadlock", _find)
