"""Profile logs: read them, store what they show, and analyze it."""

from __future__ import annotations

import importlib
import re
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from uncork.engines.checkouts import current_branch, current_commit
from uncork.errors import SetupError
from uncork.profile.logs import LogReading, LogRequest, read_logs
from uncork.profile.objects.address import LogObject
from uncork.store.layout import check_writable
from uncork.workbench.clock import now_text
from uncork.workbench.profile.storing import store_evidence

if TYPE_CHECKING:
    import pyarrow as pa

    from uncork.model.results.log import LogResult

STORED: Final = "gathered.bin"
"""The file in a run's folder with what a later run can follow."""


_LATER = (
    *("uncork.store.tables", "uncork.profile.grammar", "uncork.analysis.log.result"),
    *("uncork.report.log.document", "uncork.workbench.run_record"),
)
"""Modules needed only after reading; loading them takes as long as reading a hundred megabytes."""


_NAMED = 5


class NothingUnderstood(SetupError):
    """No line of any file is a log entry. The message says what to do."""


@dataclass(frozen=True, slots=True)
class LogRun:
    """A profiled log: its run's folder, and the result."""

    folder: Path
    result: LogResult


def profile_logs(
    root: Path,
    request: LogRequest,
    *,
    command: str,
    read: Callable[[LogRequest], LogReading] = read_logs,
) -> LogRun:
    """Read logs, store what they show as a run under `root`, and analyze it.

    `read` reads them once, or while they grow. Nothing is stored if no line is a log entry.

    Raises:
        NothingUnderstood: if no line is a log entry.
        SetupError: if a file cannot be opened, or the run cannot be written.
        StoreError: if events cannot be written.
        UsageError: if the log_line_prefix is not valid.
    """
    check_writable(root)
    begun, started_at = time.monotonic_ns(), now_text()
    with _events(None if request.events is None else request.events.folder):
        with loading(*_LATER), ThreadPoolExecutor(1) as asking:
            # git takes as long as reading fifty megabytes.
            commit, branch = asking.submit(current_commit), asking.submit(current_branch)
            reading = read(request)
        from uncork.analysis.log.result import log_result, log_run_facts  # noqa: PLC0415
        from uncork.report.log.answer import answer_log  # noqa: PLC0415
        from uncork.workbench.run_record import draft, start_run  # noqa: PLC0415 -- see _LATER

        try:
            refuse_nothing(reading, request.prefix)
        except NothingUnderstood:
            reading.forget()
            raise
        again = repeated_updates(request, reading)
        if request.events is not None:
            names = [file["name"] for file in reading.facts["files"]]
            request.events.write_names(reading.statements, names)
    elapsed_ns, facts = time.monotonic_ns() - begun, reading.facts
    tables = {**reading.tables, "log_repeated_updates": again}
    manifest = draft(
        kind="log",
        name=f"log-{_word(request.names[0])}",
        question=f"log: {', '.join(map(_last_part, request.names[:3]))}",
        server="",
        options={"command": command},
        started_at=started_at,
        commit=commit.result,
        branch=branch.result,
    )
    run = start_run(root, manifest, announce=False, undone="nothing was stored")
    result = store_evidence(
        run,
        "interrupted" if facts["stopped"] else "complete",
        elapsed_ns,
        facts,
        tables,
        lambda manifest: answer_log(log_result(log_run_facts(manifest, facts), facts, tables)),
        {} if reading.stored is None else {STORED: reading.stored},
    )
    reading.forget()
    return LogRun(run.folder, result)


def refuse_nothing(reading: LogReading, prefix: str | None = None) -> None:
    """Refuse logs without any entry, with a message that says what was found.

    `prefix` is the log_line_prefix that the user gave. Raises NothingUnderstood if no line is a log
    entry that counts.
    """
    facts = reading.facts
    if facts["entries"] or facts["stopped"]:
        return
    if facts["untimed"]:
        raise NothingUnderstood(
            f"no entry has a time ({facts['untimed']} read), so no time range can be selected: leave out -b "
            "and -e (or --against-begin and --against-end), and log times from now on with %m in "
            "log_line_prefix"
        )
    if facts["left_out"]:
        raise NothingUnderstood(_none_passes(facts))
    if facts["outside"]:
        raise NothingUnderstood(
            f"no entry is within the time range (-b, -e, in UTC); {facts['outside']} read"
        )
    files = facts["files"]
    if not files:
        raise NothingUnderstood("none of the files was created")
    names = ", ".join(file["name"] for file in files[:3]) + (" and more" if len(files) > 3 else "")
    troubles = [f"{file['name']}: {file['trouble']}" for file in files if file["trouble"]]
    if troubles:
        raise NothingUnderstood(f"no file could be read: {'; '.join(troubles[:3])}")
    if not any(file["bytes"] for file in files):
        raise NothingUnderstood(
            f"nothing to read: {names} is empty" if len(files) == 1 else "all files are empty"
        )
    if prefix is not None:
        raise NothingUnderstood(
            f"{names}: no line begins with the log_line_prefix '{prefix}' of -p; leave -p out, because most "
            "prefixes are recognised, or give the server's own (SHOW log_line_prefix)"
        )
    raise NothingUnderstood(
        f"{names}: no line looks like a PostgreSQL log entry (stderr, csvlog or jsonlog); if the server has "
        "its own log_line_prefix, give it: -p '%m [%p] '"
    )


