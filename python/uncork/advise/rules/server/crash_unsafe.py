"""Settings with which a crash of the machine can destroy the data. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules.server.counted import setting
from uncork.model.database.finding import Candidate, Finding

_RISKS: Final = {
    "fsync": ("PostgreSQL does not wait until the disk has what it writes, not even for checkpoints.", ""),
    "full_page_writes": (
        "A page that a crash leaves half written cannot be repaired from the WAL.",
        "File systems that never write half a page, such as ZFS, do not need it.",
    ),
}
"""What each setting risks if it is off, and what speaks against the finding."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    for name, (risk, unless) in _RISKS.items():
        if setting(name, evidence) != "off":
            continue
        yield Finding(
            RULE.name,
            f"Setting {name} is off, so a crash of the machine can corrupt the database",
            objects=(name,),
            bill=None,
            cost="the data, after a crash of the machine",
            evidence=(risk,),
            candidates=(
                Candidate(
                    "setting",
                    f"Turn {name} on, unless all data can be loaded again.",
                    sql=f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();",
                    undo=f"ALTER SYSTEM SET {name} = off; SELECT pg_reload_conf();",
                    against=(
                        "Writing becomes slower. synchronous_commit = off is nearly as fast, and safe.",
                    ),
                ),
            ),
            against=(unless,) if unless else (),
            proof=f"SHOW {name};",
        )


RULE: Final = Rule("crash-unsafe", _find)
