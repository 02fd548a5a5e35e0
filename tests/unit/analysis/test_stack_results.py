"""What is said of stacks: the answer, the finding about the kernel, a comparison, what is not seen."""

import io
import json
import re
from dataclasses import replace

import jsonschema
import pyarrow as pa
import pytest
from rich.console import Console

from fakes.answered import stack_result
from uncork.analysis.stacks.result import StackRun
from uncork.errors import UsageError
from uncork.model.results.stacks import StackRunFacts
from uncork.report.blocks import Flame
from uncork.report.draw.flame import flame_svg, labelled
from uncork.report.stacks.document import build_stack_document, joined_routes_table, render_stack_terminal
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.report.write.schemas import result_schema
from uncork.store.tables import rows_table
from uncork.workbench.documents.flames import stack_flames
from uncork.workbench.profile.stack_files import draw_flame

RUN = StackRunFacts(
    id="cpu-shop-1",
    status="complete",
    started_at="2026-05-31T08:00:00+00:00",
    elapsed_ns=10_000_000_000,
    target="ada@db:5432/shop",
    reproduce="uncork profile cpu --postgres shop",
    uncork_version="0.1.0",
)
WAY = "entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k]"
STACKS = {
    "main;PostgresMain;exec_simple_query;ExecScan": 50,
    f"main;PostgresMain;XLogFlush;fdatasync;{WAY};__x64_sys_fdatasync_[k];submit_bio_[k]": 40,
    "main;PostgresMain;exec_simple_query;memcpy;asm_exc_page_fault_[k];exc_page_fault_[k]": 10,
}


def tables(stacks=None, measure="cpu", unit="samples", template="select ?"):
    labels = {"measure": measure, "unit": unit, "pid": 7, "process": "postgres", "backend": "client backend"}
    labels |= {"application": "shop", "template": template}
    rows = [{**labels, "stack": stack, "value": value} for stack, value in (stacks or STACKS).items()]
    return {
        "stacks": rows_table("stacks", rows),
        "stack_processes": rows_table("stack_processes", []),
        "stack_syscalls": rows_table("stack_syscalls", []),
    }


def facts(tool="perf", measures=(("cpu", "samples"),), **changes):
    method = {
        "tool": tool,
        "call_graph": "dwarf",
        "reason": "whole",
        "rate_hz": 99,
        "samples": 100,
        "frames": 9.0,
    }
    method |= {"watched_ns": 10_000_000_000, "cannot_see": []}
    found = {"method": method, "measures": measures, "cpu_ns": (600, 400), "trouble": "", "against": ""}
    return {**found, "syscalls": {"by": "", "watched_ns": 0}, **changes}


def told(**changes):
    return stack_result(RUN, facts(**changes), tables(), None)


def test_the_answer_names_the_template_and_then_frames_and_the_kernels_share():
    assert told().answer == (
        '"select ?" takes 100 % of the CPU, and exec_simple_query 60 %. The share of exec_simple_query '
        "includes the functions it calls. Hottest frames: ExecScan 50 %, submit_bio (kernel) 40 % and "
        "exc_page_fault (kernel) 10 %. The kernel takes 50 %."
    )


def test_ten_samples_name_no_function_and_are_not_drawn(tmp_path):
    stacks = {"main;work;deflate": 6, f"main;work;read;{WAY};ksys_read_[k]": 4}
    result = stack_result(RUN, facts(), tables(stacks), None)
    assert result.answer == (
        "10 samples of the CPU are too few to name hot functions: record for longer, or under load. "
        '"select ?" has 10 of 10 samples. The kernel has 4 of 10 samples.'
    )
    assert result.findings == ()
    run = StackRun(tmp_path, result, tables(stacks)["stacks"], None, "")
    assert stack_flames(run) == ()
    with pytest.raises(UsageError, match="10 samples are too few to draw, which needs 100"):
        draw_flame(run, tmp_path / "x.svg", None)


def test_functions_that_start_threads_or_loop_around_all_work_are_not_hot():
    begin = "clone3;start_thread;worker_loop"
    stacks = {f"{begin};parse;scan": 30, f"{begin};encode;escape": 40, f"{begin};send": 30}
    answer = stack_result(RUN, facts(), tables(stacks, template=""), None).answer
    assert answer.startswith("The hottest frames of the CPU: escape 40 %, scan 30 % and send 30 %.")
    # What has most of the total below them is named.
    stacks = {f"{begin};reply;escape": 30, f"{begin};reply;encode": 40, f"{begin};parse": 30}
    answer = stack_result(RUN, facts(), tables(stacks, template=""), None).answer
    assert answer.startswith("70 % of the CPU is in reply and the functions it calls.")


