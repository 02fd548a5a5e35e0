"""Profiles of other tools read and written, and what decides how processes are recorded."""

import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from uncork.errors import UsageError
from uncork.profile import perf
from uncork.profile.proc_watch import process_name, tree
from uncork.profile.stacks import beside, fetch, read_profile, seconds_asked, sum_frames, write_profile
from uncork.profile.syscalls import parse_strace, parse_summary

FIXTURES = Path(__file__).parents[2] / "fixtures" / "stacks"


def stacks(**values):
    return pa.table({"stack": list(values), "value": pa.array(values.values(), pa.int64())})


def test_a_cpu_profile_of_go_is_read():
    found = read_profile((FIXTURES / "cpu.pb.gz").read_bytes(), "cpu.pb.gz")
    assert (found.format, found.measures) == ("pprof", (("samples", "count"), ("cpu", "nanoseconds")))
    assert found.measures[found.default][0] == "cpu"
    sums = sum_frames(beside(found.stacks.filter(pa.compute.equal(found.stacks["measure"], 1)), None))
    burn = next(one for one in sums.frames if one["name"] == "main.burn")
    assert burn["own"] > 0.9 * sums.total[0] > 0


def test_a_heap_profile_of_go_is_read():
    found = read_profile((FIXTURES / "heap.pb.gz").read_bytes(), "heap.pb.gz")
    names = [name for name, _ in found.measures]
    assert names == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    assert names[found.default] == "inuse_space"
    sums = sum_frames(beside(found.stacks.filter(pa.compute.equal(found.stacks["measure"], 3)), None))
    keep = next(one for one in sums.frames if one["name"] == "main.keep")
    assert keep["own"] >= 60_000_000  # a heap profile is a sample


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x: it is empty"),
        (b"hello\n", "x: its format is not recognized"),
        (b"\x7fELF\x02\x01\x00\x00", "x: its format is not recognized"),
        (b"a;b 7\nc\n", 'x:2: "c" does not end with a space and a whole number'),
        (b"a 1/1 1.5: cpu-clock:\n\t10 f (/a)\n\nwhat\n", 'x:4: "what" is neither the head'),
        (b'{"shared":', "x:1: column 10: it is not speedscope JSON: EOF"),
        (b"\x0a\x04\x08\x01\x10\x02\x12\x7f", "x: byte 8: a field of 127 bytes is cut off"),
        (b"\x1f\x8b\x08\x00nonsense", "x: byte 1: the gzip around it is broken"),
    ],
)
def test_a_broken_profile_gives_one_clear_error(content, message):
    with pytest.raises(UsageError) as told:
        read_profile(content, "x")
    assert str(told.value).startswith(message)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("form", ["folded", "speedscope", "pprof"])
def test_what_is_written_is_read_again(form):
    table = stacks(**{"main;work": 7, "main;read;ksys_read_[k]": 2})
    written = write_profile(table, form, name="x", measure="cpu", unit="nanoseconds")
    again = read_profile(written, "x")
    sums = sum_frames(beside(again.stacks, None))
    assert sums.total[0] == 9
    if form != "speedscope":  # it has no word for the kernel
        assert sums.kernel[0] == 2


def test_pprof_itself_reads_what_is_written(tmp_path):
    go = Path("/usr/local/go/bin/go")
    if not go.is_file():
        pytest.skip("Go is not here")
    path = tmp_path / "x.pb"
    path.write_bytes(
        write_profile(stacks(**{"main;work": 7, "main": 1}), "pprof", name="x", measure="cpu", unit="samples")
    )
    told = subprocess.run([go, "tool", "pprof", "-top", path], capture_output=True, text=True, check=True)
    assert "7samples 87.50%" in told.stdout
    assert "work" in told.stdout


def test_a_comparison_has_both_values():
    sums = sum_frames(beside(stacks(**{"a;b": 3, "a": 1}), stacks(**{"a;b": 1, "c": 4})))
    assert (sums.total, sums.kernel) == ((4, 5), (0, 0))
    found = {one["name"]: (one["own"], one["own_before"], one["total"]) for one in sums.frames}
    assert found == {"a": (1, 0, 4), "b": (3, 1, 3), "c": (0, 4, 0)}


