"""Processes that uncork starts, and stores of objects."""

from __future__ import annotations

import bz2
import gzip
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.object_server import object_server
from fakes.reapers import ends, reaper_of
from uncork.errors import SetupError, UncorkError
from uncork.profile.logs import read_logs
from uncork.profile.objects import client, finding
from uncork.profile.objects.reading import ObjectReader
from uncork.spawn import child, reaper
from uncork.spawn.child import run, scratch_folder, start
from uncork.spawn.reaper import TOKEN, Orders, Process, belonging, start_of
from uncork.workbench.profile.log_files import LogServers, log_request
from uncork.workbench.profile.logs import repeated_updates

SLEEP = "[sys.executable, '-c', 'import time; time.sleep(600)']"


@contextmanager
def owner(program: str, *, stdout=subprocess.PIPE):
    """Run a program that starts children and prints their numbers; yield it with their numbers and starts."""
    head = "import os, signal, subprocess, sys, time\nfrom uncork.spawn.child import *\n"
    tail = "\ntime.sleep(600)\n"
    with subprocess.Popen(
        [sys.executable, "-c", head + program + tail], stdout=stdout, text=True, start_new_session=True
    ) as running:
        try:
            found = [int(word) for word in running.stdout.readline().split()]
            assert found
            yield running, {pid: start_of(pid) for pid in found}
        finally:
            running.kill()


def all_end(children) -> bool:
    return all(ends(pid, began) for pid, began in children.items())


@pytest.mark.parametrize("group", [False, True], ids=["process", "process group"])
def test_a_child_ends_with_a_killed_owner(group):
    with owner(f"print(start({SLEEP}).pid, flush=True)") as (running, children):
        waiting = reaper_of(running.pid)
        began = start_of(waiting)
        (os.killpg if group else os.kill)(running.pid, signal.SIGKILL)
        assert all_end(children)
        assert ends(waiting, began), "the reaper ends, too"


def test_so_does_what_left_the_session_or_the_environment_of_a_child():
    program = f"""
code = '''if True:
    import os, subprocess, sys, time
    gone = subprocess.Popen({SLEEP}, start_new_session=True)
    bare = subprocess.Popen({SLEEP}, env={{}})
    both = subprocess.Popen({SLEEP}, env={{}}, start_new_session=True)
    print(os.getpid(), gone.pid, bare.pid, both.pid, flush=True)
    time.sleep(600)
'''
start([sys.executable, "-c", code])
"""
    with owner(program) as (running, children):
        assert len(children) == 4
        running.kill()
        assert all_end(children)


def test_so_does_a_daemon_whose_parents_have_ended():
    daemon = (
        f"import subprocess, sys; print(subprocess.Popen({SLEEP}, start_new_session=True).pid, flush=True)"
    )
    with owner(f'start([sys.executable, "-c", {daemon!r}]).wait()') as (running, children):
        running.kill()
        assert all_end(children)


@pytest.mark.parametrize("listens", [True, False])
def test_a_child_that_is_asked_may_end_in_order_and_is_killed_otherwise(tmp_path, listens):
    code = f"""
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path({str(tmp_path / "asked")!r}).touch()
    {listens} and sys.exit()
signal.signal(signal.SIGQUIT, end)
print("ready", flush=True)
while True:
    time.sleep(600)
"""
    program = f"""
child = start([sys.executable, "-c", {code!r}], ask=signal.SIGQUIT, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
"""
    with owner(program) as (running, children):
        running.kill()
        assert all_end(children)
        assert (tmp_path / "asked").exists()


def test_folders_are_removed_also_those_that_were_made_before(tmp_path):
    program = f"""
from pathlib import Path
Path({str(tmp_path)!r}, "kept").mkdir()
remove_at_death(Path({str(tmp_path)!r}, "kept"))
folder = scratch_folder("uncork-test-")
(folder.__enter__() / "file").write_text("x")
Path({str(tmp_path)!r}, "name").write_text(str(folder.gen.gi_frame.f_locals["name"]))
print(start({SLEEP}).pid, flush=True)
"""
    with owner(program) as (running, children):
        scratch = (tmp_path / "name").read_text()
        assert Path(scratch).is_dir()
        waiting = reaper_of(running.pid)
        began = start_of(waiting)
        running.kill()
        assert all_end(children)
        assert ends(waiting, began)
    assert not (tmp_path / "kept").exists()
    assert not Path(scratch).exists()


