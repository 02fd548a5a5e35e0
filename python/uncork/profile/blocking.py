"""Find which sessions block others, from samples that include blockers. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from uncork.model.database.wait_classes import IDLE
from uncork.model.records import build_from
from uncork.model.results.database import BlockerFacts, WaiterFacts
from uncork.profile.activity import wait_class, weights

Row = Mapping[str, Any]
_Who = tuple[str, str, str, int | None]
"""Application, role, state and template of a root blocker."""
PREPARED: Final = "prepared transaction"
_UNSEEN: Final = "not seen"
_MOST_WAITERS: Final = 20


@dataclass(slots=True)
class _Tally:
    held: float = 0.0
    most: int = 0
    chain: int = 0
    transaction_us: int | None = None
    idle_us: int | None = None
    open_us: float = 0.0
    """Ages of the root's transaction, weighted by blocked time, summed up; `known` sums up the weights."""
    known: float = 0.0
    processes: set[int] = field(default_factory=set)
    waiters: dict[tuple[str, int | None, str], float] = field(default_factory=lambda: defaultdict(float))


def find_blockers(
    samples: Sequence[Row], rows: Sequence[Row], begun_us: int, ended_us: int, texts: Mapping[int, str]
) -> tuple[BlockerFacts, ...]:
    """Return the root blockers, the one that blocks the most first.

    A session that waits for several roots counts for each in equal parts, so that the sum equals the number
    of waiting sessions. Sessions that block one another, without a root, count as their own roots.
    """
    complete = [row for row in samples if row["blockers"]]
    shares = weights([row["time_us"] for row in complete], begun_us, ended_us)
    by_sample: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_sample[row["sample"]].append(row)
    tallies: dict[_Who, _Tally] = defaultdict(_Tally)
    for sample, share in zip(complete, shares, strict=True):
        _count(by_sample.get(sample["sample"], []), share, tallies)
    whole = max(1, ended_us - begun_us)
    ranked = sorted(tallies.items(), key=lambda item: (-item[1].held, str(item[0])))
    return tuple(_facts(who, tally, whole, texts) for who, tally in ranked)


def _count(rows: Sequence[Row], share: float, tallies: dict[_Who, _Tally]) -> None:
    present = {row["pid"]: row for row in rows}
    waiting = {
        row["pid"]: [int(number) for number in row["blocked_by"].split(",") if number]
        for row in rows
        if row["blocked_by"]
    }
    held: dict[_Who, int] = defaultdict(int)
    for pid, length in _rows(waiting).items():
        roots = _roots(pid, waiting)
        for root in roots:
            held_by = present.get(root)
            who: _Who = ("", "", PREPARED if root == 0 else _UNSEEN, None)
            if held_by is not None:
                names = (held_by["application"] or "", held_by["user"] or "")
                who = (*names, wait_class(held_by), held_by["template"])
            tally = tallies[who]
            part = share / len(roots)
            row = present[pid]
            tally.held += part
            tally.chain = max(tally.chain, length)
            tally.processes.add(root)
            open_us = None if held_by is None else held_by["transaction_us"]
            if open_us is not None:
                tally.transaction_us = max(tally.transaction_us or 0, open_us)
                tally.open_us += open_us * part
                tally.known += part
            idle_us = held_by.get("state_us") if held_by is not None and who[2] == IDLE else None
            if idle_us is not None:
                tally.idle_us = max(tally.idle_us or 0, idle_us)
            tally.waiters[row["application"] or "", row["template"], row["wait_event"] or ""] += part
            held[who] += 1
    for who, number in held.items():
        tallies[who].most = max(tallies[who].most, number)


def _roots(pid: int, waiting: Mapping[int, Sequence[int]]) -> set[int]:
    """Return the roots that a session waits for; the session itself if all of them wait for one another."""
    seen, ahead, found = {pid}, list(waiting[pid]), set()
    while ahead:
        one = ahead.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in waiting:
            ahead += waiting[one]
        else:
            found.add(one)
    return found or {pid}


def _rows(waiting: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return for each session the length of the longest chain from it to a root, including itself.

    Not recursive, because a chain can be a thousand sessions long.
    """
    known: dict[int, int] = {}
    for first in waiting:
        path = {first: iter(waiting[first])}
        while path:
            pid, ahead = next(reversed(path.items()))
            further = (pid for pid in ahead if pid in waiting and pid not in known and pid not in path)
            following = next(further, None)
            if following is not None:
                path[following] = iter(waiting[following])
                continue
            known[pid] = 1 + max((known.get(number, 0) for number in waiting[pid]), default=0)
            del path[pid]
    return known


def _facts(who: _Who, tally: _Tally, whole: float, texts: Mapping[int, str]) -> BlockerFacts:
    application, user, state, template = who
    ranked = sorted(tally.waiters.items(), key=lambda item: (-item[1], str(item[0])))
    return build_from(
        BlockerFacts,
        tally,
        application=application,
        user=user,
        state=state,
        template=template,
        text="" if template is None else texts.get(template, ""),
        sessions=tally.held / whole,
        transaction_ns=None if tally.transaction_us is None else tally.transaction_us * 1000,
        transaction_mean_ns=tally.open_us / tally.known * 1000 if tally.known else None,
        idle_ns=None if tally.idle_us is None else tally.idle_us * 1000,
        processes=len(tally.processes),
        waiters=tuple(
            WaiterFacts(name, number, "" if number is None else texts.get(number, ""), event, held / whole)
            for (name, number, event), held in ranked[:_MOST_WAITERS]
        ),
    )
