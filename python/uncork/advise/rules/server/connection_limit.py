"""Connections that the server refuses, or soon will, because all are taken. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules.server.counted import setting
from uncork.advise.rules.server.refused import refusals, when
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted
from uncork.model.results.log import ErrorFacts
from uncork.model.units import count_words, format_count, share_text

_NEAR: Final = 0.9
"""Fraction of the connections for ordinary roles from which on the limit is near. If clients open and close
connections independently, their number varies by its square root: at 87 of 97, it exceeds the limit for 13 %
of the time, and at 78 (80 %) for 2 %."""
_IDLE: Final = 0.5
"""Fraction of the connections that must be idle for an idle timeout to be of use."""
_STATE: Final = "53300"
_WORDS: Final = ("too many clients already", "remaining connection slots", "too many connections for")
_STANDBYS: Final = "max_wal_senders"
"""A refused standby has the same SQLSTATE."""
_OWN: Final = re.compile(r'too many connections for (role|database) "(.*)"')
_SETTING: Final = "max_connections"
_RESERVED: Final = ("superuser_reserved_connections", "reserved_connections")


def _refused(error: ErrorFacts) -> bool:
    text = f"{error.message} {error.example}"
    return (error.sqlstate == _STATE or any(words in text for words in _WORDS)) and _STANDBYS not in text


def _find(evidence: Evidence) -> Iterator[Finding]:
    whole: list[ErrorFacts] = []
    for refusal in refusals(evidence, _refused):
        own = _OWN.search(refusal.example) or _OWN.search(refusal.message)
        if own is None:
            whole.append(refusal)
        else:
            yield _own_limit(refusal, own[1], own[2])
    most = _limit(evidence)
    taken = None if evidence.database is None else evidence.database.connections
    near = taken is not None and most is not None and taken >= _NEAR * most
    if whole or near:
        yield _whole_limit(whole, taken, most, evidence)


def _limit(evidence: Evidence) -> int | None:
    """Return how many connections ordinary roles can have; None if the setting is unknown."""
    most = setting(_SETTING, evidence)
    reserved = (setting(name, evidence) for name in _RESERVED)
    return int(most) - sum(int(one) for one in reserved if one.isdigit()) if most.isdigit() else None


def _whole_limit(found: Sequence[ErrorFacts], taken: int | None, most: int | None, seen: Evidence) -> Finding:
    evidence = []
    refused = sum(one.count for one in found)
    if found:
        evidence.append(f"The server refused connections {when(found)}.")
        evidence += [f"{count_words(one.count, 'time')}: {one.example}" for one in found[:3]]
    if taken is not None and most is not None:
        limit = f"{format_count(most)} that roles without reserved connections can have"
        evidence.append(f"During the watch, {format_count(taken)} connections were open, of {limit}.")
        busy = f"{seen.sessions:.1f}"
        evidence.append(f"On average {busy} of them were busy; the others waited for their clients.")
    if found:
        headline = f"The server refused {count_words(refused, 'connection')}: all connections were taken"
        cost = f"{count_words(refused, 'refused connection')}"
    else:
        numbers = f"{format_count(taken or 0)} of {format_count(most or 0)}"
        headline = f"{numbers} connections are open, so the server will soon refuse more"
        cost = f"{share_text((taken or 0) / max(1, most or 1))} of the connections"
    return Finding(
        RULE.name,
        headline,
        objects=(_SETTING,),
        bill=None,
        cost=cost,
        evidence=tuple(evidence),
        candidates=tuple(_candidates(taken, seen)),
        proof="Watch the server again at the same hour: fewer connections must be open, and none refused.",
    )


def _candidates(taken: int | None, evidence: Evidence) -> Iterator[Candidate]:
    yield Candidate(
        "client",
        "Let clients share connections: limit the pools of all application processes together to fewer than "
        "max_connections, or put PgBouncer (pool_mode = transaction) before the server.",
        against=(
            "Session state (SET, LISTEN, temporary tables) does not survive a transaction of PgBouncer.",
        ),
    )
    old = setting("idle_session_timeout", evidence)
    if old and taken is not None and taken - evidence.sessions >= _IDLE * taken:
        yield Candidate(
            "setting",
            "Close connections that have been idle for long, with idle_session_timeout.",
            sql="ALTER SYSTEM SET idle_session_timeout = '10min'; SELECT pg_reload_conf();",
            undo=f"ALTER SYSTEM SET idle_session_timeout = '{old}'; SELECT pg_reload_conf();",
            against=("A pool that does not test its connections then gets errors.",),
        )
    current = setting(_SETTING, evidence)
    doubled = str(2 * int(current)) if current.isdigit() else ""
    yield Candidate(
        "setting",
        "Raise max_connections, if memory and processors can serve as many active sessions.",
        sql=f"ALTER SYSTEM SET max_connections = {doubled};" if doubled else "",
        undo=f"ALTER SYSTEM SET max_connections = {current};" if doubled else "",
        against=(
            "It takes effect at a restart; standbys need the higher value first.",
            "Each session takes memory, and more busy sessions than processors make each other slower.",
        ),
    )


def _own_limit(error: ErrorFacts, kind: str, name: str) -> Finding:
    """Return the finding that a role or a database has a limit of its own (CONNECTION LIMIT)."""
    owner = f"{kind} {name}"
    return Finding(
        RULE.name,
        f"The server refused {count_words(error.count, 'connection')} of {owner}, which has its own limit",
        objects=(name,),
        bill=None,
        cost=count_words(error.count, "refused connection"),
        evidence=(f"It happened {when([error])}.", error.example),
        candidates=(
            Candidate("client", f"Make the pools of all clients of {owner} together smaller than its limit."),
            Candidate(
                "client",
                f"Raise its limit with ALTER {kind.upper()} {quoted(name)} CONNECTION LIMIT.",
                against=("It leaves fewer connections for others.",),
            ),
        ),
        proof="After the change, the log must have no such error at the same hour.",
    )


RULE: Final = Rule("connection-limit", _find)