@pytest.mark.parametrize("tool", ["sessions", "/proc", "perf"])
def test_a_profile_imported_beside_a_server_is_in_the_answer(tool):
    recorded = tables({"client backend;shop;select ?": 200}, measure="sessions")
    imported = tables(
        {"main;handler;encode": 60, "main;handler;send": 140}, measure="app.pprof: cpu", template=""
    )
    both = {name: pa.concat_tables([table, imported[name]]) for name, table in recorded.items()}
    measures = (("sessions", "samples"), ("app.pprof: cpu", "samples"))
    result = stack_result(RUN, facts(tool, measures), both, None)
    assert "hottest frames of the CPU in app.pprof: send 70 % and encode 30 %." in result.answer
    console = Console(file=io.StringIO(), width=200)
    render_stack_terminal(result, console)
    assert "Hottest frames of the CPU in app.pprof" in console.file.getvalue()


def test_a_kernel_that_takes_over_a_third_is_a_finding():
    (finding,) = told().findings
    assert finding.text == (
        "The kernel takes 50 % of the CPU: 80 % of it in fdatasync, entered by fdatasync for XLogFlush; 20 % "
        "of it in page faults, entered by memcpy for exec_simple_query. Its hottest frames: submit_bio 40 % "
        "and exc_page_fault 10 %."
    )
    assert finding.frames[:3] == ("XLogFlush", "fdatasync", "__x64_sys_fdatasync")


def test_a_kernel_that_takes_less_is_none():
    stacks = {"main;work": 70, f"main;read;{WAY};ksys_read_[k]": 30}
    assert stack_result(RUN, facts(), tables(stacks), None).findings == ()


def test_without_frames_the_share_is_told_all_the_same():
    stacks = {"[user code]": 500, "[kernel]_[k]": 500}
    found = facts(tool="/proc", measures=(("cpu", "nanoseconds"),), cpu_ns=(500, 500))
    result = stack_result(RUN, found, tables(stacks, unit="nanoseconds"), None)
    assert (
        "50 % of it in the kernel. The rest ran in user code. The functions cannot be seen here."
        in result.answer
    )
    assert "Run perf as root" in result.findings[0].text


def test_a_comparison_tells_what_grew_whatever_the_length():
    before = tables({"main;ExecScan": 400, "main;ExecSort": 600})["stacks"]
    now = tables({"main;ExecScan": 9, "main;ExecSort": 1})
    result = stack_result(RUN, facts(against="cpu-shop-0"), now, before)
    (measure,) = result.measures
    assert [(one.name, one.own_before, one.own) for one in measure.changes[:2]] == [
        ("ExecScan", 0.4, 0.9),
        ("ExecSort", 0.6, 0.1),
    ]
    assert "Since cpu-shop-0, the share of these frames grew most: ExecScan 40 % → 90 %." in result.reasons


def test_nothing_in_common_is_said():
    before = tables({"main": 1}, measure="inuse_space")["stacks"]
    result = stack_result(RUN, facts(against="x"), tables(), before)
    assert any("no measure in common" in one for one in result.warnings)


@pytest.mark.parametrize(
    ("arguments", "again", "server"),
    [
        ("--postgres shop", "--against cpu-shop-1 --postgres shop", " shop"),
        ("--command -- sort -u a", "--against cpu-shop-1 --command -- sort -u a", ""),
        (
            '--postgres "host=db password=${PGPASSWORD:?}" --for 5s',
            '--against cpu-shop-1 --postgres "host=db password=${PGPASSWORD:?}" --for 5s',
            ' "host=db password=${PGPASSWORD:?}"',
        ),
    ],
)
def test_the_next_steps_run_as_they_are(arguments, again, server):
    run = replace(RUN, reproduce=f"uncork profile cpu {arguments}")
    result = stack_result(run, facts("sessions"), tables(), None)
    commands = [step.command for step in build_stack_document(result).steps if step.command]
    assert commands == [f"uncork profile db{server}", f"uncork profile cpu {again}"]


def test_what_cannot_be_seen_stands_in_the_report():
    method = {**facts()["method"], "cannot_see": ["stacks of code: perf is not installed"]}
    document = build_stack_document(stack_result(RUN, facts(method=method), tables(), None))
    assert "Not seen: stacks of code: perf is not installed." in document.reasons


