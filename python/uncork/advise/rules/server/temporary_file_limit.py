"""Statements that the server cancels because their temporary files exceed temp_file_limit. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules.server.counted import setting
from uncork.advise.rules.server.refused import refusals, when
from uncork.model.database.finding import Candidate, Finding
from uncork.model.results.log import ErrorFacts
from uncork.model.template_words import short_template
from uncork.model.units import count_words

_SETTING: Final = "temp_file_limit"
"""Part of the message in any language, because names of settings are not translated."""
_LIMIT: Final = re.compile(r"temp_file_limit\W*\((\d+)\s*kB\)")
"""From PostgreSQL 18 on, the name is in quotes."""


def _find(seen: Evidence) -> Iterator[Finding]:
    """A statement that exceeds the limit does so each time, so one failure is a fault."""
    found = refusals(seen, _exceeds)
    if not found:
        return
    many = sum(one.count for one in found)
    statements = tuple(dict.fromkeys(one.statement for one in found if one.statement))
    limit = next((match[1] for one in found if (match := _LIMIT.search(one.example))), "")
    size = f" ({int(limit) >> 10} MB)" if limit and int(limit) >= 1024 else f" ({limit} kB)" if limit else ""
    evidence = [f"It happened {when(found)}."]
    evidence += [f"One of them was: {short_template(text, 90)}" for text in statements[1:3]]
    yield Finding(
        RULE.name,
        f"Temporary files of {count_words(many, 'statement')} exceeded {_SETTING}{size}, so they failed",
        objects=(_SETTING,),
        bill=None,
        statement=statements[0] if statements else "",
        cost=count_words(many, "failed statement"),
        evidence=tuple(evidence),
        candidates=tuple(_candidates(limit, seen)),
        proof="Execute the statement on a copy with EXPLAIN (ANALYZE, BUFFERS): it shows how much its sorts "
        "and hashes write.",
    )


def _exceeds(error: ErrorFacts) -> bool:
    return _SETTING in error.example or _SETTING in error.message


def _candidates(limit: str, evidence: Evidence) -> Iterator[Candidate]:
    yield Candidate(
        "client",
        "Look at the statement's plan for a join without a condition, and for sorts and hashes of more rows "
        "than the client needs: filter earlier, or let an index return the rows in order.",
    )
    old = setting(_SETTING, evidence) or (f"{limit}kB" if limit else "")
    kilobytes = int(limit) if limit else 0
    yield Candidate(
        "setting",
        f"Raise {_SETTING}, if the disk has the space for each session that sorts at the same time.",
        sql=f"ALTER SYSTEM SET {_SETTING} = '{2 * kilobytes}kB'; SELECT pg_reload_conf();" if limit else "",
        undo=f"ALTER SYSTEM SET {_SETTING} = '{old}'; SELECT pg_reload_conf();" if limit and old else "",
        against=("The limit protects the disk from a statement that writes without end.",),
    )


RULE: Final = Rule("temporary-file-limit", _find)
