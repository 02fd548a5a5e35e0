"""Join the evidence of stored runs, and find what is wrong with the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from uncork.analysis.database.result import stored_database_evidence
from uncork.analysis.log.evidence import costly_parts_of_log, evidence_of_log, executed_plans, log_seconds
from uncork.analysis.log.result import stored_log_result
from uncork.diagnosis.evidence import Evidence
from uncork.diagnosis.findings import RULES, costly_parts, find_findings
from uncork.errors import UsageError
from uncork.model.database.missing import Missing, Unplanned
from uncork.model.results.advice import AdviceResult, AdviceSource, LookedAt
from uncork.model.results.database import DatabaseResult
from uncork.model.results.log import LogResult
from uncork.store.layout import part_of, read_manifest

_TO_WATCH: Final = {
    "service": "add --postgres DSN to `uncork profile service`",
    "load": "repeat the load with --advise",
}
"""How to get a run of a kind that watches the database, too."""
_OTHER: Final = "name a run of `uncork profile db`, `uncork profile logs` or `uncork profile service`"


def advice_of(folders: Sequence[Path], command: str, uncork_version: str) -> AdviceResult:
    """Return the findings of stored runs: of a watched server, of logs, or of both together.

    Statements of a log and of a server are joined by the grammar's identity of their template.

    Raises:
        UsageError: if a run holds no evidence of a database, or there are two of a kind.
        StoreError: if a run is damaged.
    """
    database: tuple[DatabaseResult, Evidence] | None = None
    log: LogResult | None = None
    sources: list[AdviceSource] = []
    for kind, folder in (part for whole in folders for part in _parts(whole)):
        if kind == "database":
            if database is not None:
                raise UsageError(_two("watched servers", database[0].run.id, folder.name))
            database = stored_database_evidence(folder)
            sources.append(
                AdviceSource(folder.name, kind, database[0].run.server, round(database[1].seconds, 3))
            )
        else:
            if log is not None:
                raise UsageError(_two("logs", log.run.id, folder.name))
            log = stored_log_result(folder)
            files = tuple(file.name for file in log.files)
            sources.append(AdviceSource(folder.name, kind, ", ".join(files), log_seconds(log), files))
    seen = _joined(database, log)
    findings = find_findings(seen)
    return AdviceResult(
        sources=tuple(sources),
        answer="",
        reasons=(),
        sessions=seen.sessions,
        findings=findings,
        looked_at=LookedAt(
            rules=len(RULES),
            statements=len(seen.statements),
            plans=sum(bool(statement.plans) for statement in seen.statements.values()),
            tables=len(seen.tables),
            indexes=sum(len(found) for found in seen.indexes.values()),
            settings=len(seen.catalogue.settings),
            unplanned=() if database is None else tuple(_unplanned(database[0].unplanned, seen)),
        ),
        missing=_missing(database, log),
        reproduce=command,
        uncork_version=uncork_version,
        lost=database is not None and database[0].run.status == "failed",
        hidden=None if database is None or log is not None else database[0].hidden,
        costliest=costly_parts(seen, findings)
        if log is None or database
        else costly_parts_of_log(log, findings),
    )


def _unplanned(found: Iterable[Unplanned], evidence: Evidence) -> Iterator[Unplanned]:
    for unplanned in found:
        templates = tuple(number for number in unplanned.templates if not evidence.statements[number].plans)
        if templates:
            yield replace(unplanned, templates=templates)


def _parts(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the kinds and folders of a run's evidence; a load or a service has it in parts."""
    kind = read_manifest(folder).kind
    if kind in ("database", "log"):
        yield kind, folder
        return
    parts = {name: part_of(folder, name) for name in ("database", "log")}
    if parts["database"] is None:
        raise UsageError(f"run {folder.name} watched no database: {_TO_WATCH.get(kind, _OTHER)}")
    for name, part in parts.items():
        if part is not None:
            yield name, part


def _two(what: str, one: str, other: str) -> str:
    return f"{one} and {other} are both runs of {what}; give one of them"


def _joined(database: tuple[DatabaseResult, Evidence] | None, log: LogResult | None) -> Evidence:
    if database is None:
        return evidence_of_log(log) if log is not None else Evidence(1.0, (), {})
    return database[1] if log is None else _with_log(database[1], log)


def _with_log(evidence: Evidence, log: LogResult) -> Evidence:
    """Return the evidence of a server with that of its logs: loops, lock waits, plans that were executed."""
    by_identity = {
        statement.identity: statement.number
        for statement in evidence.statements.values()
        if statement.identity is not None
    }
    numbers, statements = {}, dict(evidence.statements)
    for template in log.templates:
        number = None if template.identity is None else by_identity.get(template.identity)
        if number is None:
            continue
        numbers[template.number] = number
        plans = tuple(replace(plan, template=number) for plan in executed_plans(template))
        known = statements[number]
        again = template.repeated
        repeated = None if again is None else (again.unchanged, again.updates)
        statements[number] = replace(known, plans=(*plans, *known.plans), repeated=repeated)
    return replace(evidence, statements=statements, log=log, log_numbers=numbers)


def _missing(database: tuple[DatabaseResult, Evidence] | None, log: LogResult | None) -> tuple[Missing, ...]:
    if database is not None:
        return database[0].missing
    return () if log is None else log.missing