def test_who_reads_the_owners_output_does_not_wait_for_the_reaper():
    with owner(f"print(start({SLEEP}, stdout=subprocess.DEVNULL).pid, flush=True)") as (running, _):
        waiting = reaper_of(running.pid)
        os.kill(waiting, signal.SIGSTOP)
        running.kill()
        assert running.stdout.read() == ""
        os.kill(waiting, signal.SIGCONT)


def test_a_normal_end_leaves_no_reaper():
    code = (
        "from uncork.spawn.child import *; import os; run(['true']); print(os.getpid(), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        running.stdout.readline()
        waiting = reaper_of(running.pid)
        began = start_of(waiting)
        running.communicate("\n")
    assert ends(waiting, began, 2.0)


def test_polite_signals_do_not_end_the_reaper_and_a_killed_one_has_a_successor():
    program = f"""
first = start({SLEEP})
print(first.pid, flush=True)
sys.stdin.readline()
second = start({SLEEP})
print(second.pid, flush=True)
"""
    head = "import sys, time\nfrom uncork.spawn.child import *\n"
    with subprocess.Popen(
        [sys.executable, "-c", head + program + "time.sleep(600)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        first = int(running.stdout.readline())
        waiting = reaper_of(running.pid)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(waiting, number)
        assert reaper_of(running.pid) == waiting
        began = start_of(waiting)
        os.kill(waiting, signal.SIGKILL)
        assert ends(waiting, began)
        running.stdin.write("\n")
        running.stdin.flush()
        second = int(running.stdout.readline())
        assert reaper_of(running.pid) not in (None, waiting)
        children = {pid: start_of(pid) for pid in (first, second)}
        running.kill()
        assert all_end(children), "it knows those of before"


def test_a_forked_process_has_children_of_its_own():
    program = f"""
first = start({SLEEP})
pid = os.fork()
if pid == 0:
    second = start({SLEEP})
    print(first.pid, os.getpid(), second.pid, flush=True)
    time.sleep(600)
"""
    with owner(program) as (running, children):
        first, forked, second = children
        os.kill(forked, signal.SIGKILL)
        assert ends(second, children[second])
        assert start_of(first) == children[first]
        running.kill()
        assert ends(first, children[first]), "though the forked process held the pipe"


def test_the_reaper_of_an_uncork_among_the_children_does_its_own_work():
    inner = (
        "from uncork.spawn.child import *\nimport sys, time\n"
        f"print(start({SLEEP}, env={{}}).pid, flush=True)\ntime.sleep(600)\n"
    )
    program = f'inner = start([sys.executable, "-c", {inner!r}])'
    with owner(program) as (running, children):
        running.kill()
        assert all_end(children)


def test_a_later_process_with_the_same_number_is_left_alone():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        began = start_of(stranger.pid)
        assert not reaper._send(Process(stranger.pid, 0, 0, began - 1), signal.SIGKILL)
        assert stranger.poll() is None
        stranger.communicate(b"\n")
        assert stranger.returncode == 0
    assert not reaper._send(Process(stranger.pid, 0, 0, began), signal.SIGKILL)


def test_sessions_tokens_and_descendants_belong_and_others_do_not():
    living = [
        Process(10, 1, 10, 100),  # a leader
        Process(11, 10, 10, 101),  # of its session
        Process(12, 11, 12, 102),  # its descendant, in a session of its own
        Process(13, 1, 13, 103),
        Process(14, 13, 13, 104),
    ]
    assert set(belonging(living, [10], "", 1)) == {10, 11, 12}
    assert set(belonging(living, [10], "", 11)) == {10}, "the reaper itself"
    assert belonging(living, [], "", 1) == {}


def test_a_broken_order_is_left_out():
    orders = Orders()
    for line in (b'{"leader": [5, 7], "ask": 3}', b'{"lead', b"[]", b"{}", b'{"folder": "/a"}', b"7"):
        orders.add(line)
    assert orders == Orders({(5, 7): 3}, ["/a"])


def test_run_returns_what_a_command_says_and_kills_one_that_takes_too_long():
    done = run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    begun = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run(["sh", "-c", "sleep 60 & wait"], timeout=0.1, capture_output=True)
    assert time.monotonic() - begun < 10
    with pytest.raises(FileNotFoundError):
        run(["/no/such/program"])


def test_a_child_carries_the_token_beside_its_environment():
    done = run(["env"], env={"A": "b"}, capture_output=True, text=True)
    token = child._REAPER.ready()
    assert {"A=b", f"{TOKEN}={token}"} <= set(done.stdout.split("\n"))


def test_scratch_folders_are_removed_when_they_are_left():
    with scratch_folder("uncork-test-") as folder:
        (folder / "file").write_text("x")
    assert not folder.exists()


def test_a_python_that_cannot_be_run_is_named(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(SetupError, match=r"/no/such/python: No such file or directory; run uncork with"):
        child._Reaper().ready()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SetupError, match="/bin/false: exit status 1"):
        child._Reaper().ready()


def test_children_are_started_nowhere_else():
    package = Path(child.__file__).parents[1]
    doors = ("Popen(", "subprocess.run(", "subprocess.call(", "check_output(", "check_call(", "os.system(")
    doors += ("os.popen(", "posix_spawn(", "create_subprocess_", "os.fork(", "multiprocessing")
    found = {
        f"{path.relative_to(package)}: {door}"
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] not in ("spawn", "cases")
        for door in doors
        if door in path.read_text()
    }
    assert found == set()
    assert start.__module__ == "uncork.spawn.child"


START = datetime(2026, 11, 27, 4, tzinfo=UTC)
LINE = (
    "{time:%Y-%m-%d %H:%M:%S}.000 UTC [{pid}] u@d app LOG:  duration: 1.{id:03} ms  "
    "statement: UPDATE t{table} SET a = 1 WHERE id = {id}\n"
)
RANGE = 10_000


@pytest.fixture(scope="module")
def running():
    with object_server() as server:
        yield server


@pytest.fixture
def server(running, monkeypatch):
    running.objects.clear()
    running.faults.clear()
    running.ranges.clear()
    running.silent.clear()
    running.heads, running.lists, running.page, running.sends_ranges = 0, 0, 1000, True
    for name in os.environ:
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)
    for name, value in (running.s3 | running.gs | running.az).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(client, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(finding, "_HEADS", (RANGE, 3 * RANGE))
    monkeypatch.setattr(ObjectReader, "range_bytes", RANGE)
    monkeypatch.setattr(ObjectReader, "ahead_bytes", 6 * RANGE)
    return running


def log(hour=0, entries=600, table=1):
    times = (START + timedelta(hours=hour, seconds=number) for number in range(entries))
    lines = (
        LINE.format(time=time, pid=number % 5, id=number % 1000, table=table)
        for number, time in enumerate(times)
    )
    return "".join(lines).encode()


def read(*texts, period=(None, None), jobs=2):
    return read_logs(log_request([str(text) for text in texts], None, period, jobs))


def troubles(reading):
    return [file["trouble"] for file in reading.facts["files"]]


def tables(reading):
    return {name: table.to_pylist() for name, table in reading.tables.items()}


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_tables_from_objects_are_those_from_files(server, tmp_path, scheme):
    contents = {
        "2026/one.log": log(0),
        "2026/three.log.bz2": bz2.compress(log(1, table=3)),
        "2026/two.log.gz": gzip.compress(log(2, table=2)),
    }
    for key, content in contents.items():
        server.put(f"shop/{key}", content)
        path = tmp_path / key
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    objects, files = read(f"{scheme}://logs/shop/", jobs=1), read(tmp_path / "2026", jobs=1)
    assert objects.facts["entries"] == 1800 and troubles(objects) == [None] * 3
    assert tables(objects) == tables(files)
    sizes = [file["bytes"] for file in objects.facts["files"]]
    assert sizes == [file["bytes"] for file in files.facts["files"]]
    names = [file["name"] for file in objects.facts["files"]]
    assert names == [f"{scheme}://logs/shop/{key}" for key in sorted(contents)]
    assert max(end - begin for _, begin, end in server.ranges) <= RANGE


def test_updates_that_change_nothing_are_found_without_reading_objects_again(server, tmp_path):
    server.put("a.log", log() * 2)
    (tmp_path / "a.log").write_bytes(log() * 2)
    found = []
    for text in ("s3://logs/a.log", str(tmp_path / "a.log")):
        request = log_request([text], None, (None, None), 1)
        found.append(repeated_updates(request, read_logs(request)).to_pylist())
    assert found[0] == found[1] and found[0]
    assert len(server.ranges) == len(set(server.ranges))


@pytest.mark.parametrize("fault", ["429", "503", "500", "cut", "reset", "short"])
def test_a_range_that_fails_is_requested_again_and_counts_once(server, fault):
    server.put("a.log", log())
    server.faults["a.log", 2 * RANGE] = [fault, fault]
    server.faults["a.log", 0] = [fault]
    reading = read("s3://logs/a.log")
    assert (reading.facts["entries"], troubles(reading)) == (600, [None])
    assert server.ranges.count(("a.log", 2 * RANGE, 3 * RANGE)) == 3
    assert server.ranges.count(("a.log", 0, RANGE)) == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (["503"] * 20, "the server answered 503 SlowDown, 9 times in a row"),
        (["cut"] * 20, "the answer was cut short, 9 times in a row"),
        (["403"], "access is forbidden (403 SlowDown); check the credentials and their rights"),
    ],
)
def test_a_server_that_does_not_recover_is_named_and_what_was_read_is_kept(server, fault, words):
    server.put("a.log", log())
    server.put("b.log", log(1))
    server.faults["a.log", 3 * RANGE] = fault
    reading = read("s3://logs/")
    first, second = troubles(reading)
    assert first.startswith(words) and second is None
    whole = log()[: 3 * RANGE].count(b"\n")
    assert whole + 600 <= reading.facts["entries"] <= whole + 601


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("change", "the object changed while it was read"),
        ("delete", "the object was deleted while it was read"),
    ],
)
def test_an_object_that_changes_while_it_is_read_is_named_and_never_counts_twice(
    server, monkeypatch, fault, words
):
    monkeypatch.setattr(ObjectReader, "ahead_bytes", 1)  # one range after the other
    server.put("a.log", log())
    server.replacement = log(5, table=9)
    server.faults["a.log", 4 * RANGE] = [fault]
    server.put("b.log", log(1, table=2))
    reading = read("s3://logs/a.log", "s3://logs/b.log")
    first, second = troubles(reading)
    assert first.startswith(words) and second is None
    texts = {row["text"]: row["executions"] for row in reading.tables["log_templates"].to_pylist()}
    assert not any("t9" in text for text in texts)
    whole = log()[: 4 * RANGE].count(b"\n")
    assert whole <= sum(count for text, count in texts.items() if "t2" not in text) <= whole + 1
    assert next(count for text, count in texts.items() if "t2" in text) == 600
    kept = int(first.partition("its first ")[2].partition(" bytes")[0] or 0)
    assert reading.facts["files"][0]["bytes"] == kept == 4 * RANGE


