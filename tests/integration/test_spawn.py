"""What uncork starts ends with it, however it ends: real processes, killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakes.reapers import ends, reaper_of
from uncork.errors import SetupError
from uncork.spawn import child, reaper
from uncork.spawn.child import run, scratch_folder, start
from uncork.spawn.reaper import TOKEN, Orders, Process, belonging, start_of

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
