"""Write a captured workload as scripts that `uncork load sql` sends in the captured mix."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from uncork.errors import SetupError, UsageError
from uncork.model.database.names import literal
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.units import share_text
from uncork.profile.parameter_values import with_values
from uncork.report.database.captured import captured_answer, origin_words

README: Final = "README.md"
_MOST: Final = 128
"""The most scripts that `uncork load sql` sends."""
_WEIGHTS: Final = 1_000_000
"""The sum of the weights of a folder, roughly."""
_VARIABLE: Final = re.compile(r":(?=[A-Za-z_\u0080-\uffff])")


def write_workload(workload: CapturedWorkload, folder: Path) -> tuple[Path, ...]:
    """Write a workload to a folder, and return its scripts.

    There is one script for each statement and set of values, at most 128, which is as many as `uncork load
    sql` sends; statements that ran more often get more of them. The weight of a script is in its first line.

    Raises:
        UsageError: if nothing was captured, or the folder holds other files.
        SetupError: if a file cannot be written.
    """
    if not workload.statements:
        reason = f": {workload.missing[0].reason}" if workload.missing else ""
        raise UsageError(f"no statement could be captured{reason}")
    files = dict(script_files(workload))
    try:
        check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / README).write_text(_readme(workload, len(files), folder), encoding="utf-8")
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SetupError(f"{folder}: the workload could not be written: {error.strerror}") from error
    return tuple(folder / name for name in files)


def check_folder(folder: Path) -> None:
    """Check that a folder is new or empty; raises UsageError if it is not."""
    if folder.is_dir() and next(folder.iterdir(), None) is not None:
        raise UsageError(f"{folder} is not empty; name a new folder with -o")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a new folder with -o")


def script_files(workload: CapturedWorkload) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each script. Pure."""
    whole = sum(statement.calls_per_hour for statement in workload.statements)
    kept = workload.statements[:_MOST]
    for statement, many in zip(kept, _allotted(kept), strict=True):
        chosen = Counter(dict.fromkeys(statement.sets, 0))
        for values in statement.sets:
            chosen[values] += 1
        sets = list(chosen.items())[:many]
        total = sum(often for _, often in sets)
        for number, (values, often) in enumerate(sets, 1):
            part = statement.calls_per_hour / whole * often / total
            weight = max(1, round(_WEIGHTS * part))
            yield f"statement-{statement.template:04d}-{number:02d}.sql", _script(statement, values, weight)


def _allotted(statements: Sequence[CapturedStatement]) -> list[int]:
    """Return how many scripts each statement gets: one, and more by its rate, as many as it has sets."""
    most = [len(set(statement.sets)) for statement in statements]
    found = [1] * len(statements)
    rates = [statement.calls_per_hour for statement in statements]
    for _ in range(_MOST - len(statements)):
        open_ones = [place for place, many in enumerate(found) if many < most[place]]
        if not open_ones:
            break
        found[max(open_ones, key=lambda place: rates[place] / found[place])] += 1
    return found


def _script(captured_statement: CapturedStatement, values: Sequence[str | None], weight: int) -> str:
    sql = captured_statement.sql.strip().rstrip(";")
    statement = with_values(sql, dict(enumerate(values, start=1)), _literal)
    return (
        f"-- weight: {weight}\n"
        f"-- statement {captured_statement.template} of the run, "
        f"{captured_statement.calls_per_hour / 3600:.4g} executions a second; "
        f"values: {origin_words(captured_statement.origin)}\n{statement}\n;\n"
    )


def _literal(value: str) -> str:
    """Return a value as a literal in a script, in which a colon may begin the name of a variable."""
    if not _VARIABLE.search(value) and "\\" not in value and "\n" not in value:
        return literal(value)
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return "E'" + _VARIABLE.sub(r"\\x3a", escaped) + "'"


def _readme(workload: CapturedWorkload, scripts: int, folder: Path) -> str:
    rate = sum(statement.calls_per_hour for statement in workload.statements) / 3600
    lines = [
        "# Captured workload",
        "",
        *captured_answer(workload),
        "",
        f"The {scripts} scripts hold values of the database. Send them with the captured rate:",
        "",
        f"    uncork load sql -f {folder.name} -R {rate:.4g} -T 60 DSN",
        "",
        "| statement | executions a second | share of the time | values |",
        "|---|---|---|---|",
        *(
            f"| {statement.template} | {statement.calls_per_hour / 3600:.4g} | {share_text(statement.share)} "
            f"| {origin_words(statement.origin)} |"
            for statement in workload.statements
        ),
    ]
    if len(workload.statements) > _MOST:
        lines += ["", f"The scripts hold the {_MOST} statements with the most time."]
    if workload.missing:
        lines += ["", "Missing:", ""]
        lines += [
            f"- statement {captured.template}, {share_text(captured.share)} of the time: {captured.reason}"
            for captured in workload.missing
        ]
    return "\n".join(lines) + "\n"
