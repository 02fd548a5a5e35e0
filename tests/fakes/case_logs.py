"""A case's log half on made-up logs: a thousand updates before, one after, twenty look-ups beside them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from fakes.logs import BEGIN_US, line, result
from uncork.analysis.log.case import MEASURES, case_logs_result
from uncork.analysis.log.half import LogHalf
from uncork.model.results.case_logs import CaseLogs, SentBatch
from uncork.report.log.case_logs import answer_case_logs

__all__ = ["case_logs", "sent"]

UPDATE = "INSERT INTO vuln (id, name) SELECT id, name FROM (VALUES ({number}, 'CVE')) AS batch (id, name)"
BULK = "INSERT INTO vuln (id, name) SELECT id, name FROM unnest('{1,2}'::int[], '{a,b}'::text[]) AS batch"
IDLE = pa.table({"application": ["quay", "quay", "psql"], "executions": [6, 4, 1], "sum_us": [1000, 2000, 9]})


def sent(
    begin_ms: int,
    end_ms: int,
    *,
    until_ms: int | None = None,
    variant: str = "pipeline",
    title: str = "",
    log_bytes: int = 5_000_000,
) -> SentBatch:
    """Return a batch that was sent and answered so many milliseconds after 1970."""
    until = end_ms + 3000 if until_ms is None else until_ms
    return SentBatch(variant, title, begin_ms * 1000, end_ms * 1000, until * 1000, log_bytes)


def case_logs(folder: Path, *, updater: str = "libvuln", idle: pa.Table = IDLE) -> CaseLogs:
    """Return what two made-up logs tell."""
    lookups = "".join(
        line(f"SELECT name FROM repository WHERE id = {n}", at_ms=n * 100, ms=0.4, application="quay", pid=8)
        for n in range(20)
    )
    updates = "".join(
        line(UPDATE.format(number=n), at_ms=n * 2, ms=2.0, application="libvuln") for n in range(1000)
    )
    bulk = line(BULK, at_ms=550, ms=500.0, application="libvuln")
    later = lookups.replace("duration: 0.400", "duration: 0.300")
    logs = (result(folder / "before.log", lookups + updates), result(folder / "after.log", later + bulk))
    begin = BEGIN_US // 1000
    half = LogHalf(
        case="clair",
        question="Whose are the queries of a spike?",
        source="A write-up",
        levels={},
        workload="update",
        updater=updater,
        ways=("pipeline", "unnest"),
        background="quay",
        setup="",
        script="",
        rate=20,
        clients=1,
        figures=tuple(
            {"name": name, "measure": name, "before": "250 ms", "after": "2.5 ms", "note": "there otherwise"}
            for name in MEASURES
        ),
    )
    batches = (
        sent(begin, begin + 2_500, title="what a driver's batch call does"),
        sent(begin, begin + 600, variant="unnest", title="an array a column", log_bytes=130_000),
    )
    levels = (("stored", "10000"), ("rows", "1000"))
    return answer_case_logs(case_logs_result(half, levels, 1000, sent=batches, idle=idle, logs=logs))
