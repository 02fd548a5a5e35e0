"""Write what the application has to change: its statements before and after, and the experiment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from uncork.model.results.cure import Change, CureResult, Handed, application_changes
from uncork.report.cure.words import gain_sentence, less_time, saved_words
from uncork.store.layout import write_atomically

__all__ = ["APPLICATION", "application_readme", "hand_over_application", "of_source"]

APPLICATION: Final = "application"
"""The folder with the changes of the application, within the folder that is handed over."""
_COPY_OF: Final = re.compile(r"^copy_of = .*$", re.MULTILINE)


def hand_over_application(place: Path, result: CureResult, dsn: str) -> Iterator[Handed]:
    """Write a folder for each proven change of the application, and yield what the folders are for.

    `dsn` is the connection string of the source, which the experiment copies.

    Raises:
        StoreError: if a file cannot be written.
    """
    for change in application_changes(result):
        folder = place / APPLICATION / change.name
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "before.sql", f"{change.undo}\n")
        write_atomically(folder / "after.sql", f"{change.sql}\n")
        experiment = Path(change.runs[0]) / "experiment.toml" if change.runs else None
        measured = experiment is not None and experiment.is_file()
        if experiment is not None and measured:
            write_atomically(folder / "experiment.toml", of_source(experiment.read_text(), dsn))
        write_atomically(folder / "README.md", application_readme(change, measured=measured))
        path = f"{place.name}/{APPLICATION}/{change.name}"
        yield Handed(path, "what the application sends before and after, and the experiment")


def of_source(experiment: str, dsn: str) -> str:
    """Return an experiment file about the source, because the copy exists no more."""
    return _COPY_OF.sub(lambda _: f"copy_of = {json.dumps(dsn)}", experiment, count=1)


def application_readme(change: Change, *, measured: bool) -> str:
    """Return the page about a change of the application: what it brings, and both statements."""
    lines = [f"# {change.text.rstrip('. ')}", ""]
    if change.net is not None:
        lines += [
            f"The captured workload takes {less_time(change.net)}, which saves {saved_words(change.net)} of "
            f"sessions' time ({gain_sentence(change.net)}). It was measured on a copy, twice.",
            "",
        ]
    lines += ["The application sends now:", "", "```sql", change.undo, "```", ""]
    lines += ["Let it send instead:", "", "```sql", change.sql, "```", ""]
    if change.sql != change.undo:
        lines += ["Each `$n` is an array with one value for each row, in the same order.", ""]
    else:
        lines += ["The statement stays the same; only how it is sent differs.", ""]
    lines += ["What the measurement rests on:", "", *(f"- {text}" for text in change.assumed), ""]
    if change.against:
        lines += ["What speaks against it:", "", *(f"- {text}" for text in change.against), ""]
    if measured:
        lines += ["To measure it again:", "", "    uncork run experiment.toml", ""]
    return "\n".join(lines)