def _none_passes(facts: Mapping[str, Any]) -> str:
    """Say which filter left out all entries, and which names the log has instead."""
    found = sorted(facts["left_out"], key=lambda one: -one["entries"])
    by = found[0]["by"]
    option = f"--{by.replace(' ', '-')}"
    count = sum(server["entries"] for server in found)
    message = f"no entry passes the filters ({count} read); most fail {option} first"
    if by == "time of day":
        return f"{message}: times are in UTC unless an offset follows, such as 08:00-17:00+02:00"
    names = [f'"{server["name"]}"' for server in found if server["by"] == by and server["name"]]
    if not names:
        escape = {"database": "%d", "user": "%u", "application": "%a", "host": "%h"}[by]
        return f"{message}: the log names no {by}; add {escape} to the server's log_line_prefix"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{message}: the log's names of the {by} are {', '.join(names[:_NAMED])}{more}"


@contextmanager
def _events(folder: Path | None) -> Iterator[None]:
    """Create the folder for events; delete what was written to it if reading fails.

    Raises SetupError if the folder cannot be created, or is not empty.
    """
    if folder is None:
        yield
        return
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise SetupError(f"--events {folder}: the folder is not empty; name a new one")
    except OSError as error:
        raise SetupError(f"--events {folder}: {error.strerror or error}") from error
    try:
        yield
    except BaseException:
        for path in folder.glob("*.parquet"):
            path.unlink()
        if made:
            folder.rmdir()
        raise


def _last_part(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2] or name


def _word(name: str) -> str:
    stem = _last_part(name).split(".")[0] if name != "-" else "stdin"
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-") or "log"


# ---- load modules while the Rust core works, which releases the GIL ----


@contextmanager
def loading(*modules: str) -> Iterator[None]:
    """Load modules in a thread. An import of one of them waits until it is loaded.

    The context waits for the thread, also after an error, because the interpreter must not exit
    while libraries are half loaded.
    """
    thread = threading.Thread(target=_load, args=(modules,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _load(modules: tuple[str, ...]) -> None:
    for module in modules:
        importlib.import_module(module)


# ---- updates that change nothing, in a second reading ----


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
    from uncork.store.tables import rows_table  # noqa: PLC0415 -- after the first reading

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
    columns = table.select(["template", "text", "executions", "sum_us"]).to_pydict()
    least = _SHARE * sum(columns["sum_us"])
    for number, text, executions, spent in zip(*columns.values(), strict=True):
        if text.startswith("update") and executions >= _EXECUTIONS and spent >= least:
            yield text, number


def _beginnings(
    logs: Sequence[Path | LogObject], objects: Mapping[str, Sequence[memoryview]], folder: Path
) -> Iterator[Path]:
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


class KeptEntries:
    """Receives the entries of a log; subclasses keep in `tables` what they need of them."""

    folder = Path()

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def create(self, _part: int, _empty: object) -> Self:
        """Begin a part."""
        return self

    def close(self) -> None:
        """End a part."""

    def write_names(self, statements: pa.Table, files: Sequence[str]) -> None:
        """Do nothing: nobody reads these entries later."""


class _Changes(KeptEntries):
    """Keeps the statements that change rows."""

    _many = 0

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
        self.tables.append(kept)
        self._many += kept.num_rows

    def rows(self) -> list[dict[str, Any]]:
        """Return the changes in the order of the log."""
        import pyarrow as pa  # noqa: PLC0415

        if not self.tables:
            return []
        # Each part has its own dictionary of servers.
        tables = pa.concat_tables(self.tables).unify_dictionaries()
        ordered = tables.sort_by([("time", "ascending"), ("offset", "ascending")])
        rows: list[dict[str, Any]] = ordered.slice(0, _STATEMENTS).to_pylist()
        return rows
