"""Run a command of an experiment file to its end, and return what it prints last."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from uncork.engines.services.local import database_url, database_words
from uncork.errors import SetupError
from uncork.model.server import Target
from uncork.model.units import format_duration
from uncork.spawn.child import run, scratch_folder

_MOST_SHOWN = 200


def last_line_of(
    command: Sequence[str],
    *,
    files: Mapping[str, str],
    environment: Mapping[str, str],
    target: Target | None,
    timeout_ns: int,
) -> str:
    """Run a command without a shell, and return the last line of its output that is not empty.

    Args:
        command: program and arguments; ``{python}`` and, with a target, ``{database_url}`` and its parts are
            replaced.
        files: texts for the command's working directory, by name.
        environment: variables beside uncork's own; with a target, also `DATABASE_URL`.
        target: the database that the command is about; None if it is not PostgreSQL.
        timeout_ns: how long it may take.

    Raises:
        SetupError: if it cannot be started, takes too long, fails, or prints nothing.
    """
    words = {"{python}": sys.executable, **({} if target is None else database_words(target))}
    variables = {**os.environ, **environment}
    if target is not None:
        variables["DATABASE_URL"] = database_url(target)
    with scratch_folder("uncork-metric-") as folder:
        for name, text in files.items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise SetupError(f'"{name}" must be in the folder of the experiment file, or below it')
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        done = _run([_filled(word, words) for word in command], folder, files, variables, timeout_ns)
    if done.returncode:
        lines = _lines(done.stderr) or ["it printed no reason"]
        reason = _without_password(lines[-1], target)[:_MOST_SHOWN]
        raise SetupError(f"the command {command[0]} ended with status {done.returncode}: {reason}")
    lines = _lines(done.stdout)
    if not lines:
        raise SetupError(f"the command {command[0]} printed nothing; its last line must be a number")
    return lines[-1]


def _run(
    words: list[str], folder: Path, files: Mapping[str, str], variables: Mapping[str, str], timeout_ns: int
) -> subprocess.CompletedProcess[bytes]:
    if words[0] in files:
        (folder / words[0]).chmod(0o700)
        words = [str(folder / words[0]), *words[1:]]
    try:
        return run(
            words,
            timeout=timeout_ns / 1e9,
            capture_output=True,
            env=variables,
            cwd=folder,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        limit = format_duration(timeout_ns)
        raise SetupError(
            f"the command {words[0]} took longer than {limit} and was ended; raise its timeout"
        ) from error
    except OSError as error:
        raise SetupError(f"the command {words[0]} cannot be started: {error.strerror or error}") from error


def _filled(word: str, words: Mapping[str, str]) -> str:
    for name, text in words.items():
        word = word.replace(name, text)
    return word


def _lines(output: bytes) -> list[str]:
    return [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]


def _without_password(text: str, target: Target | None) -> str:
    password = None if target is None else target.connection.get("password")
    return text.replace(str(password), "***") if password else text
