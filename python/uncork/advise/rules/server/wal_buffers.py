"""WAL buffers that fill up, so that sessions write the WAL before they commit. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules.server.counted import grown, setting_bytes, size_text, wal_writes
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import count_words, share_text

_PER_S: Final = 10.0
"""Times per second that WAL buffers are full."""
_WANTED: Final = 64 << 20
"""The proposed size: four segments of WAL. The default is a 32nd of shared buffers, at most 16 MB."""
_WRITES: Final = frozenset({"walwrite", "walbufmapping", "walinsert"})
"""Wait events of sessions that write WAL, or wait until another one has written it, or until others have put
their WAL into the buffers that must be written. A flush is none of them: each commit needs one."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    """Writes because of full buffers have their part of all time that sessions spend on writing WAL."""
    full, writes = grown(evidence, "wal_buffers_full"), wal_writes(evidence)
    now = setting_bytes("wal_buffers", evidence)
    if full < _PER_S * evidence.seconds or now is None or now >= _WANTED:
        return
    part = min(1.0, full / writes) if writes else 1.0
    yield Finding(
        RULE.name,
        f"The {size_text(now)} of wal_buffers were full {count_words(round(full), 'time')}",
        objects=("wal_buffers",),
        bill=evidence.bill(lambda piece: part if piece.wait_event.lower() in _WRITES else 0.0),
        evidence=(
            "A session that finds them full must write WAL itself before it can go on, while others wait."
            + (f" That was {share_text(part)} of all writes of WAL." if writes else ""),
        ),
        candidates=(
            Candidate(
                "setting",
                "Raise wal_buffers, and restart the server.",
                sql=f"ALTER SYSTEM SET wal_buffers = '{_WANTED >> 20}MB';",
                undo="ALTER SYSTEM RESET wal_buffers;",
                against=("The setting takes effect only after a restart.",),
            ),
        ),
        proof="Compare both settings with uncork run, under as many clients as the server has.",
    )


RULE: Final = Rule("wal-buffers", _find)
