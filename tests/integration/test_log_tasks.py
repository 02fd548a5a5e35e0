"""Logs that several processes, nodes or days read: all tables are those of one process that reads all."""

from __future__ import annotations

import gzip
import os
import random
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from tests.fakes.local_nodes import LocalNodes

from uncork.cluster.agent import NodeAgent
from uncork.cluster.log_tasks import on_nodes
from uncork.errors import SetupError, UsageError
from uncork.model.load import ClusterRequest
from uncork.profile.logs import LogReading, LogRequest, read_logs
from uncork.profile.portions.joining import read_in_tasks
from uncork.profile.portions.local import in_processes
from uncork.profile.portions.tasks import LogTask, gather_task, log_tasks
from uncork.workbench.profile.portions.unfinished import UnfinishedLogs

FILES = 40
ENTRIES = 300


def _log(chance: random.Random, server: int, file: int) -> str:
    """Return a rotated file; sessions, transactions, loops and waits go on in the next one."""
    lines = []
    for number in range(file * ENTRIES, (file + 1) * ENTRIES):
        pid, ms = 100 + chance.randrange(5), number * 20
        head = (
            f"2026-01-01 08:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03} UTC "
            f"[{pid}] u{pid % 2}@d app{server} "
        )
        match chance.randrange(25):
            case 0:
                lines += [
                    f'{head}ERROR:  relation "t{number}" does not exist',
                    f"{head}STATEMENT:  SELECT {number}",
                ]
            case 1:
                lines += [
                    f"{head}LOG:  process {pid} still waiting for ShareLock on transaction 7 after 1000.1 ms",
                    f"{head}DETAIL:  Process holding the lock: {100 + (pid + 1) % 5}. Wait queue: {pid}.",
                    f"{head}STATEMENT:  UPDATE t SET a = {number}",
                ]
            case 2:
                lines.append(
                    f"{head}LOG:  process {pid} acquired ShareLock on transaction 7 after 2000.{number} ms"
                )
            case 3:
                lines.append(f"{head}LOG:  statement: DELETE FROM t WHERE a = {number}")
            case 4:
                lines.append(f"{head}LOG:  duration: {number}.25 ms")
            case 5:
                lines.append(f"{head}LOG:  duration: 0.010 ms  statement: BEGIN")
            case 6:
                lines.append(f"{head}LOG:  duration: 0.100 ms  statement: COMMIT")
            case _:
                lines.append(
                    f"{head}LOG:  duration: 0.{number % 1000:03} ms  statement: "
                    f"SELECT a\n\tFROM t WHERE id = {number}"
                )
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> LogRequest:
    """Return the request for 40 rotated files of two servers: plain, and compressed in two ways."""
    chance, folder = random.Random(23), tmp_path_factory.mktemp("fleet")
    paths = []
    for number in range(FILES):
        server, file = number % 2, number // 2
        text = _log(chance, server, file).encode()
        path = folder / f"server{server}-{file:02}.log"
        if number % 3 == 1:
            path = path.with_suffix(".log.gz")
            path.write_bytes(gzip.compress(text))
        elif number % 3 == 2:
            path = path.with_suffix(".log.zst")
            path.write_bytes(pa.compress(text, codec="zstd", asbytes=True))
        else:
            path.write_bytes(text)
        paths.append(path)
    servers = tuple(path.name.partition("-")[0] for path in paths)
    return LogRequest(tuple(paths), prefix="%m [%p] %u@%d %a ", threads=1, servers=servers)


@pytest.fixture(scope="module")
def whole(fleet: LogRequest) -> LogReading:
    """Return what one process reads of all."""
    reading = read_logs(fleet)
    assert reading.facts["entries"] > 10_000
    assert reading.tables["log_transactions"].num_rows > 1
    assert reading.tables["log_blocking"].num_rows > 1
    return reading


def _same(found: LogReading, expected: LogReading) -> None:
    assert found.facts == expected.facts
    assert found.tables.keys() == expected.tables.keys()
    for name, table in expected.tables.items():
        # The rows of errors in log_series have no order.
        keys = [(column, "ascending") for column in table.column_names if column != "squares"]
        assert found.tables[name].sort_by(keys).equals(table.sort_by(keys)), name


@pytest.mark.parametrize("part_bytes", [0, 3_000, 11_000])
def test_several_processes_read_what_one_reads(fleet: LogRequest, whole: LogReading, part_bytes: int) -> None:
    tasks = log_tasks(fleet, part_bytes=part_bytes)
    assert (len(tasks) > FILES) is (part_bytes > 0)
    _same(read_in_tasks(fleet, partial(in_processes, processes=2), part_bytes=part_bytes), whole)