@pytest.mark.parametrize(
    ("stacks", "expected"),
    [
        (
            {"main;[postgres]": 51, "main;[libcrypto.so.3]": 9, "main;ExecScan": 40},
            "60 % of the CPU is in functions without names ([postgres] 51 % and [libcrypto.so.3] 9.0 %). "
            "Install debug symbols: postgresql-VERSION-dbgsym on Debian, debuginfo-install "
            "postgresql-server on Fedora; libssl3-dbgsym on Debian, debuginfo-install openssl-libs on "
            "Fedora. Build your own programs with -g, and do not strip them.",
        ),
        (
            {"main;[shop]": 50, "main;work": 50},
            "50 % of the CPU is in functions without names ([shop] 50 %). Install debug symbols: the "
            "-dbgsym package (Debian) or -debuginfo package (Fedora) of shop. Build your own programs with "
            "-g, and do not strip them.",
        ),
        (
            {"main;[unknown]": 50, "main;work": 50},
            "50 % of the CPU is in functions without names ([unknown] 50 %). Code generated at run time "
            "needs a map for perf: node --perf-basic-prof, python -X perf; in PostgreSQL set jit = off.",
        ),
        ({"main;[libc.so.6]": 4, "main;work": 96}, None),
    ],
)
def test_missing_debug_symbols_are_named_with_the_package_or_flag(stacks, expected):
    document = build_stack_document(stack_result(RUN, facts(), tables(stacks), None))
    told = [text for text in document.reasons if "without names" in text]
    assert told == ([expected] if expected else [])


def test_nothing_seen_is_an_answer():
    empty = {name: table.slice(0, 0) for name, table in tables().items()}
    result = stack_result(RUN, facts(measures=()), empty, None)
    assert result.answer == "Nothing ran in 10.0 s: the processes used no processor time."
    result = stack_result(RUN, facts(measures=(), cpu_ns=None), empty, None)
    assert result.answer == "Nothing was seen running in 10.0 s."


def test_nearly_idle_processes_are_called_idle_without_naming_functions():
    stacks = {"main;[kernel]_[k]": 3, "main;read": 1}
    method = {**facts()["method"], "samples": 4}
    result = stack_result(RUN, facts(method=method, cpu_ns=(30_000_000, 10_000_000)), tables(stacks), None)
    assert result.answer.startswith("The processes were nearly idle: they used 40.0 ms of CPU in 10.0 s.")
    assert result.reasons == ()
    busy = stack_result(RUN, facts(method=method, cpu_ns=(3_000_000_000, 0)), tables(stacks), None)
    assert "idle" not in busy.answer


def test_the_json_fits_its_schema():
    jsonschema.validate(json.loads(json_text(told())), result_schema("stack-result"))


@pytest.mark.parametrize("full", [False, True])
def test_the_terminal_shows_frames_and_templates(full):
    console = Console(width=100, record=True, file=io.StringIO())
    render_stack_terminal(told(), console, full=full)
    text = console.export_text()
    assert "__x64_sys_fdatasync" in text
    assert "select ?" in text


def test_the_page_holds_a_flame_graph_under_a_strict_policy():
    svg = flame_svg(
        labelled(tables({"main;a<b>": 3, "main": 1})["stacks"]), title="", subtitle="", unit="x", alone=False
    )
    page = html_page(
        build_stack_document(told(), (Flame("cpu", "cpu", "note", svg), Flame("cpu", "cpu", "note", svg)))
    )
    assert "a&lt;b&gt; (3 x, 75.00%)" in page
    assert "client backend, shop" in page
    assert "onload" not in page
    assert page.count("<script") == 1
    assert not re.search(r'(src|href)="https?:', page)
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_markdown_has_the_tables():
    assert "| 50 % | 50 % | `ExecScan` |" in markdown_text(build_stack_document(told()))


def test_routes_of_an_application_and_of_its_sessions_are_joined():
    rows = [
        {"measure": measure, "unit": "samples", "route": route, "stack": stack, "value": value}
        for measure, route, stack, value in (
            ("app: cpu", "/orders", "main;encode", 90),
            ("app: cpu", "", "main;serve", 10),
            ("sessions", "/orders", "client backend;CPU;select orders", 10),
            ("sessions", "/search", "client backend;CPU;select search", 30),
        )
    ]
    measures = (("app: cpu", "samples"), ("sessions", "samples"))
    found = stack_result(
        RUN, facts(measures=measures), {**tables(), "stacks": rows_table("stacks", rows)}, None
    )
    table = joined_routes_table(found, 10)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["/orders", "90 %", "encode", "25 %", "select orders"],
        ["/search", "0 %", "", "75 %", "select search"],
    ]
    without = stack_result(
        RUN, facts(measures=measures), {**tables(), "stacks": rows_table("stacks", rows[:2])}, None
    )
    assert joined_routes_table(without, 10) is None
