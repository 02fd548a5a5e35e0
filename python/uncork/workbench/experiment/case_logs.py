"""Repeat a case from logs: send a batch before and after on a server that logs, and compare both logs.

The input is a case's name. The output is two stored logs, and their metrics beside the published figures.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from uncork.analysis.log.case import case_logs_result, compared_periods
from uncork.analysis.log.half import LogHalf
from uncork.engines.postgres import PostgresServer
from uncork.errors import LoadError, RunError, SetupError, UsageError
from uncork.experiment.plan.order import cells, texts_for
from uncork.experiment.plan.placement import Placements
from uncork.experiment.run.request import batch_request, queries_for, undo_for
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.sqltext import substitute
from uncork.load.sql import SqlLoad
from uncork.model.load import Arrivals, LoadScript, LoadSpec
from uncork.model.measurement import Outcome
from uncork.model.results.case_logs import CaseLogs, SentBatch
from uncork.model.server import Target
from uncork.model.trial import Arm, Cell
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.profile.logs import LogRequest, read_logs
from uncork.report.log.case_logs import answer_case_logs
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, case_folder, file_source
from uncork.spawn.child import scratch_folder
from uncork.workbench.experiment.background import going_on
from uncork.workbench.profile.logs import LogRun, profile_logs
from uncork.workbench.signals import uninterrupted

__all__ = ["CaseLogsRun", "run_case_logs"]

_LOGGING: Final[Mapping[str, object]] = {
    "log_min_duration_statement": 0,
    "log_line_prefix": "%m [%p] %q%u@%d %a ",
    "log_lock_waits": True,
    "log_temp_files": 0,
    # Otherwise an array of ten thousand values would take a line of megabytes.
    "log_parameter_max_length": 60,
}
"""The logging that docs/guides/logs.md recommends."""
_QUIET_S: Final = 3.0
"""How long only the background runs before each batch, and at least after it."""

Notify = Callable[[str], None]
Pools = Mapping[str, list[str | None]]


@dataclass(frozen=True, slots=True)
class CaseLogsRun:
    """Both logs as stored runs, and their comparison."""

    before: LogRun
    after: LogRun
    result: CaseLogs


def run_case_logs(
    root: Path,
    half: LogHalf,
    levels: Mapping[str, list[str]],
    choice: ServerChoice,
    *,
    command: str,
    keep: Path | None,
    tell: Notify,
) -> CaseLogsRun:
    """Send a case's batch in both ways on a server that logs, store both logs under `root`, and compare them.

    Nothing is stored unless both batches succeed. `levels` override the case's levels. `command` repeats the
    whole. The logs themselves are kept in the folder `keep`, if given.

    Raises:
        UsageError: if a factor has several levels.
        SetupError: if the server cannot be started, or data or logs cannot be written.
        RunError: if a batch or the background fails, or the batches leave different data behind.
    """
    spec, cell = _one_cell(half, levels)
    with _folder(keep) as folder:
        with _served(choice, spec) as server:
            sent = _Scene(half, spec, cell, server, folder, tell).play()
        paths = [_path(folder, half, place) for place in _PLACES]
        periods = compared_periods(*sent)
        idle = read_logs(LogRequest((paths[0],), end_us=periods[0][0]))
        runs = []
        for path, (begin, end) in zip(paths, periods, strict=True):
            again = command if keep is None else _read_again(path, begin, end)
            runs.append(profile_logs(root, LogRequest((path,), begin_us=begin, end_us=end), command=again))
    if idle.facts["stopped"] or any(run.result.run.status == "interrupted" for run in runs):
        raise KeyboardInterrupt
    found = case_logs_result(
        half,
        cell.levels,
        spec.batch_rows(half.workload, dict(cell.levels)),
        sent=sent,
        idle=idle.tables["log_origins"],
        logs=(runs[0].result, runs[1].result),
    )
    return CaseLogsRun(runs[0], runs[1], answer_case_logs(found))


# ---- before the server ----

_PLACES: Final = ("before", "after")


def _one_cell(half: LogHalf, levels: Mapping[str, list[str]]) -> tuple[Spec, Cell]:
    """Return the case's experiment with one level of each factor, and its only cell."""
    options = Options(levels={**half.levels, **levels})
    spec = file_source(case_folder(half.case) / "case.toml", options, case=half.case).spec
    for factor in spec.factors:
        found = list(spec.levels(factor))
        if len(found) > 1:
            raise UsageError(
                f"--set {factor}={','.join(found)}: give one level: each log is about a single cell"
            )
    (cell,) = cells(spec)
    return spec, cell


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Yield the folder for the logs: `keep`, or a temporary folder that is deleted afterwards."""
    if keep is None:
        with scratch_folder("uncork-logs-") as scratch:
            yield scratch
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"cannot make {keep}: {error.strerror}") from error
    yield keep


def _path(folder: Path, half: LogHalf, place: str) -> Path:
    return folder / f"{half.case}-{place}.log"


def _read_again(path: Path, begin_us: int, end_us: int) -> str:
    begin, end = (datetime.fromtimestamp(micros / 1e6, UTC).isoformat() for micros in (begin_us, end_us))
    return shlex.join(["uncork", "profile", "logs", str(path), "-b", begin, "-e", end])


# ---- with it ----


@contextmanager
def _served(choice: ServerChoice, spec: Spec) -> Iterator[PostgresServer]:
    """Yield an embedded server that logs, and stop it afterwards."""
    server = choice.server({**spec.server.settings, **_LOGGING})
    try:
        server.start()
        yield server
    finally:
        with uninterrupted():
            server.stop()


class _Scene:
    """One cell of the experiment on a server that logs, with both batches."""

    def __init__(
        self, half: LogHalf, spec: Spec, cell: Cell, server: PostgresServer, folder: Path, notify: Notify
    ) -> None:
        self._half = half
        self._spec = spec
        self._cell = cell
        self._server = server
        self._folder = folder
        self._notify = notify
        self._arm = Arm(spec.baseline)

    def play(self) -> tuple[SentBatch, SentBatch]:
        """Create the data, warm up, and send the batch before and after, each with its own log."""
        half = self._half
        pools = self._prepare()
        # The first change of a page after a checkpoint writes the whole page to the WAL. Without this,
        # the first batch would pay for both.
        self._send(half.ways[0], pools)
        self._undo(half.ways[0])
        before, left = self._logged("before", half.ways[0], pools, 0)
        self._undo(half.ways[0])
        after, left_after = self._logged("after", half.ways[1], pools, before.length_us)
        if left != left_after:
            raise RunError(
                f"{half.ways[1]} and {half.ways[0]} leave different data: their logs are not comparable"
            )
        return before, after

    def _prepare(self) -> Pools:
        spec, cell, server = self._spec, self._cell, self._server
        levels = ", ".join(f"{name} {format_count(int(level))}" for name, level in cell.levels)
        self._notify(f"creating the tables: {levels}")
        script = f"{Placements(spec).script(cell, spec.baseline)}\n{self._half.setup}"
        server.build(cell, spec.baseline, script, {}, spec.setup.timeout)
        server.restore(cell, self._arm)
        server.warm(cell, self._arm)
        queries = queries_for(spec, cell, self._half.workload, spec.baseline)
        return {name: server.column(cell, self._arm, query) for name, query in queries.items()}

    def _logged(self, place: str, way: str, pools: Pools, least_us: int) -> tuple[SentBatch, str | None]:
        """Send a batch while the background runs, and keep its log; return it with a digest of the data.

        The background runs until at least `least_us` after the start of the batch.
        """
        half, path = self._half, _path(self._folder, self._half, place)
        self._server.take_log(path)  # discards the log so far: the next call overwrites the file
        with going_on(half.background, self._background(), self._target(half.background).connection):
            time.sleep(_QUIET_S)
            begin = _now_us()
            self._send(way, pools)
            end = _now_us()
            time.sleep(max(_QUIET_S, (least_us - (end - begin)) / 1e6))
            until = _now_us()
        self._server.take_log(path)
        title = self._spec.variants[way].title or way
        size = path.stat().st_size
        sent = SentBatch(way, title, begin, end, until, size)
        self._notify(
            f"{place}, {title}: {format_duration(sent.length_us * 1000)}, {format_bytes(size)} of log"
        )
        return sent, self._left_behind(way)

    def _left_behind(self, way: str) -> str | None:
        """Return a digest of the data after a batch; None if the workload has no check query."""
        check = self._spec.workloads[self._half.workload].check
        if check is None:
            return None
        query = substitute(check, texts_for(self._spec, self._cell, way))
        return self._server.answer_digest(self._cell, self._arm, query)

    def _send(self, way: str, pools: Pools) -> None:
        target = self._target(self._half.updater)
        request = batch_request(self._spec, self._cell, self._half.workload, way, target, pools)
        measured = SqlLoad().run(request)
        if measured.outcome != Outcome.COMPLETE:
            raise LoadError(f"{self._half.updater}, {way}: {measured.message or measured.outcome}")

    def _undo(self, way: str) -> None:
        statements = undo_for(self._spec, self._cell, self._half.workload, way)
        self._server.undo(self._cell, self._arm, statements)

    def _target(self, application: str) -> Target:
        """Return the server with the connection of an application, under the application's name."""
        target = self._server.target(self._cell, self._arm)
        connection = {**target.connection, "database": target.database, "application_name": application}
        return replace(target, connection=connection)

    def _background(self) -> LoadSpec:
        half = self._half
        return LoadSpec(
            scripts=(LoadScript(half.background, 1, half.script),),
            clients=half.clients,
            seed=self._spec.experiment.seed,
            arrivals=Arrivals("constant", half.rate),
        )


def _now_us() -> int:
    return time.time_ns() // 1000
