"""Limits that the server refused to exceed: of connections, and of temporary files. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from uncork.advise.changes import Setting
from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.servers import on_servers, servers_of
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted
from uncork.model.results.log import ErrorFacts
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count, share_text

# ---- what the log says about limits that the server refused to exceed: how often, and when ----


def refusals(evidence: Evidence, wanted: Callable[[ErrorFacts], bool]) -> tuple[ErrorFacts, ...]:
    """Return the errors of the log that are wanted, the most frequent first."""
    errors = () if evidence.log is None else evidence.log.errors
    return tuple(sorted(filter(wanted, errors), key=lambda error: -error.count))


def when(found: Sequence[ErrorFacts]) -> str:
    """Return when errors happened as words: once, or from the first to the last; and on which servers."""
    first = min((error.first_us for error in found if error.first_us is not None), default=None)
    last = max((error.last_us for error in found if error.last_us is not None), default=None)
    many = count_words(sum(error.count for error in found), "time") + on_servers(servers_of(found))
    if first is None or last is None:
        return many
    if _moment(first) == _moment(last):
        return f"{many}, at {_moment(first)} UTC"
    return f"{many}, from {_moment(first)} to {_moment(last)} UTC"


def _moment(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"


# ---- connections that the server refuses, or soon will, because all are taken ----


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
_MAX_CONNECTIONS: Final = "max_connections"
_RESERVED: Final = ("superuser_reserved_connections", "reserved_connections")


def _refused(error: ErrorFacts) -> bool:
    text = f"{error.message} {error.example}"
    return (error.sqlstate == _STATE or any(words in text for words in _WORDS)) and _STANDBYS not in text


def _find_connections(evidence: Evidence) -> Iterator[Finding]:
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
    most = evidence.setting(_MAX_CONNECTIONS)
    reserved = map(evidence.setting, _RESERVED)
    return int(most) - sum(map(int, filter(str.isdigit, reserved))) if most.isdigit() else None


def _whole_limit(found: Sequence[ErrorFacts], taken: int | None, most: int | None, seen: Evidence) -> Finding:
    evidence = []
    if found:
        refused = sum(error.count for error in found)
        headline = f"The server refused {count_words(refused, 'connection')}: all connections were taken"
        cost = count_words(refused, "refused connection")
        evidence.append(f"The server refused connections {when(found)}.")
        evidence += [f"{count_words(error.count, 'time')}: {error.example}" for error in found[:3]]
    else:
        numbers = f"{format_count(taken or 0)} of {format_count(most or 0)}"
        headline = f"{numbers} connections are open, so the server will soon refuse more"
        cost = f"{share_text((taken or 0) / max(1, most or 1))} of the connections"
    if taken is not None and most is not None:
        limit = f"{format_count(most)} that roles without reserved connections can have"
        evidence.append(f"During the watch, {format_count(taken)} connections were open, of {limit}.")
        busy = f"{seen.sessions:.1f}"
        evidence.append(f"On average {busy} of them were busy; the others waited for their clients.")
    return CONNECTIONS.finding(
        headline,
        objects=(_MAX_CONNECTIONS,),
        bill=None,
        cost=cost,
        evidence=evidence,
        candidates=_fewer_connections(taken, seen),
        proof="Watch the server again at the same hour: fewer connections must be open, and none refused.",
    )


def _fewer_connections(taken: int | None, evidence: Evidence) -> Iterator[Candidate]:
    yield Candidate(
        "client",
        "Let clients share connections: limit the pools of all application processes together to fewer than "
        "max_connections, or put PgBouncer (pool_mode = transaction) before the server.",
        against=(
            "Session state (SET, LISTEN, temporary tables) does not survive a transaction of PgBouncer.",
        ),
    )
    old = evidence.setting("idle_session_timeout")
    if old and taken is not None and taken - evidence.sessions >= _IDLE * taken:
        yield Setting("idle_session_timeout", "'10min'", f"'{old}'").candidate(
            "Close connections that have been idle for long, with idle_session_timeout.",
            "A pool that does not test its connections then gets errors.",
        )
    current = evidence.setting(_MAX_CONNECTIONS)
    doubled = str(2 * int(current)) if current.isdigit() else None
    yield Setting(_MAX_CONNECTIONS, doubled, current, restart=True).candidate(
        "Raise max_connections, if memory and processors can serve as many active sessions.",
        "It takes effect at a restart; standbys need the higher value first.",
        "Each session takes memory, and more busy sessions than processors make each other slower.",
    )


def _own_limit(error: ErrorFacts, kind: str, name: str) -> Finding:
    """Return the finding that a role or a database has a limit of its own (CONNECTION LIMIT)."""
    owner = f"{kind} {name}"
    return CONNECTIONS.finding(
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


CONNECTIONS: Final = Rule("connection-limit", _find_connections)


# ---- statements that the server cancels because their temporary files exceed temp_file_limit ----


_FILE_LIMIT: Final = "temp_file_limit"
"""Part of the message in any language, because names of settings are not translated."""
_LIMIT: Final = re.compile(r"temp_file_limit\W*\((\d+)\s*kB\)")
"""From PostgreSQL 18 on, the name is in quotes."""


def _find_temporary_files(seen: Evidence) -> Iterator[Finding]:
    """A statement that exceeds the limit does so each time, so one failure is a fault."""
    found = refusals(seen, _exceeds)
    if not found:
        return
    many = sum(error.count for error in found)
    statements = tuple(dict.fromkeys(error.statement for error in found if error.statement))
    limit = next((match[1] for error in found if (match := _LIMIT.search(error.example))), "")
    size = f" ({int(limit) >> 10} MB)" if limit and int(limit) >= 1024 else f" ({limit} kB)" if limit else ""
    evidence = [f"It happened {when(found)}."]
    evidence += [f"One of them was: {short_template(text, 90)}" for text in statements[1:3]]
    yield Finding(
        TEMPORARY_FILES.name,
        f"Temporary files of {count_words(many, 'statement')} exceeded {_FILE_LIMIT}{size}, so they failed",
        objects=(_FILE_LIMIT,),
        bill=None,
        statement=statements[0] if statements else "",
        cost=count_words(many, "failed statement"),
        evidence=tuple(evidence),
        candidates=tuple(_smaller_files(limit, seen)),
        proof="Execute the statement on a copy with EXPLAIN (ANALYZE, BUFFERS): it shows how much its sorts "
        "and hashes write.",
    )


def _exceeds(error: ErrorFacts) -> bool:
    return _FILE_LIMIT in error.example or _FILE_LIMIT in error.message


def _smaller_files(limit: str, evidence: Evidence) -> Iterator[Candidate]:
    yield Candidate(
        "client",
        "Look at the statement's plan for a join without a condition, and for sorts and hashes of more rows "
        "than the client needs: filter earlier, or let an index return the rows in order.",
    )
    old = evidence.setting(_FILE_LIMIT) or (f"{limit}kB" if limit else "")
    doubled = f"'{2 * int(limit)}kB'" if limit else None
    yield Setting(_FILE_LIMIT, doubled, f"'{old}'").candidate(
        f"Raise {_FILE_LIMIT}, if the disk has the space for each session that sorts at the same time.",
        "The limit protects the disk from a statement that writes without end.",
    )


TEMPORARY_FILES: Final = Rule("temporary-file-limit", _find_temporary_files)
