"""Import results of other tools as runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uncork.errors import SetupError, StoreError, UsageError
from uncork.model.results.figure import ImportedRun
from uncork.profile.imported.reading import read_results
from uncork.store.imports import write_figures
from uncork.store.layout import KEPT, list_runs
from uncork.workbench.run_record import draft, start_run


@dataclass(frozen=True, slots=True)
class Labels:
    """What the caller says about results: their series, time, commit and branch. These override the file."""

    name: str | None = None
    at: datetime | None = None
    commit: str | None = None
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported result. `before` means that it had been imported before, and nothing was stored."""

    folder: Path
    result: ImportedRun
    started_at: str
    guessed: bool
    before: bool


@dataclass(frozen=True, slots=True)
class _Source:
    found: list[ImportedRun]
    digest: str
    changed: datetime


def import_results(root: Path, path: Path, labels: Labels = Labels()) -> list[Imported]:
    """Store the results in a file as runs under `root`, dated when the tool ran.

    That time is the caller's, or else the time in the file, or else when the file was last changed
    (`guessed`). A table holds several runs.

    Raises:
        UsageError: if the file cannot be read, or was not written by a known tool; if it holds several runs,
            and the caller gives one time or commit for all.
        SetupError: if a run cannot be written.
    """
    source = _read_file(path)
    if len(source.found) > 1 and (labels.at is not None or labels.commit is not None):
        option = "--at" if labels.at is not None else "--commit"
        raise UsageError(
            f"{option}: {path} holds {len(source.found)} runs, each with its own time and commit; leave out "
            f"{option}"
        )
    known = _known(root)
    return [_import(root, path, source, result, labels, known) for result in source.found]


def _import(
    root: Path,
    path: Path,
    source: _Source,
    result: ImportedRun,
    labels: Labels,
    known: Mapping[tuple[str, str, str], Path],
) -> Imported:
    stated = datetime.fromisoformat(result.started_at) if result.started_at else None
    when = (labels.at or stated or source.changed).astimezone(UTC)
    started_at = when.isoformat(timespec="seconds")
    name = labels.name or result.series
    asked = {"tool": result.tool, "series": name, **result.asked}
    digest = result.digest or source.digest
    before = known.get((digest, _key(asked), started_at))
    if before is not None:
        return Imported(before, result, started_at, guessed=False, before=True)
    folder = _store(
        root,
        result,
        name or _word(result.tool),
        when,
        labels,
        {"file": str(path), "sha256": digest, "asked": asked},
    )
    guessed = labels.at is None and stated is None
    return Imported(folder, result, started_at, guessed=guessed, before=False)


def _read_file(path: Path) -> _Source:
    try:
        data = path.read_bytes()
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return _Source(read_results(_text(data, path), str(path)), hashlib.sha256(data).hexdigest(), changed)


def _text(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: byte {error.start} is not UTF-8") from error


def _known(root: Path) -> dict[tuple[str, str, str], Path]:
    found = {}
    for manifest in list_runs(root):
        if isinstance(manifest, StoreError) or manifest.kind != "import":
            continue
        options: Mapping[str, Any] = manifest.options
        key = (str(options.get("sha256")), _key(options.get("asked", {})), manifest.started_at)
        found[key] = root / manifest.id
    return found


def _key(asked: Mapping[str, object]) -> str:
    return repr(sorted(asked.items()))


def _store(
    root: Path,
    result: ImportedRun,
    series: str,
    when: datetime,
    labels: Labels,
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
        commit=lambda: labels.commit or result.commit or None,
        branch=lambda: labels.branch or result.branch or None,
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