def test_an_object_that_changes_before_it_is_read_is_read_as_it_is_then(server):
    server.put("a.log", log())
    server.put("b.log", log(1))
    server.replacement = log(0, entries=900)
    server.faults["a.log", 0] = ["change"]
    reading = read("s3://logs/")
    assert (reading.facts["entries"], troubles(reading)) == (1500, [None, None])


def test_an_object_that_keeps_changing_is_not_read(server):
    server.put("a.log", log())
    server.faults["a.log", 0] = ["change"] * 10
    contents = iter([log(0, entries=700 + turn) for turn in range(10)])
    server.__class__.replacement = property(lambda _: next(contents), lambda *_: None)
    try:
        reading = read("s3://logs/a.log")
    finally:
        del server.__class__.replacement
    assert reading.facts["entries"] == 0
    assert "the object changed while it was read: nothing of it counts" in troubles(reading)[0]


def test_many_small_objects_are_read_in_the_order_of_their_names(server):
    server.page = 7
    for hour in range(40):
        key = f"error/postgresql.log.2026-11-{27 + hour // 24}-{hour % 24:02}"
        server.put(key, log(hour, entries=3))
    server.put("error/empty.log", b"")
    reading = read("s3://logs/error/")
    assert reading.facts["entries"] == 120
    names = [file["name"][-5:] for file in reading.facts["files"]]
    assert names == ["y.log", *(f"{27 + hour // 24}-{hour % 24:02}" for hour in range(40))]
    assert len(server.ranges) == 40


