"""Answers about experiment files, and from measurements."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Final

from uncork.errors import UsageError
from uncork.mcp.job import Job, Result, about, shortened

_CONNINFO: Final = re.compile(r"\s*(postgres(ql)?://|\w+\s*=)")


def plan_experiment(job: Job) -> Result:
    """Return what a run of an experiment file would do."""
    import uncork  # noqa: PLC0415 -- each call loads what it needs

    asked = job.arguments
    plan = uncork.plan(file_within(asked.file, Path.cwd()), budget=asked.budget or None, runs=job.runs)
    return shortened("plan", asdict(plan))


def run_experiment(job: Job) -> Result:
    """Run an experiment file, and return its verdicts."""
    import uncork  # noqa: PLC0415 -- as above

    asked = job.arguments
    file = file_within(asked.file, Path.cwd())
    run = uncork.run(file, budget=asked.budget or None, progress=job.tell, runs=job.runs)
    return {**about(run), **shortened("result", json.loads(run.json()))}


def advise_database(job: Job) -> Result:
    """Watch a server, and return its findings."""
    import uncork  # noqa: PLC0415 -- as above

    asked = job.arguments
    if not _CONNINFO.match(asked.dsn):  # a word alone would be a run or a log
        raise UsageError('dsn: write a connection string, such as "dbname=shop host=/run/postgresql"')
    advice = uncork.advise(asked.dsn, lasting=f"{asked.seconds}s", progress=job.tell, runs=job.runs)
    found = shortened("result", json.loads(advice.json()))
    return {"run": advice.folder.name, "answer": advice.answer, **found}


def file_within(word: str, folder: Path) -> Path:
    """Return the path of an experiment file within a folder, wherever links lead.

    Raises:
        UsageError: if it is outside of the folder, or its name does not end with .toml.
    """
    try:
        path = (folder / word).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{word!r} is no path: {error}") from error
    if path.is_symlink():  # Python 3.13 and later return the link itself
        raise UsageError(f"{word} is a link that leads to itself")
    if not path.is_relative_to(folder.resolve()):
        raise UsageError(f"{word} is outside of the folder in which the server was started, {folder}")
    if path.suffix != ".toml":
        raise UsageError(f"{word} is no experiment file: its name must end with .toml")
    return path
