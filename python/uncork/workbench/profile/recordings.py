"""Record the sessions of a log: read it, and write their transactions to a folder that `load sql` sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncork.errors import SetupError, UsageError
from uncork.load.recording import transaction_line
from uncork.model.database.recording import TRANSACTIONS, Recording
from uncork.model.results.log import FileFacts
from uncork.profile.logs import LogRequest, read_logs
from uncork.profile.recording.transactions import COLUMNS, LoggedSessions, logged_transactions, recording_of
from uncork.report.database.captured import recording_answer, recording_readme
from uncork.report.log.answer import overlap_refusal
from uncork.workbench.cure.files import README, check_folder
from uncork.workbench.profile.logs import KeptEntries, refuse_nothing

if TYPE_CHECKING:
    import pyarrow as pa

_MOST: Final = 200_000
"""Transactions of a recording at most: some 100 MB."""
_BATCH: Final = 10_000
_SECOND_US: Final = 1_000_000


def record_sessions(
    request: LogRequest, database: str | None, progress: Callable[[int, int], None] | None = None
) -> Recording:
    """Return the transactions of the sessions in a log.

    A log of several databases has sessions of each; those of `database` are recorded, or of the
    database with the most statements.

    Raises:
        SetupError: if a log cannot be opened, or has no entries.
        UsageError: if the log has no transactions that can be sent again, or not what a recording needs.
    """
    found = logged_sessions(request, database, progress)
    recording = recording_of(found, _MOST)
    if not recording.transactions:
        raise UsageError(_nothing(found, recording))
    return recording


def logged_sessions(
    request: LogRequest, database: str | None, progress: Callable[[int, int], None] | None = None
) -> LoggedSessions:
    """Return the transactions of the sessions in a log, as the log has them; see `record_sessions`.

    Raises:
        SetupError: if a log cannot be opened, or has no entries.
        UsageError: if the log does not have what shows transactions, or its files overlap in time.
    """
    entries = _Entries()
    reading = read_logs(replace(request, events=entries, anonymous=False), progress)
    refuse_nothing(reading)
    if reading.facts["withheld"]:
        raise UsageError(overlap_refusal([FileFacts(**file) for file in reading.facts["files"]]))
    table = entries.of_database(database)
    found = logged_transactions(_rows(table))
    _refuse_coarse_times(table)
    return found


def write_recording(recording: Recording, folder: Path) -> tuple[str, ...]:
    """Write a recording to a new folder; return the sentences that describe it.

    Raises:
        UsageError: if the folder holds other files.
        SetupError: if a file cannot be written.
    """
    try:
        check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / README).write_text(recording_readme(recording, folder.name), encoding="utf-8")
        for name, text in recording.scripts.items():
            (folder / name).write_text(text, encoding="utf-8")
        with (folder / TRANSACTIONS).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{transaction_line(transaction)}\n" for transaction in recording.transactions)
    except OSError as error:
        raise SetupError(f"{folder}: the recording could not be written: {error.strerror}") from error
    return recording_answer(recording)


def _nothing(found: LoggedSessions, recording: Recording) -> str:
    needs = "set log_min_duration_statement = 0, and log_line_prefix = '%m [%p] '"
    if found.untimed:
        return f"none of the statements in the log has its duration: {needs}"
    if recording.missing:
        reason, many = max(recording.missing.items(), key=lambda item: item[1])
        return f"no transaction of the log can be sent again: {many} of them because {reason}"
    return f"the log has no statements with their durations: {needs}"


def _refuse_coarse_times(table: pa.Table) -> None:
    """Refuse a log whose times are whole seconds, because pauses are shorter."""
    import pyarrow.compute as pc  # noqa: PLC0415 -- see _Entries

    times = table["time"].drop_null()
    if len(times) > 1 and not pc.any(pc.not_equal(pc.subtract(times, _floor(times)), 0)).as_py():
        raise UsageError(
            "the times in the log are whole seconds, which do not show pauses: use %m instead of %t in "
            "log_line_prefix"
        )


def _floor(times: Any) -> Any:
    import pyarrow.compute as pc  # noqa: PLC0415

    return pc.multiply(pc.divide(times, _SECOND_US), _SECOND_US)


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=_BATCH):
        yield from batch.to_pylist()


class _Entries(KeptEntries):
    """Keeps the columns that a recording needs."""

    def write(self, table: object) -> None:
        """Keep the entries of a table, with times in microseconds."""
        import pyarrow as pa  # noqa: PLC0415 -- loaded while the core reads

        entries = pa.table(table).select(COLUMNS)
        times = entries["time"].cast(pa.int64())
        self.tables.append(entries.set_column(entries.column_names.index("time"), "time", times))

    def of_database(self, name: str | None) -> pa.Table:
        """Return the entries of a database in the order of the log; of the one with the most by default.

        Raises UsageError if the log has no entries of the database.
        """
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        # Each part has its own dictionary of servers.
        table = pa.concat_tables(self.tables).unify_dictionaries()
        table = table.sort_by([("file", "ascending"), ("offset", "ascending")])
        counted = {
            count["values"]: count["counts"] for count in pc.value_counts(table["database"]).to_pylist()
        }
        counted.pop(None, None)
        if name is not None and name not in counted:
            known = ", ".join(sorted(counted)) or "no database: add %d to log_line_prefix"
            raise UsageError(f"the log has no entries of database {name}; it names {known}")
        if not counted:
            return table
        chosen = name or max(counted, key=lambda one: counted[one])
        return table.filter(pc.equal(table["database"], chosen))