def test_objects_of_one_server_are_read_in_the_order_of_their_first_entries(server):
    noise = "".join(f"{number * 2654435761 % 2**32:x}\n" for number in range(5_000)).encode()
    server.put("x/error.log", log(3, entries=3))
    server.put("x/error.log.1", log(2, entries=3))
    server.put("x/error.log.2.gz", gzip.compress(log(1, entries=3) + noise))
    server.put("x/error.log.3.bz2", bz2.compress(log(0, entries=3) + noise))
    server.put("x/no.log", b"nothing\n")
    request = log_request(["s3://logs/x/"], None, (None, None), 1)
    assert [name[-5:] for name in request.names] == ["3.bz2", ".2.gz", "log.1", "r.log", "o.log"]
    # Only the beginnings were read; of a block of bzip2 that does not fit, more.
    size = len(server.objects["logs", "x/error.log.3.bz2"].content)
    assert RANGE < size < 3 * RANGE
    assert {(key[-4:], end) for key, _, end in server.ranges if end >= RANGE} == {
        ("2.gz", RANGE),
        (".bz2", RANGE),
        (".bz2", size),
    }


def test_a_list_that_is_throttled_goes_on_where_it_was(server):
    server.page = 3
    server.faults = {("", 0): ["503"], ("", 3): ["429"], ("", 4): ["500"]}
    for number in range(10):
        server.put(f"x/{number}.log", log(number, entries=3))
    names = log_request(["s3://logs/x/"], None, (None, None), 1).names
    assert names == tuple(f"s3://logs/x/{number}.log" for number in range(10))
    assert server.lists >= 7


