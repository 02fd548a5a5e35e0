"""Logs of several servers: nothing of one is mixed with the other's, and the report says which is which."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.logs import BEGIN_US, line
from uncork.analysis.log.result import log_result
from uncork.model.results.log import LogResult, LogRunFacts
from uncork.profile.logs import LogRequest, read_logs
from uncork.report.log.answer import answer_log
from uncork.report.log.document import build_log_document
from uncork.report.log.tables import servers_table
from uncork.report.write.markdown import markdown_text

PREFIX = "%m [%p] %u@%d %a "
RUN = LogRunFacts("log-a", "complete", "2026-01-01T00:00:00+00:00", 1, 1, "uncork", "0")


def result(folder: Path, servers: tuple[str, ...], *texts: str) -> LogResult:
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"{number}.log")
        paths[-1].write_text(text)
    reading = read_logs(LogRequest(tuple(paths), PREFIX, servers=servers))
    return answer_log(log_result(RUN, reading.facts, reading.tables))


def logged(text: str, *, at_ms: int, pid: int = 7) -> str:
    """Return an entry without a duration."""
    return line("", at_ms=at_ms, ms=0, pid=pid).partition("LOG:")[0] + f"{text}\n"


def halves(count: int) -> tuple[str, str]:
    """Return what looks like loops, transactions and waits if two servers are taken for one."""
    first = second = ""
    for turn in range(count):
        begin = turn * 1000
        first += line("BEGIN", at_ms=begin, ms=0.1)
        for step in range(9):
            first += line(f"SELECT a FROM items WHERE id = {step}", at_ms=begin + 10 + step, ms=0.5)
        second += line("SELECT 1", at_ms=begin, ms=0.1)
        for step in range(9):
            second += line(f"SELECT a FROM items WHERE id = {step}", at_ms=begin + 20 + step, ms=0.5)
        second += line("COMMIT", at_ms=begin + 40, ms=0.1)
        second += line("SELECT 2", at_ms=begin + 44, ms=0.1, pid=8)
        second += line("UPDATE items SET a = 1", at_ms=begin + 45, ms=1, pid=8)
        first += logged(
            "LOG:  process 7 still waiting for ShareLock on transaction 5 after 1000.000 ms", at_ms=begin + 50
        )
        first += logged("DETAIL:  Process holding the lock: 8. Wait queue: 7.", at_ms=begin + 50)
        first += logged("STATEMENT:  UPDATE items SET a = 2", at_ms=begin + 50)
        first += logged(
            "LOG:  process 7 acquired ShareLock on transaction 5 after 1500.000 ms", at_ms=begin + 60
        )
        first += logged("STATEMENT:  UPDATE items SET a = 2", at_ms=begin + 60)
    return first, second


def by_time(*logs: str) -> str:
    """Return one log with the lines of several in the order of their times."""
    lines = [one for log in logs for one in log.splitlines(keepends=True)]
    return "".join(sorted(lines, key=lambda one: one[:23]))


def test_equal_processes_of_two_servers_make_no_loop_no_transaction_and_no_wait(tmp_path: Path):
    first, second = halves(40)
    mixed = result(tmp_path, (), by_time(first, second))
    # Taken for one server, process 7 has transactions with 18 look-ups, and waits for process 8.
    (wrong,) = [one for one in mixed.transactions if one.count]
    assert wrong.statements_max >= 18
    assert any(one.repetition for one in mixed.templates)
    assert [one.holding_text for one in mixed.blocking] == ["update items set a = ?"]
    apart = result(tmp_path, ("one", "two"), first, second)
    assert not apart.transactions and not apart.loops
    assert not any(one.repetition for one in apart.templates)
    (wait,) = apart.blocking
    assert (wait.server, wait.waits, wait.holding_text) == ("one", 40, "")


def fleet(folder: Path) -> LogResult:
    """Return the result of two servers: the second has more time, and errors."""
    logs = []
    for server, scale in enumerate((1, 3)):
        log = ""
        for n in range(200):
            log += line(f"SELECT a{server} FROM items WHERE id = {n}", at_ms=n * 100, ms=scale)
            log += line("SELECT now()", at_ms=n * 100 + 10, ms=scale)
            if n % 10 <= server:
                log += logged('ERROR:  relation "x" does not exist', at_ms=n * 100 + 20)
        logs.append(log)
    return result(folder, ("db1", "db2"), *logs)


def test_each_server_has_its_entries_time_errors_and_busiest_template(tmp_path: Path):
    found = fleet(tmp_path)
    second, first = found.servers
    assert (first.name, second.name) == ("db1", "db2")
    assert (first.entries, second.entries) == (420, 440)
    assert (first.executions, first.sum_ns, first.errors) == (400, 400_000_000, 20)
    assert (second.sum_ns, second.errors, second.template_text) == (
        *(1_200_000_000, 40),
        "select a1 from items where id = ?",
    )
    assert second.share == pytest.approx(0.75)
    # Errors of one kind are one kind, whoever logs them.
    (error,) = found.errors
    assert (error.count, [(one.name, one.count) for one in error.servers]) == (60, [("db2", 40), ("db1", 20)])
    assert error.first_us == BEGIN_US + 20_000
    assert sum(point.count for point in found.series) == 800
    assert [one.name for one in found.server_series] == ["db2", "db1"]
    now = next(one for one in found.templates if one.text == "select now()")
    assert [(one.name, one.executions) for one in now.servers] == [("db2", 200), ("db1", 200)]


def looped(server: int) -> str:
    """Return two hours in which transactions repeat two statements in turn, more of the second server."""
    log = ""
    for turn in range(4):
        begin = turn * 1_800_000
        log += line("BEGIN", at_ms=begin, ms=0.1)
        for step in range(15 + 5 * server):
            log += line(f"SELECT a FROM items WHERE id = {step}", at_ms=begin + 10 + 20 * step, ms=2 + server)
            log += line(f"SELECT b FROM notes WHERE id = {step}", at_ms=begin + 20 + 20 * step, ms=1)
        log += line("COMMIT", at_ms=begin + 900, ms=0.1)
        for step in range(12):
            log += line(f"SELECT 1 FROM single WHERE id = {step}", at_ms=begin + 1_000 + step, ms=1, pid=9)
    return log


def test_loops_hours_and_repetitions_are_known_by_server_and_added_up(tmp_path: Path):
    paths = []
    for server in range(2):
        paths.append(tmp_path / f"{server}.log")
        paths[-1].write_text(looped(server))
    reading = read_logs(LogRequest(tuple(paths), PREFIX, servers=("db1", "db2")))
    found = answer_log(log_result(RUN, reading.facts, reading.tables))
    rows = reading.tables["log_loops"].select(["server", "executions", "longest"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [
        *(("db1", 60, 15), ("db1", 60, 15), ("db2", 80, 20), ("db2", 80, 20)),
    ]
    (loop,) = found.loops
    assert [(one.executions, one.longest) for one in loop.templates] == [(140, 20), (140, 20)]
    assert [(one.name, one.count) for one in loop.templates[0].servers] == [("db2", 80), ("db1", 60)]
    texts = reading.tables["log_templates"]["text"].to_pylist()
    by_server = {
        (texts[row["template"]], row["server"]): row
        for row in reading.tables["log_templates_by_server"].to_pylist()
    }
    first = by_server["select a from items where id = ?", "db2"]
    assert (first["executions"], first["sum_us"], first["repeated_rows"]) == (80, 240_000, None)
    single = by_server["select ? from single where id = ?", "db1"]
    assert (single["repeated_rows"], single["repeated_executions"], single["repeated_longest"]) == (4, 48, 12)
    repetition = next(one.repetition for one in found.templates if one.repetition)
    assert (repetition.rows, repetition.executions) == (8, 96)
    slow, fast = found.servers
    assert slow.name == "db2"
    assert (slow.p95_ns, fast.p95_ns) == pytest.approx((3_000_000, 2_000_000), rel=0.008)
    assert [one.executions for one in slow.hours] == [108, 108]
    assert slow.hours[1].p95_ns == slow.p95_ns
    assert [one.executions for one in found.hours] == [108 + 88] * 2
    page = markdown_text(build_log_document(found))
    assert "Statements and their p95 by hour and server" in page
    assert "db2 67 %, db1 33 %" in page.replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_names_servers_only_if_there_are_several(tmp_path: Path):
    page = markdown_text(build_log_document(fleet(tmp_path)))
    for part in ("## Servers", "| db2", "db2 40, db1 20", "on server db"):
        assert part in page, part
    unnamed, named = (
        markdown_text(build_log_document(result(tmp_path, servers, line("SELECT 1", at_ms=0, ms=5))))
        for servers in ((), ("db1",))
    )
    assert named == unnamed and "## Servers" not in named


def test_the_terminal_shows_the_servers_with_most_time(tmp_path: Path):
    logs = [line("SELECT 1", at_ms=0, ms=number + 1) for number in range(12)]
    found = result(tmp_path, tuple(f"db{number:02}" for number in range(12)), *logs)
    table = servers_table(found, 10)
    assert table.caption == "Servers; 2 other servers not shown"
    assert [row[0].text for row in table.rows][:2] == ["db11", "db10"] and len(table.rows) == 10


def test_a_finding_names_its_server(tmp_path: Path):
    slow = "".join(
        line("SELECT 1", at_ms=n * 1000, ms=1)
        + logged(
            "LOG:  process 7 still waiting for ShareLock on transaction 5 after 1000.0 ms", at_ms=n * 1000 + 1
        )
        + logged("DETAIL:  Process holding the lock: 8. Wait queue: 7.", at_ms=n * 1000 + 1)
        + logged("STATEMENT:  UPDATE items SET a = 2", at_ms=n * 1000 + 1)
        + logged("LOG:  process 7 acquired ShareLock on transaction 5 after 1500.0 ms", at_ms=n * 1000 + 2)
        + logged("STATEMENT:  UPDATE items SET a = 2", at_ms=n * 1000 + 2)
        + line("UPDATE items SET a = 2", at_ms=n * 1000 + 3, ms=1500)
        for n in range(20)
    )
    checkpoints = "".join(
        logged("LOG:  checkpoint starting: wal", at_ms=n * 2000)
        + logged(
            "LOG:  checkpoint complete: wrote 44 buffers (0.3%); 0 WAL file(s) added, 0 removed, 0 recycled; "
            "write=0.3 s, sync=0.0 s, total=0.3 s; sync files=1, longest=0.0 s, average=0.0 s; "
            "distance=260 kB, estimate=260 kB",
            at_ms=n * 2000 + 1,
        )
        for n in range(10)
    )
    found = result(tmp_path, ("db1", "db2"), slow, checkpoints + line("SELECT 1", at_ms=20_000, ms=1))
    headlines = [one.headline for one in found.findings]
    assert any(one.startswith("20 statements on server db1 waited for locks") for one in headlines)
    assert any("forced 10 checkpoints on server db2, one every" in one for one in headlines)
    alone = result(tmp_path, ("db1",), slow)
    assert not any("server db1" in one.headline for one in alone.findings)
