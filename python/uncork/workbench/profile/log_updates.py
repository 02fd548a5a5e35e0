"""Read the beginning of logs once more, if much of their time goes to updates: do they change anything?"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncork.profile.logs import LogReading, LogRequest, read_logs
from uncork.profile.objects.address import LogObject

if TYPE_CHECKING:
    import pyarrow as pa

_SHARE: Final = 0.1
_EXECUTIONS: Final = 100
"""Fraction of the statement time, and executions, of an UPDATE that are worth a second reading."""
_BYTES: Final = 32_000_000
"""Bytes that are read once more: some hundred thousand entries, in a tenth of a second."""
_STATEMENTS: Final = 20_000
"""The most statements to compare, at 20 µs each."""
_CHANGES: Final = r"(?i)^\s*(?:update|delete|merge|truncate|copy|rollback|abort|with)\b|\bdo\s+update\b"
_STEPS: Final = ("statement", "execute")


def repeated_updates(request: LogRequest, reading: LogReading) -> pa.Table:
    """Return the rows of the table log_repeated_updates: none unless updates take a tenth of the time."""
    from uncork.store.profile_tables import rows_table  # noqa: PLC0415 -- after the first reading

    return rows_table("log_repeated_updates", list(_rows(request, reading)))


def _rows(request: LogRequest, reading: LogReading) -> Iterator[dict[str, Any]]:
    wanted = dict(_costly(reading.tables["log_templates"]))
    if not wanted or not all(isinstance(path, LogObject) or path.is_file() for path in request.paths):
        return
    from uncork.profile.shapes.repeated_updates import Sent, count_repeated_updates  # noqa: PLC0415

    found = _Changes()
    with tempfile.TemporaryDirectory(prefix="uncork-") as folder:
        beginnings = tuple(_beginnings(request.paths, reading.beginnings, Path(folder)))
        servers = request.servers[: len(beginnings)]
        again = replace(request, paths=beginnings, servers=servers, events=found, anonymous=False)
        templates = read_logs(again)
    texts = templates.tables["log_templates"]["text"].to_pylist()
    numbers = dict(
        zip(*(templates.statements[name].to_pylist() for name in ("statement_id", "template")), strict=True)
    )
    sent: dict[str | None, list[Sent]] = defaultdict(list)
    for row in found.rows():
        if row["statement_id"] in numbers:
            template = wanted.get(texts[numbers[row["statement_id"]]], -1)
            sent[row["server"]].append(Sent(template, row["statement"], row["parameters"] or ""))
    # Equal keys on two servers are two rows.
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    for of_server in sent.values():
        for template, counted in count_repeated_updates(of_server).items():
            sums[template].update(asdict(counted))
    for template, total in sums.items():
        if template >= 0:
            yield {"template": template, **total}


def _costly(table: pa.Table) -> Iterator[tuple[str, int]]:
    """Yield the texts and numbers of the updates that take much of the time."""
    columns = table.select(["template", "text", "executions", "sum_us"]).to_pydict()
    least = _SHARE * sum(columns["sum_us"])
    for number, text, executions, spent in zip(*columns.values(), strict=True):
        if text.startswith("update") and executions >= _EXECUTIONS and spent >= least:
            yield text, number


def _beginnings(
    logs: Sequence[Path | LogObject], objects: Mapping[str, Sequence[memoryview]], folder: Path
) -> Iterator[Path]:
    """Yield the first logs: files, and copies of what was read of objects and of the last file."""
    left = _BYTES
    for number, log in enumerate(logs):
        size = log.size if isinstance(log, LogObject) else log.stat().st_size
        if isinstance(log, LogObject):
            copy = folder / f"{number}-object"
            copy.write_bytes(b"".join(objects.get(log.name, ()))[:left])
            yield copy
        elif size <= left:
            yield log
        else:
            copy = folder / f"{number}-{log.name}"
            with log.open("rb") as whole, copy.open("wb") as part:
                part.write(whole.read(left))
            yield copy
        left -= size
        if left <= 0:
            return


class _Changes:
    """Receive the entries of a log, and keep the statements that change rows."""

    folder = Path()

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._many = 0

    def create(self, _part: int, _empty: object) -> _Changes:
        """Begin a part."""
        return self

    def write(self, table: object) -> None:
        """Keep the changes among the entries of a table."""
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        if self._many >= _STATEMENTS:
            return
        entries = pa.table(table)
        executed = pc.is_in(entries["step"], pa.array(_STEPS, entries["step"].type))
        changes = pc.match_substring_regex(entries["statement"], _CHANGES)
        names = ["time", "offset", "statement_id", "statement", "parameters", "server"]
        kept = entries.select(names).filter(pc.and_kleene(executed, changes))
        self._tables.append(kept)
        self._many += kept.num_rows

    def close(self) -> None:
        """End a part."""

    def write_names(self, statements: pa.Table, files: Sequence[str]) -> None:
        """Do nothing: nobody reads these entries later."""

    def rows(self) -> list[dict[str, Any]]:
        """Return the changes in the order of the log."""
        import pyarrow as pa  # noqa: PLC0415

        if not self._tables:
            return []
        # Each part has its own dictionary of servers.
        tables = pa.concat_tables(self._tables).unify_dictionaries()
        ordered = tables.sort_by([("time", "ascending"), ("offset", "ascending")])
        rows: list[dict[str, Any]] = ordered.slice(0, _STATEMENTS).to_pylist()
        return rows
