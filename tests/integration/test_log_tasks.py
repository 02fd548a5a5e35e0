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

import pytest
from tests.fakes.local_nodes import LocalNodes
from tests.fakes.log_fleet import PREFIX, fleet_log, write_fleet

from uncork.cluster.agent import NodeAgent
from uncork.cluster.log_tasks import on_nodes
from uncork.errors import SetupError, UsageError
from uncork.model.load import ClusterRequest
from uncork.profile.logs import LogReading, LogRequest, read_logs
from uncork.profile.portions.local import in_processes
from uncork.profile.portions.tasks import Done, LogTask, gather_task, ignore, log_tasks, read_in_tasks
from uncork.workbench.profile.portions.reading import UnfinishedLogs

FILES = 40
ENTRIES = 300


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> LogRequest:
    """Return the request for 40 rotated files of two servers: plain, and compressed in two ways."""
    return write_fleet(tmp_path_factory.mktemp("fleet"), FILES, ENTRIES)


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


def test_nothing_is_said_of_the_order_of_files_that_overlap(fleet: LogRequest, whole: LogReading) -> None:
    mixed = replace(fleet, servers=())
    for reading in (read_logs(mixed), read_in_tasks(mixed, Inline())):
        assert (whole.facts["withheld"], reading.facts["withheld"]) == ([], [""])
        for name in ("log_transactions", "log_blocking", "log_loops"):
            assert whole.tables[name].num_rows > reading.tables[name].num_rows == 0, name
        waits = reading.tables["log_incidents"].column("is_wait").to_pylist()
        assert any(whole.tables["log_incidents"].column("is_wait").to_pylist()) and not any(waits)
        assert not any(reading.tables["log_templates"].column("repeated_rows").to_pylist())
        assert reading.facts["most_sessions"] is None
        assert reading.facts["entries"] == whole.facts["entries"]


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

    def __call__(self, tasks: Sequence[LogTask], *, done: Done = ignore) -> Iterator[bytes]:
        for task in tasks:
            if task.number == self.end:
                raise KeyboardInterrupt
            self.done.append(task.number)
            portion = gather_task(task)
            done(task, portion)
            yield portion


def test_a_reading_that_was_interrupted_goes_on(fleet: LogRequest, whole: LogReading, tmp_path: Path) -> None:
    said: list[str] = []
    first, reading = UnfinishedLogs(tmp_path, said.append), Inline(end=30)
    part = read_in_tasks(fleet, first.keeping(reading))
    assert part.facts["stopped"] and reading.done == [*range(30)]
    first.interrupted()
    kept = sorted((tmp_path / ".unfinished").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len(kept) == 30
    kept[3].write_bytes(kept[3].read_bytes()[:-1])
    kept[7].rename(kept[7].with_suffix(".7.new"))  # as a process leaves it that is killed while it writes
    second, reading = UnfinishedLogs(tmp_path, said.append), Inline()
    _same(read_in_tasks(fleet, second.keeping(reading)), whole)
    assert sorted(reading.done) == [3, 7, *range(30, FILES)]
    second.forget()
    assert not (tmp_path / ".unfinished").exists()
    assert [text.split(" ")[:3] for text in said] == [["30", "of", "40"], ["29", "of", "40"]]


def test_a_result_that_waits_for_an_earlier_one_is_kept_too(fleet: LogRequest, tmp_path: Path) -> None:
    few = replace(fleet, paths=fleet.paths[:4], servers=fleet.servers[:4])

    def backwards(tasks: Sequence[LogTask], *, done: Done = ignore) -> Iterator[bytes]:
        for task in reversed(tasks[1:]):
            done(task, gather_task(task))
        raise KeyboardInterrupt
        yield b""

    read_in_tasks(few, UnfinishedLogs(tmp_path, print).keeping(backwards))
    reading = Inline()
    read_in_tasks(few, UnfinishedLogs(tmp_path, print).keeping(reading))
    assert reading.done == [0]


def test_a_log_that_was_not_read_to_its_end_is_read_again(tmp_path: Path) -> None:
    path, whole = tmp_path / "a.log.gz", gzip.compress(fleet_log(random.Random(1), 0, 0, ENTRIES).encode())
    path.write_bytes(whole[:-100])
    reading = Inline()
    for _ in range(2):
        read_in_tasks(LogRequest((path,), prefix=PREFIX), UnfinishedLogs(tmp_path, print).keeping(reading))
    assert reading.done == [0, 0]


def test_what_was_kept_of_a_log_is_not_used_once_it_or_the_request_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(fleet_log(random.Random(1), 0, 0, ENTRIES))
    request = LogRequest((path,), prefix=PREFIX, threads=1)

    def done(request: LogRequest) -> list[int]:
        reading = Inline()
        read_in_tasks(request, UnfinishedLogs(tmp_path, print).keeping(reading))
        return reading.done

    assert (done(request), done(request)) == ([0], [])
    assert done(replace(request, begin_us=1_767_254_400_000_000)) == [0]
    with path.open("a") as file:
        file.write(fleet_log(random.Random(2), 0, 1, ENTRIES))
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
