"""How profiles of services are read and reported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncork.analysis.service.result import ServiceParts, stored_service_result
from uncork.analysis.stacks.result import StackRun
from uncork.model.results.service import ServiceResult
from uncork.model.tables.database import DATABASE_TABLES
from uncork.model.tables.log import LOG_TABLES
from uncork.model.tables.service import APART
from uncork.model.tables.stacks import STACK_TABLES
from uncork.report.blocks import Document
from uncork.report.service.answer import answer_service
from uncork.report.service.document import build_service_document, render_service_terminal
from uncork.store.layout import part_of
from uncork.store.run_documents import read_pressed
from uncork.store.tables import read_evidence
from uncork.workbench.documents.databases import read_database
from uncork.workbench.documents.flames import stack_flames
from uncork.workbench.documents.kinds import Kind
from uncork.workbench.documents.loads import read_load
from uncork.workbench.documents.logs import read_log
from uncork.workbench.documents.stacks import read_stacks


@dataclass(frozen=True, slots=True)
class ServiceRun:
    """A stored profile of a service: its result, and the stacks of its functions for flame graphs."""

    result: ServiceResult
    code: StackRun | None


def read_service(folder: Path) -> ServiceRun:
    """Return a stored profile of a service, with its sentences.

    Raises StoreError if its files are damaged, or it has no result.
    """
    load, database, code, log = (part_of(folder, name) for name in ("load", "database", "code", "log"))
    stacks = None if code is None else read_stacks(code)
    apart = part_of(folder, APART)
    pressed = () if load is None else read_pressed(load)
    activity = None
    if database is not None:
        activity = read_evidence(database, DATABASE_TABLES)[1]["database_activity"]
    routes, log_texts = None, ()
    if log is not None:
        tables = read_evidence(log, LOG_TABLES)[1]
        routes, log_texts = tables["log_routes"], tables["log_templates"]["text"].to_pylist()
    parts = ServiceParts(
        load=None if load is None else read_load(load),
        database=None if database is None else read_database(database),
        code=None if stacks is None else stacks.result,
        log=None if log is None else read_log(log),
        seen=pressed[0].seen if pressed else None,
        activity=activity,
        routes=routes,
        log_texts=log_texts,
        apart=None if apart is None else read_evidence(apart, STACK_TABLES)[1]["stacks"],
    )
    return ServiceRun(answer_service(stored_service_result(folder, parts)), stacks)


def _page(_: Path, run: ServiceRun) -> Document:
    return build_service_document(run.result, () if run.code is None else stack_flames(run.code))


KIND: Final = Kind(
    read_service,
    lambda run: build_service_document(run.result),
    lambda run, console: render_service_terminal(run.result, console),
    _page,
    lambda run: run.result,
)
