"""The next command to type, as it works in this shell."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from uncork.cli import console
from uncork.model.stored_run import DEFAULT_RUNS


def serve_command(runs: Path) -> str:
    """Return the command that serves the runs of a folder, or of the address it mirrors."""
    from uncork.store.remote.mirrors import shown  # noqa: PLC0415 -- keeps `uncork --help` fast

    place = shown(runs)
    is_found = place == os.environ.get("UNCORK_RUNS", str(DEFAULT_RUNS))
    return next_command("serve", *([] if is_found else ["--runs", place]))


def next_command(*words: str) -> str:
    """Return an uncork command that works in this shell: by path unless `uncork` on the PATH is this one."""
    return shlex.join([_program(), *words])


def _program() -> str:
    """Return ``uncork`` if it is on the PATH, or the path of the program beside the running Python."""
    beside = Path(sys.executable).with_name("uncork")
    found = shutil.which("uncork")
    if not beside.is_file() or (found is not None and Path(found).samefile(beside)):
        return "uncork"
    here = Path.cwd()
    return str(beside.relative_to(here)) if beside.is_relative_to(here) else str(beside)


def say_next(runs: Path) -> None:
    """Print how to browse the runs, and how to put uncork on the PATH if it is not there."""
    console.note(f"to browse all runs: {serve_command(runs)}")
    if _program() != "uncork":
        folder = shlex.quote(str(Path(sys.executable).parent))
        console.note(f'`uncork` is not on your PATH; add it: export PATH={folder}:"$PATH"')
