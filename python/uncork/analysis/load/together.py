"""Build the result of stored loads that started together."""

from __future__ import annotations

from pathlib import Path

from uncork.analysis.load.result import build_load_result
from uncork.errors import StoreError
from uncork.model.records import build_from
from uncork.model.results.load import LoadOfTogether, TogetherResult, TogetherRunFacts
from uncork.store.layout import part_of, read_manifest


def build_together_result(folder: Path) -> TogetherResult:
    """Build the result of a run whose loads started together; loads that measured nothing are left out.

    Raises:
        StoreError: if its files are damaged, or it has no result yet.
    """
    manifest = read_manifest(folder)
    loads = []
    for name in manifest.options.get("loads", ()):
        part = part_of(folder, name)
        if part is not None and (part / "load_totals").is_dir():
            loads.append(LoadOfTogether(name, build_load_result(part)))
    if not loads:
        raise StoreError(f"run {manifest.id} has no result: it is running, or was killed before its end")
    late = [load.load.run.start_late_ns for load in loads if load.load.run.start_late_ns is not None]
    return TogetherResult(
        run=build_from(
            TogetherRunFacts,
            manifest,
            reproduce=str(manifest.options.get("command", "uncork load together")),
        ),
        answer="",
        warnings=(),
        apart_ns=max(late) - min(late) if late else 0,
        loads=tuple(loads),
    )
