"""Import results of other tools as runs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from uncork.errors import SetupError, StoreError, UsageError
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.reading import read_result
from uncork.store.imports import write_figures
from uncork.store.layout import KEPT, list_runs
from uncork.workbench.run_record import draft, start_run

__all__ = ["Imported", "import_result"]


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported result. `before` means that it had been imported before, and nothing was stored."""

    folder: Path
    result: ImportedRun
    started_at: str
    guessed: bool
    before: bool


def import_result(
    root: Path, path: Path, *, name: str | None = None, at: datetime | None = None, commit: str | None = None
) -> Imported:
    """Store a result of another tool as a run under `root`, dated when the tool ran.

    That time is `at`, or else the time in the file, or else when the file was last changed (`guessed`).
    `name` is the series, shared by comparable results. `commit` is the commit that was measured.

    Raises:
        UsageError: if the file cannot be read, or was not written by a known tool.
        SetupError: if the run cannot be written.
    """
    try:
        data = path.read_bytes()
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: byte {error.start} is not UTF-8") from error
    result = read_result(text, str(path))
    stated = datetime.fromisoformat(result.started_at) if result.started_at else None
    when = (at or stated or changed).astimezone(UTC)
    digest = hashlib.sha256(data).hexdigest()
    series = name or _word(result.tool)
    asked = {"tool": result.tool, "series": name or "", **result.asked}
    started_at = when.isoformat(timespec="seconds")
    known = _already(root, digest, asked, started_at)
    if known is not None:
        return Imported(known, result, started_at, guessed=False, before=True)
    guessed = at is None and stated is None
    folder = _store(root, result, series, when, commit, {"file": str(path), "sha256": digest, "asked": asked})
    return Imported(folder, result, started_at, guessed=guessed, before=False)


def _already(root: Path, digest: str, asked: dict[str, str], started_at: str) -> Path | None:
    for manifest in list_runs(root):
        if isinstance(manifest, StoreError) or manifest.kind != "import":
            continue
        options = manifest.options
        same = options.get("sha256") == digest and options.get("asked") == asked
        if same and manifest.started_at == started_at:
            return root / manifest.id
    return None


def _store(
    root: Path,
    result: ImportedRun,
    series: str,
    when: datetime,
    commit: str | None,
    options: dict[str, object],
) -> Path:
    environment = {section: dict(facts) for section, facts in result.environment.items()}
    manifest = draft(
        kind="import",
        name=f"import-{_word(series)}",
        question=result.question,
        server="",
        options={**options, "environment": environment},
        started_at=when.isoformat(timespec="seconds"),
        commit=lambda: commit,
    )
    undone = "nothing was imported"
    try:
        with start_run(root, manifest, at=when, announce=False, undone=undone) as run:
            write_figures(run.folder, result.figures)
            run.end("complete", "imported", elapsed_ns=0)
    except StoreError as error:
        raise SetupError(f"{str(error).removesuffix(KEPT)}; {undone}") from error
    return run.folder


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.").lower() or "result"
