"""Bring in results of other tools, as runs of their own."""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from uncork import __version__
from uncork.errors import SetupError, StoreError, UsageError
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.reading import read_result
from uncork.store.imports import write_figures
from uncork.store.layout import KEPT, Manifest, Sitting, list_runs, new_run_folder, write_manifest

__all__ = ["Imported", "import_result"]


@dataclass(frozen=True, slots=True)
class Imported:
    """A result that was brought in. `before` says that it had been already, and nothing was done."""

    folder: Path
    result: ImportedRun
    started_at: str
    guessed: bool
    before: bool


def import_result(
    root: Path, path: Path, *, name: str | None = None, at: datetime | None = None, commit: str | None = None
) -> Imported:
    """Store a result of another tool as a run under `root`, made when the tool was run.

    `at` is when that was; else the file tells, else it was when the file was last changed (`guessed`). `name`
    is the series that it belongs to, which like results share; `commit` is what was measured.

    Raises:
        UsageError: if the file cannot be read, or no tool that is known wrote it.
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
        raise UsageError(f"{path} is no text: byte {error.start} is not UTF-8") from error
    result = read_result(text, str(path))
    told = datetime.fromisoformat(result.started_at) if result.started_at else None
    when = (at or told or changed).astimezone(UTC)
    digest = hashlib.sha256(data).hexdigest()
    series = name or _word(result.tool)
    asked = {"tool": result.tool, "series": name or "", **result.asked}
    started_at = when.isoformat(timespec="seconds")
    known = _already(root, digest, asked, started_at)
    if known is not None:
        return Imported(known, result, started_at, guessed=False, before=True)
    guessed = at is None and told is None
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
    started_at = when.isoformat(timespec="seconds")
    try:
        folder = new_run_folder(root, f"import-{_word(series)}", when.strftime("%Y%m%d-%H%M%S"))
    except StoreError as error:
        raise SetupError(f"{error}; nothing was imported (--runs names another folder)") from error
    environment = {section: dict(facts) for section, facts in result.environment.items()}
    manifest = Manifest(
        id=folder.name,
        name=f"import-{_word(series)}",
        question=result.question,
        status="complete",
        started_at=started_at,
        seed=0,
        unit="",
        server="",
        uncork_version=__version__,
        options={**options, "environment": environment},
        sittings=(Sitting(started_at, 0, 0, "complete", "imported"),),
        kind="import",
        commit=commit,
    )
    try:
        write_figures(folder, result.figures)
        write_manifest(folder, manifest)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, StoreError):
            raise SetupError(f"{str(error).removesuffix(KEPT)}; nothing was imported") from error
        raise
    return folder


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.").lower() or "result"
