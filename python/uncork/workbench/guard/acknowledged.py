"""Read and append to the file of acknowledged changes. What people wrote in it stays unchanged."""

from __future__ import annotations

import datetime
import shlex
import subprocess
import tomllib
from pathlib import Path

from uncork.errors import UsageError
from uncork.experiment.guard.acknowledged import (
    FILE_NAME,
    HEADER,
    Known,
    acknowledge,
    acknowledgement_of,
    entry_text,
    parse_acknowledged,
    same_gate,
    wider,
)
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import Acknowledgement, GateCheck, GateOutcome, GuardResult
from uncork.spawn.child import run


def known_file(experiment: Path | None, named: str | None, asked: Path | None = None) -> Path:
    """Return the path of acknowledged changes: `asked`, or what the experiment file names, or the default.

    A path in an experiment file is relative to that file; without a file, to the current folder.
    """
    if asked is not None:
        return asked
    folder = Path() if experiment is None else experiment.parent
    return folder / (named or FILE_NAME)


def file_of(result: GuardResult) -> Path:
    """Return the file of acknowledged changes that a guard read, according to the command that repeats it."""
    words = shlex.split(result.reproduce)
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--acknowledged" and following:
            return Path(following)
        if word.startswith("--acknowledged="):
            return Path(word.partition("=")[2])
    for word in words:
        if word.endswith(".toml") and Path(word).is_file():
            return known_file(Path(word), _named(Path(word)))
    return known_file(None, None)


def acknowledge_from(path: Path, checks: tuple[GateCheck, ...], today: datetime.date | None = None) -> Known:
    """Apply the acknowledged changes of a file to checks; a missing file holds no changes.

    Raises UsageError if the file cannot be read, or an entry is wrong.
    """
    text = _text(path)
    entries = parse_acknowledged(text, file=str(path)) if text is not None else ()
    return acknowledge(checks, entries, today or datetime.date.today())


def broken_checks(result: GuardResult, gate: str, workload: str | None) -> tuple[GateCheck, ...]:
    """Return the broken checks of a guard that `gate` names; its spelling may differ.

    Raises UsageError if the guard has no such gate, or the gate is not broken.
    """
    try:
        wanted = parse_gate(gate).workload
    except UsageError:
        wanted = ""
    wanted = workload or wanted
    asked = [
        check for check in result.checks if same_gate(gate, check.gate) and wanted in ("", check.workload)
    ]
    broken = [check for check in asked if check.outcome is GateOutcome.BROKEN]
    if broken:
        return tuple(broken)
    others = [check for check in result.checks if check.outcome is GateOutcome.BROKEN]
    hint = (
        "; broken gates: " + ", ".join(dict.fromkeys(map(_shown, others)))
        if others
        else "; no gate is broken"
    )
    if not asked:
        where = f" on {wanted}" if wanted else ""
        raise UsageError(f'the guard {result.id} has no gate "{gate}"{where}{hint}')
    states = ", ".join(dict.fromkeys(str(check.outcome) for check in asked))
    raise UsageError(
        f'"{gate}" is {states} in the guard {result.id}, so there is nothing to acknowledge{hint}'
    )


def new_entries(
    checks: tuple[GateCheck, ...], *, reason: str, until: str, limit: str, folder: Path
) -> tuple[Acknowledgement, ...]:
    """Return one entry for each workload of broken checks, dated today and signed by git's user if known.

    If a workload has several cells, the entry allows the worst result among them. Raises UsageError
    if `reason`, `until` or `limit` is wrong.
    """
    by, today = _git_user(folder), datetime.date.today()
    found: dict[str, Acknowledgement] = {}
    for check in checks:
        entry = acknowledgement_of(check, reason=reason, date=today, by=by, until=until, limit=limit)
        known = found.get(check.workload)
        found[check.workload] = entry if known is None else wider(known, entry, check.gate)
    return tuple(found.values())


def append_acknowledged(path: Path, entries: tuple[Acknowledgement, ...]) -> None:
    """Append entries to a file of acknowledged changes; create the file if necessary.

    Raises:
        UsageError: if the file cannot be written, or an entry in it is wrong. Nothing is written then.
    """
    before = _text(path)
    parse_acknowledged(before or "", file=str(path))
    start = HEADER if before is None else "" if not before or before.endswith("\n") else "\n"
    added = start + "".join(map(entry_text, entries))
    try:
        parse_acknowledged((before or "") + added, file=str(path))
    except UsageError as error:
        raise UsageError(
            f"{path}: cannot append to this file; write each change under [[change]] ({error})"
        ) from error
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(added)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text") from error


def _named(experiment: Path) -> str | None:
    try:
        named = tomllib.loads(experiment.read_text()).get("guard", {}).get("acknowledged")
    except (OSError, ValueError, AttributeError):
        return None
    return named if isinstance(named, str) else None


def _git_user(folder: Path) -> str:
    try:
        done = run(
            ["git", "config", "user.name"],
            cwd=folder if folder.is_dir() else None,
            capture_output=True,
            text=True,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return str(done.stdout).strip()


def _shown(check: GateCheck) -> str:
    where = f" on {check.workload}" if check.workload and not check.gate.workload else ""
    return f'"{check.gate.text}{where}"'