@pytest.mark.parametrize(
    ("depths", "method", "word"),
    [
        ({"dwarf": 17.0, "fp": 2.0}, "dwarf", "17 user frames deep with DWARF, 2 with frame pointers"),
        ({"dwarf": 20.0, "fp": 19.0}, "fp", "19 user frames deep with frame pointers"),
        ({"fp": 19.0}, "dwarf", "hardly ran"),
        ({}, "dwarf", "hardly ran"),
    ],
)
def test_the_call_graph_is_that_of_whole_stacks(depths, method, word):
    choice = perf.decide(depths)
    assert choice.method == method
    assert word in choice.reason


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("Error:\nNo permission to enable cpu-clock event.", "in a container it needs CAP_PERFMON"),
        ("Couldn't create thread/CPU maps: No such process", "ended before perf"),
        ("The sys_perf_event_open() syscall returned with 38 (Function not implemented)", "sandbox"),
        ("", "it printed no reason"),
    ],
)
def test_why_perf_cannot_is_told_in_a_line(said, word):
    assert word in perf.explain(said)
    assert "\n" not in perf.explain(said)


def test_without_perf_there_is_a_lack(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(perf.PerfLack, match="perf is not installed"):
        perf.find_perf()


def test_what_perf_trace_prints_is_read():
    text = """
 Summary of events:

 my app (29618), 10 events, 50.0%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   epoll_wait             5      1   801.075     0.000   160.215   200.280     25.00%
   read                   2      0     0.500     0.000     0.215     0.280     25.00%
"""
    process = {"pid": 29618, "process": "my app"}
    assert parse_summary(text.splitlines()) == [
        {**process, "syscall": "epoll_wait", "calls": 5, "errors": 1, "time_ns": 801_075_000},
        {**process, "syscall": "read", "calls": 2, "errors": 0, "time_ns": 500_000},
    ]


def test_what_strace_writes_is_read():
    lines = [
        "7 1795331538.655094 <... epoll_wait resumed>[], 1, 200) = 0 <0.200304>",
        "7 1795331538.655154 epoll_wait(7,  <unfinished ...>",
        '7 1795331538.7 openat(AT_FDCWD, ""..., O_RDONLY) = -1 ENOENT (No such file or directory) <0.000010>',
        "8 1795331538.8 exit_group(0) = ?",
        "9 1795331538.9 +++ exited with 0 +++",
    ]
    found = {
        row["syscall"]: (row["pid"], row["calls"], row["errors"], row["time_ns"])
        for row in parse_strace(lines)
    }
    assert found == {"epoll_wait": (7, 1, 0, 200_304_000), "openat": (7, 1, 1, 10_000)}


def test_processes_are_found_with_those_they_started():
    with subprocess.Popen(["sh", "-c", "sleep 30 & wait"]) as shell:
        try:
            found = tree([shell.pid])
            assert shell.pid in found
            assert shell.pid not in tree([shell.pid], frozenset({shell.pid}))
            assert process_name(shell.pid) == "sh"
        finally:
            for pid in tree([shell.pid]):
                subprocess.run(["kill", str(pid)], check=False)
    assert process_name(shell.pid) is None


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path.startswith("/debug/pprof/profile")
        self.send_response(200 if found else 404)
        self.end_headers()
        if found:
            self.wfile.write((FIXTURES / "cpu.pb.gz").read_bytes())

    def log_message(self, *_):
        pass


def test_a_profile_is_fetched_from_a_url():
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        place = f"http://ada:secret@127.0.0.1:{server.server_port}"
        base = f"http://127.0.0.1:{server.server_port}"
        assert fetch(f"{base}/debug/pprof/profile?seconds=1")[:2] == b"\x1f\x8b"
        with pytest.raises(UsageError, match="the server answered 404") as told:
            fetch(f"{base}/nothing?token=1")
        assert "token" not in str(told.value)
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(UsageError) as told:
        fetch(f"{place}/x")
    assert "secret" not in str(told.value)


def test_what_is_no_file_is_told(tmp_path):
    with pytest.raises(UsageError, match="is a folder"):
        fetch(str(tmp_path))
    with pytest.raises(UsageError, match="No such file"):
        fetch(str(tmp_path / "no"))


def test_labels_of_a_go_program_name_the_route():
    path = FIXTURES / "routes" / "cpu.pb.gz"
    found = read_profile(path.read_bytes(), path.name)
    cpu = found.stacks.filter(pc.equal(found.stacks["measure"], found.default))
    leaves = {}
    for row in cpu.to_pylist():
        if "main." in row["stack"]:
            leaves.setdefault(row["route"], set()).add(row["stack"].split(";")[-1])
    assert {"main.total"} <= leaves["/orders/{id}"]
    assert {"main.list"} <= leaves["orders#index"]
    assert "main.list" not in leaves["/orders/{id}"]


@pytest.mark.parametrize(
    ("query", "seconds"),
    [("?seconds=90", 90.0), ("?debug=1&seconds=99999", 3600.0), ("?seconds=x", 0.0), ("", 0.0)],
)
def test_a_profile_that_takes_long_is_waited_for(query, seconds):
    assert seconds_asked(f"http://127.0.0.1:6060/debug/pprof/profile{query}") == seconds