def test_an_object_that_the_core_leaves_early_does_not_stop_the_next(server):
    newest_first = b"".join(reversed(log(0, entries=2000).splitlines(keepends=True)))
    server.put("a.log", newest_first)
    server.put("b.log", log(1))
    reading = read("s3://logs/")
    first, second = troubles(reading)
    assert "newest first" in first and second is None
    assert reading.facts["entries"] == 600


def test_objects_outside_the_time_range_are_not_requested(server):
    for hour in range(4, 10):
        server.put(f"postgresql.log.2026-11-27-{hour:02}", log(hour - 4), START + timedelta(hours=hour - 3))
    period = ("2026-11-27 06:05", "2026-11-27 06:06")
    request = log_request(["s3://logs/"], None, period, 1)
    assert (request.names, request.outside) == (("s3://logs/postgresql.log.2026-11-27-06",), 5)
    assert read_logs(request).facts["entries"] == 60
    assert {key for key, _, _ in server.ranges} == {"postgresql.log.2026-11-27-06"}
    with pytest.raises(UncorkError, match=r"no object can hold entries of the time range.* \(6 listed\)"):
        log_request(["s3://logs/"], None, ("2026-12-01", None), 1)


def test_a_prefix_holds_logs_by_name_and_by_content(server):
    server.put("x/part-0001", log(entries=2))
    server.put("x/part-0002", b"\0\1\2")
    server.put("x/readme.md", log(entries=2))
    server.put("x/.hidden.log", log(entries=2))
    request = log_request(["s3://logs/x/part"], None, (None, None), 1)
    assert (request.names, request.skipped) == (("s3://logs/x/part-0001",), ("s3://logs/x/part-0002",))
    request = log_request(["s3://logs/x"], None, (None, None), 1)
    assert request.skipped == ("s3://logs/x/part-0002", "s3://logs/x/readme.md")
    assert log_request(["s3://logs/**/*2"], None, (None, None), 1).names == ("s3://logs/x/part-0002",)