def test_the_task_of_a_killed_process_is_done_again_once(fleet: LogRequest, whole: LogReading) -> None:
    began: list[int] = []

    def kill_first(number: int, pid: int) -> None:
        if number in (3, 17) and number not in began:
            os.kill(pid, signal.SIGKILL)
        began.append(number)

    _same(read_in_tasks(fleet, partial(in_processes, processes=2, began=kill_first)), whole)
    assert sorted(began) == sorted([*range(FILES), 3, 17])


def test_a_task_that_kills_its_process_is_not_begun_for_ever(fleet: LogRequest) -> None:
    def kill(number: int, pid: int) -> None:
        if number == 1:
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(SetupError, match=r"server1-00\.log.*ended twice"):
        read_in_tasks(fleet, partial(in_processes, processes=2, began=kill))


def test_logs_can_follow_those_of_an_earlier_reading(fleet: LogRequest, whole: LogReading) -> None:
    stored = None
    for begin, end in ((0, 1), (1, 22), (22, FILES)):
        part = replace(fleet, paths=fleet.paths[begin:end], servers=fleet.servers[begin:end])
        reading = read_in_tasks(part, partial(in_processes, processes=1), before=stored, keep=True)
        stored = reading.stored
        assert stored is not None
    _same(replace(reading, stored=None), whole)
    with pytest.raises(UsageError, match="it is damaged"):
        read_in_tasks(fleet, partial(in_processes, processes=1), before=stored[:-1])


class Inline:
    """Carries out tasks in this process, and remembers them; Ctrl-C comes instead of the task `end`."""

    def __init__(self, end: int | None = None) -> None:
        self.end, self.done = end, list[int]()

    def __call__(self, tasks: Sequence[LogTask]) -> Iterator[bytes]:
        for task in tasks:
            if task.number == self.end:
                raise KeyboardInterrupt
            self.done.append(task.number)
            yield gather_task(task)


def test_a_reading_that_was_interrupted_goes_on(fleet: LogRequest, whole: LogReading, tmp_path: Path) -> None:
    said: list[str] = []
    first, reading = UnfinishedLogs(tmp_path, said.append), Inline(end=30)
    part = read_in_tasks(fleet, first.keeping(reading))
    assert part.facts["stopped"] and reading.done == [*range(30)]
    first.interrupted()
    kept = sorted((tmp_path / ".unfinished").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len(kept) == 30
    kept[3].write_bytes(kept[3].read_bytes()[:-1])
    kept[7].unlink()
    second, reading = UnfinishedLogs(tmp_path, said.append), Inline()
    _same(read_in_tasks(fleet, second.keeping(reading)), whole)
    assert sorted(reading.done) == [3, 7, *range(30, FILES)]
    second.forget()
    assert not (tmp_path / ".unfinished").exists()
    assert [text.split(" ")[:3] for text in said] == [["30", "of", "40"], ["29", "of", "40"]]


def test_what_was_kept_of_a_log_is_not_used_once_it_or_the_request_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(_log(random.Random(1), 0, 0))
    request = LogRequest((path,), prefix="%m [%p] %u@%d %a ", threads=1)

    def done(request: LogRequest) -> list[int]:
        reading = Inline()
        read_in_tasks(request, UnfinishedLogs(tmp_path, print).keeping(reading))
        return reading.done

    assert (done(request), done(request)) == ([0], [])
    assert done(replace(request, begin_us=1_767_254_400_000_000)) == [0]
    with path.open("a") as file:
        file.write(_log(random.Random(2), 0, 1))
    assert (done(request), done(request)) == ([0], [])


def test_standard_input_is_refused() -> None:
    with pytest.raises(UsageError, match="only files and objects"):
        log_tasks(LogRequest((Path("-"),)))


def test_a_log_that_is_not_there_is_named() -> None:
    with pytest.raises(SetupError, match="nowhere: No such file or directory"):
        log_tasks(LogRequest((Path("/nowhere"),)))


class LosingNodes(LocalNodes):
    """Nodes of which one is lost with its third task."""

    def ask(self, number: int, method: str, *arguments: object):  # type: ignore[no-untyped-def]
        if number == 2 and sum(one == (2, "gather") for one in self.calls) == 2:
            self.kill(2)
        return super().ask(number, method, *arguments)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_nodes_read_what_one_process_reads(fleet: LogRequest, whole: LogReading, count: int) -> None:
    said: list[str] = []
    nodes = LosingNodes([NodeAgent() for _ in range(count)])
    request = ClusterRequest(nodes=count, place="local")
    carry_out = partial(on_nodes, request=request, notify=said.append, reserve=nodes.reserve)
    _same(read_in_tasks(fleet, carry_out, part_bytes=5_000), whole)
    assert len(said) == (0 if count == 1 else 1)
