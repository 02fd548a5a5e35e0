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


def deadlocks(seen: Evidence) -> float:
    """Return how many deadlocks the server broke up while it was watched."""
    if seen.rates is not None:
        return seen.rates.deadlocks * seen.seconds
    counters = () if seen.database is None else seen.database.counters
    return sum(counter.delta for counter in counters if counter.counter == "deadlocks")


def _find(seen: Evidence) -> Iterator[Finding]:
    """The server looks for a deadlock only after deadlock_timeout (1 s), so each costs that time at least."""
    number = round(deadlocks(seen))
    if number < _LEAST or number / seen.seconds < _PER_S:
        return
    causes = blockers_by_cause(seen)
    found = causes.get(Cause.DEADLOCK, [])
    held = sum(one.sessions for one in found)
    # A log has a wait that ended in a deadlock, unlike most others, which are too short for it.
    bill = seen.bill_of_waiting("Lock", held if seen.database is not None else seen.of_class("Lock"))
    waiters = sorted(
        (
            waiter
            for one in (found or [one for each in causes.values() for one in each])
            for waiter in one.waiters
        ),
        key=lambda one: -one.sessions,
    )
    numbers = tuple(dict.fromkeys(waiter.template for waiter in waiters if waiter.template is not None))
    known = [
        (seen.statements[each], written(seen.statements[each])) for each in numbers if each in seen.statements
    ]
    texts = [statement.text for statement, _ in known]
    tables = tuple(dict.fromkeys(what.table for _, what in known if what is not None))
    failed = [] if seen.log is None else [error for error in seen.log.errors if _is_deadlock(error)]
    servers = servers_of(failed)
    if not known and failed:
        named = (_RELATION.search(one.context) for one in failed)
        tables = tuple(dict.fromkeys(match[1] for match in named if match is not None))
        texts = [one.statement for one in failed if one.statement]
    name = tables[0] if tables else "the database"
    in_all = f" in {count_words(round(seen.seconds), 'second')}"
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


def _is_deadlock(one: ErrorFacts) -> bool:
    return one.sqlstate == "40P01" or (not one.sqlstate and one.message == "deadlock detected")


def _in_order(table: str, column: str) -> str:
    key = quoted(column)
    return f"SELECT 1 FROM {sql_name(table)} WHERE {key} = ANY ($1) ORDER BY {key} FOR UPDATE;"  # noqa: S608


RULE: Final = Rule("deadlock", _find)