def test_a_file_on_a_web_server_is_read_by_its_signed_address(server):
    server.put("a.log", log())
    address = f"http://127.0.0.1:{server.port}/logs/a.log"
    reading = read(f"{address}?X-Amz-Signature=hush")
    assert (reading.facts["entries"], troubles(reading)) == (600, [None])
    assert reading.facts["files"][0]["name"] == address
    server.sends_ranges = False
    assert f"the server does not send ranges; pipe it: curl -s {address}" in troubles(read(address))[0]


@pytest.mark.parametrize(
    ("text", "change", "message"),
    [
        ("s3://logs/none", {}, "s3://logs/none: no object has this name or prefix"),
        ("s3://logs/*.log", {}, r"s3://logs/\*.log: no object matches"),
        ("s3://none/a", {}, r's3://none/a: there is no bucket "none" \(404 NoSuchBucket\)'),
        ("gs://none", {}, r'gs://none: there is no bucket "none" \(404 NoSuchBucket\)'),
        ("az://none/a/", {}, r'az://none/a/: there is no container "none" \(404 ContainerNotFound\)'),
        ("s3://logs/a/", {"AWS_ACCESS_KEY_ID": "other"}, r"access is forbidden \(403 InvalidAccessKeyId\)"),
        ("s3://logs/a/", {"AWS_ACCESS_KEY_ID": None}, "no credentials: set AWS_ACCESS_KEY_ID and"),
        (
            "gs://logs/a/",
            {"STORAGE_EMULATOR_HOST": None, "GOOGLE_APPLICATION_CREDENTIALS": "/none.json"},
            "/none.json",
        ),
        ("az://logs/a/", {"AZURE_STORAGE_CONNECTION_STRING": None}, "no credentials: set AZURE_STORAGE"),
        ("s3://logs/a/", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "cannot be reached, 4 times in a row"),
        ("http://127.0.0.1:1/a.log", {}, "http://127.0.0.1:1/a.log: the server cannot be reached"),
    ],
)
def test_what_cannot_be_found_is_said_in_one_line(server, monkeypatch, text, change, message):
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    for name, value in change.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(UncorkError, match=message) as caught:
        log_request([text], None, (None, None), 1)
    assert "\n" not in str(caught.value) and "hush" not in str(caught.value)


def test_ctrl_c_ends_a_read_whose_server_is_silent_and_keeps_what_was_read(server):
    server.put("a.log", log())
    server.silent["a.log"] = 4 * RANGE

    def interrupt(done, _entries):
        if done >= 4 * RANGE:
            raise KeyboardInterrupt

    reading = read_logs(log_request(["s3://logs/a.log"], None, (None, None), 1), interrupt)
    assert reading.facts["stopped"]
    assert reading.facts["entries"] > 0


def test_prefixes_of_a_bucket_are_servers(server):
    for hour in range(4, 7):
        for name in ("a", "b", "other"):
            key = f"prod/{name}/error/postgresql.log.2026-11-27-{hour:02}"
            server.put(key, log(hour - 4, table=ord(name[0])), START + timedelta(hours=hour - 3))
    period = ("2026-11-27 05:05", "2026-11-27 05:06")
    patterns = (("one", "s3://logs/prod/a"), ("two", "s3://logs/prod/b/"), ("three", "s3://logs/*/other/**"))
    for servers, names in (
        (LogServers(by_folder=True), ("a", "b", "other")),
        (LogServers(patterns), ("one", "three", "two")),
    ):
        request = log_request(["s3://logs/"], None, period, 1, servers=servers)
        assert (request.servers, request.outside) == (names, 6)
        counts = Counter(row["server"] for row in tables(read_logs(request))["log_origins"])
        assert set(counts) == set(names)
    chosen = LogServers(by_folder=True, only=("a",))
    request = log_request(["s3://logs/"], None, period, 1, servers=chosen)
    assert (len(request.paths), request.outside, request.other_servers) == (1, 2, ("b", "other"))
    server.put("prod/late/postgresql.log.2026-11-27-23", log(19), START + timedelta(hours=20))
    late = LogServers(by_folder=True, only=("late",))
    with pytest.raises(UncorkError, match=r"no object of late.* \(1 listed\)"):
        log_request(["s3://logs/prod/"], None, period, 1, servers=late)
