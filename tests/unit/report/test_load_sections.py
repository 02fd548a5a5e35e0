"""Sections of reports on loads, services and machines."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import jsonschema
import pytest

from fakes.database_results import database_result
from fakes.http_results import http_result
from fakes.load_results import closed_result, open_result
from fakes.log_results import log_result
from uncork.model.results.database import KernelFacts
from uncork.model.results.experiment import ArmSystem
from uncork.model.results.load import LoadOfTogether, LoadStep, StepGap, TogetherResult, TogetherRunFacts
from uncork.model.results.service import RequestFacts, RequestFunctions, SentTemplate, ServiceResult
from uncork.model.results.stacks import FrameFacts
from uncork.model.system import Bounds, DeviceUse, ModeHistory, ProcessUse, Slowdown, SystemUse
from uncork.report.blocks import Bullets, Fold, Paragraph, StackChart, Table
from uncork.report.database.tables import kernel_table
from uncork.report.experiment.conduct import machine_sections
from uncork.report.load.document import build_load_document
from uncork.report.load.tables import pool_sentence, step_gap_sentences, steps_table
from uncork.report.load.together import answer_together, build_together_document
from uncork.report.log.tables import protocol_table
from uncork.report.service.document import functions_table
from uncork.report.system_blocks import modes_chart, system_blocks, system_doubts
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.schemas import result_schema


def cells(table):
    return [[value.text for value in row] for row in table.rows]


def test_templates_are_sorted_by_processor_time_and_the_rest_is_waiting():
    found = database_result()
    first, second, *others = found.templates
    slow = KernelFacts(user_ns=2e9, system_ns=1e9, read_bytes=8192, written_bytes=0)
    execution_ns = first.statements.execution_ns
    kernels = (slow, KernelFacts(297e9, 0.0, 0, 0))
    counted = (replace(one, kernel=kernel) for one, kernel in zip((first, second), kernels, strict=True))
    whole = replace(found, templates=(*counted, *others), kernel_whole_ns=3_000.0)
    table = kernel_table(whole, 10, width=60)
    parallel, row = cells(table)
    assert row[:3] == ["3.00 s", "1.0 %", "2.00 s"]
    assert table.rows[1][4].sort == round(execution_ns - 3e9)
    assert parallel[4] == "0 ns"  # parallel workers used more than the elapsed time
    assert "shorter than" not in table.caption
    coarse = kernel_table(replace(whole, kernel_whole_ns=12e6), 1, width=60)
    assert "executions shorter than 12.0 ms count as user time as a whole" in coarse.caption
    assert "1 other template not shown" in coarse.caption
    assert kernel_table(found, 10, width=60) is None


def test_parse_bind_and_execute_are_shown_by_template():
    found = log_result(templates=2)
    table = protocol_table(found, 1, width=60)
    assert cells(table)[0][:2] == ["300 µs", "0 ns"]
    assert table.caption.endswith("; 1 other template not shown")
    none = tuple(replace(one, parse=one.bind) for one in found.templates)
    assert protocol_table(replace(found, templates=none), 9, width=60) is None


def test_the_steps_of_a_transaction_say_where_they_come_from():
    assert steps_table(closed_result()) is None
    steps = (LoadStep("network", 2e5, 0.2), LoadStep("execute", 7e5, 0.7), LoadStep("server", 1e5, 0.1))
    table = steps_table(replace(closed_result(), steps=steps))
    assert [row[1:] for row in cells(table)] == [["200 µs", "20 %"], ["700 µs", "70 %"], ["100 µs", "10 %"]]
    assert "1.00 ms on average" in table.caption
    assert "planning" in table.rows[2][0].note
    planned = (LoadStep("plan", 1e5, 0.1), *steps[1:])
    assert "planning" not in steps_table(replace(closed_result(), steps=planned)).rows[2][0].note


def test_a_step_from_the_log_is_no_part_of_the_rest():
    steps = (LoadStep("parse", 1e5, 0.1), LoadStep("bind", 1e5, 0.1), LoadStep("server", 8e5, 0.8))
    table = steps_table(replace(closed_result(), steps=steps))
    assert [row[0].note for row in table.rows] == [
        "the server's log",
        "the server's log, with planning",
        "samples: sending results, waiting for a processor",
    ]


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ((LoadStep("pool", 9e7, 0.9), LoadStep("unknown", 1e7, 0.1)), "waits 90.0 ms for a connection of Pg"),
        ((LoadStep("pool", 2e7, 0.2), LoadStep("unknown", 8e7, 0.8)), None),
        ((LoadStep("unknown", 8e7, 1.0),), None),
        ((), None),
    ],
)
def test_a_pool_is_named_if_it_takes_most_of_the_time(steps, sentence):
    result = replace(closed_result(), steps=steps)
    found = pool_sentence(result)
    document = build_load_document(result)
    assert (found is None) if sentence is None else (sentence in found and found in document.reasons)
    assert any("default_pool_size" in one.text for one in document.steps) == (sentence is not None)


def test_the_next_loads_are_not_watched():
    words = "-c 4 --pooler 'host=a dbname=pgbouncer' --postgres=dbname=b --logs x.log --advise -T 5 bench"
    run = replace(closed_result().run, reproduce=f"uncork load sql {words}")
    commands = [one.command for one in build_load_document(replace(closed_result(), run=run)).steps]
    assert any(one.startswith("uncork load sql -c 4 -T 5 bench -R ") for one in commands)
    assert not any("pgbouncer" in one or "x.log" in one or "=b" in one for one in commands)


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (StepGap("pool", "no source"), ("part of the unknown rest", "add --pooler")),
        (
            StepGap("pool", "incomplete", 3, 1000),
            ("counted 3 statements, the load sent 1 000", "connects to"),
        ),
        (StepGap("pool", "others", 30, 10), ("counted 30 statements", "no other clients")),
        (StepGap("parse", "no source"), ("add --logs", "log_min_duration_statement = 0")),
        (StepGap("parse", "simple protocol"), ("one duration", "-M extended")),
        (StepGap("parse", "incomplete", 3, 10), ("has 3 statements, the load sent 10", "sample_rate = 1")),
        (StepGap("parse", "others", 30, 10), ("has 30 statements", "no other clients")),
        (StepGap("parse", "unlabelled", 0, 10), ("log_duration", "log_min_duration_statement = 0")),
    ],
)
def test_a_step_that_is_unknown_is_named_with_what_would_show_it(gap, words):
    (sentence,) = step_gap_sentences(replace(closed_result(), step_gaps=(gap,)))
    assert all(one in sentence for one in words)


RUN = TogetherRunFacts("together-1", "complete", "2026-05-31T08:30:00", "uncork load together", "0.1.0")


def together(*loads, apart_ns: int = 0) -> TogetherResult:
    named = tuple(LoadOfTogether(name, load) for name, load in loads)
    return answer_together(TogetherResult(RUN, "", (), apart_ns, named))


def test_both_throughputs_are_the_answer_and_each_load_keeps_its_own():
    found = together(("sql", closed_result()), ("http", http_result()))
    assert found.answer.startswith("Together, the loads handled 400 transactions a second (sql) and ")
    for one in found.loads:
        assert one.load.answer.rstrip(".") in found.answer
    (table,) = build_together_document(found).sections[0].blocks
    rows = {row[0].text: [value.text for value in row[1:]] for row in table.rows}
    assert rows["operations"] == ["transaction", "request"]
    for place, one in enumerate(found.loads):
        assert rows["started"][place].replace("\u202f", "").replace(" ", "") == str(one.load.counts.started)
    jsonschema.validate(json.loads(json_text(found)), result_schema("together-result"))
    assert "sql-latency" in html_page(build_together_document(found))


@pytest.mark.parametrize(("apart_ns", "warned"), [(1_000_000, False), (90_000_000, True)])
def test_loads_that_did_not_start_together_are_named(apart_ns, warned):
    found = together(("sql", closed_result()), ("http", http_result()), apart_ns=apart_ns)
    assert any("started 90.0 ms apart" in text for text in found.warnings) == warned


def test_a_load_that_ended_long_before_the_other_is_named():
    short = closed_result()
    short = replace(short, run=replace(short.run, elapsed_ns=short.run.elapsed_ns // 2))
    found = together(("sql-1", short), ("sql-2", closed_result()))
    assert found.warnings[0].startswith("Load sql-1 ended ") and "sql-2 was alone" in found.warnings[0]


def test_a_warning_about_several_loads_is_given_once():
    (warning, *_) = answer_together(together(("a", closed_result()))).loads[0].load.warnings
    found = together(("a", closed_result()), ("b", closed_result()), ("c", http_result()))
    assert f"a and b: {warning}" in found.warnings
    assert f"a: {warning}" not in found.warnings


def test_arrivals_that_were_not_sent_are_no_failures_but_said():
    load = open_result()
    sent = replace(load, counts=replace(load.counts, failed=0, errors={}, unsent=9))
    assert "and arrivals not sent in sql" in together(("sql", sent), ("http", http_result())).answer


S = 1_000_000_000
BUSY = {"user": 0.4, "nice": 0.0, "system": 0.1, "irq": 0.0, "softirq": 0.0}
MODES = {**BUSY, "steal": 0.0, "iowait": 0.1, "idle": 0.4}


def process(role="server", kind="client backend", cpu_ns=8 * S, **changes):
    one = ProcessUse(
        role, kind, 2, cpu_ns, cpu_ns // 4 * 3, cpu_ns // 4, 10, 2, 100, 0, None, 4096, 9_000_000, None
    )
    return replace(one, **changes)


BOUNDS = Bounds("server", 2, 1.5, 20_000_000, 2, 1_000_000_000, 3, 1, 100, 40, 5 * S)
USE = SystemUse(
    elapsed_ns=10 * S,
    cpus=2,
    samples=100,
    missed=0,
    late_ns=2_000_000,
    own=0.004,
    modes=MODES,
    switches=100,
    stalls={"cpu_some": 0.2, "memory_some": 0.0},
    processes=(process(), process("generator", "python", 2 * S), process(kind="walwriter", cpu_ns=1000)),
    devices=(DeviceUse("vda", False, 0, 0, 50, 5_000_000, 0.3, None, 40_000.0, None),),
    bounds=(),
    missing=(),
    history=ModeHistory(1_700_000_000, 1, {"user": (0.5, 1.0, 0.9), "system": (0.1, 0.2, 0.3)}),
)


def found(use, operations=None):
    return list(system_blocks(use, operations))


def table(use, caption, operations=None):
    return next(one for one in found(use, operations) if isinstance(one, Table) and caption in one.caption)


def test_the_chart_stacks_modes_that_are_not_idle():
    chart = modes_chart(USE)
    assert isinstance(chart, StackChart)
    assert [layer.name for layer in chart.layers] == ["programs", "kernel"]
    assert chart.description.startswith("At most 1.20 of 2, at 2023-11-14 22:13:2")
    assert modes_chart(replace(USE, history=None)) is None
    short = ModeHistory(0, 1, {"user": (0.5, 1.0)})
    assert modes_chart(replace(USE, history=short)) is None


def test_modes_add_up_and_processes_are_told_an_operation():
    assert ["programs", "40 %", "0.80"] in cells(table(USE, "by mode"))
    used = table(USE, "Resources used by processes", 1000)
    titles = [column.title for column in used.columns]
    assert titles[1:6] == ["processes", "of a processor", "CPU", "user", "system"]
    assert "user per operation" in titles
    assert "page faults from disk" in titles
    assert "read" not in titles
    rows = cells(used)
    assert [row[0] for row in rows] == ["server: client backend", "generator: python"]
    assert rows[0][titles.index("user per operation")] == "6.00 ms"
    assert "1 kind under 0.1 % not shown" in used.caption


def test_devices_and_pressure_have_a_table_each_and_bounds_if_there_are_any():
    (disk,) = cells(table(USE, "Disks and network"))
    assert disk == ["vda", "", "500 kB/s", "0", "5", "", "40.0 µs", "30 %"]
    assert ["any task waited for a processor", "20 %"] in cells(table(USE, "Waiting for resources"))
    assert not any(isinstance(one, Table) and "Limits" in one.caption for one in found(USE))
    rows = dict(cells(table(replace(USE, cpus=4, bounds=(BOUNDS,)), "Limits")))
    assert rows["server: quota"] == "1.5 processors, bursts of 20.0 ms"
    assert rows["server: throttled"] == "in 40 % of 100 periods, 5.00 s in total"
    assert rows["server: allowed processors"] == "2 of 4 processors"
    assert "reached 3 times" in rows["server: memory"]
    burst = replace(BOUNDS, burst_periods=25, burst_used_ns=50_000_000)
    rows = dict(cells(table(replace(USE, cpus=4, bounds=(burst,)), "Limits")))
    assert rows["server: bursts"] == "in 25 % of the periods, 50.0 ms beyond the quota"


def test_what_could_not_be_read_is_told_with_its_reason_and_the_rest_stays():
    use = replace(USE, modes=None, stalls={}, missing=(("pressure on disks", "no such file"),), history=None)
    blocks = found(use)
    (how,) = [one.text for one in blocks if isinstance(one, Paragraph)]
    assert how.startswith("100 readings, one every 100 ms, took 0.4 % of one processor")
    assert how.endswith("Not available: pressure on disks (no such file).")
    captions = [one.caption for one in blocks if isinstance(one, Table)]
    assert not any("by mode" in caption or "Waiting" in caption for caption in captions)
    assert any("processes" in caption for caption in captions)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"modes": {**MODES, "steal": 0.05, "user": 0.35}},
            "took 5.0 % of the processors for other machines",
        ),
        ({"bounds": (BOUNDS,)}, "used up its quota of 1.5 processors in 40 % of its periods"),
        (
            {"bounds": (replace(BOUNDS, burst_periods=3, burst_used_ns=50_000_000),)},
            "the server took 50.0 ms of processor time beyond its quota from saved credit",
        ),
        (
            {"slowdown": Slowdown(1_700_000_180, 180, 0.0, 0.4)},
            "of full use, at 2023-11-14 22:16:20 UTC, the hypervisor began to take 40 % of the processors",
        ),
        ({"bounds": (BOUNDS,)}, "the kernel killed 1 process of the server because memory ran out"),
        ({"stalls": {"memory_some": 0.03}}, "tasks waited for memory 3.0 % of the time"),
        (
            {"modes": {**MODES, "user": 0.8, "idle": 0.0}},
            "programs other than the server and the generator took 40 %",
        ),
    ],
)
def test_what_shaped_the_figures_is_a_doubt(changes, words):
    assert any(words in warning for warning in system_doubts(replace(USE, **changes)))


def test_a_quiet_machine_raises_no_doubt():
    assert list(system_doubts(USE)) == []


class View:
    """As much of a report's view as the section asks for."""

    variants = ("old", "new")

    def __init__(self, systems):
        self.result = type("Result", (), {"systems": tuple(systems)})
        self.cell = lambda cell: "all"
        self.order = lambda cell, variant: self.variants.index(variant)
        self.place = lambda place: place[1]


def test_an_experiment_has_a_row_a_variant_and_all_of_it_folded():
    systems = [ArmSystem((), "find", name, 1000, USE) for name in ("old", "new")]
    (section,) = machine_sections(View(systems))
    tables = [one for one in section.blocks if isinstance(one, Table)]
    assert [row[1] for row in cells(tables[0])] == ["old", "new"]
    titles = [column.title for column in tables[0].columns]
    first = dict(zip(titles, cells(tables[0])[0], strict=True))
    assert (first["programs"], first["server user"], first["server system"]) == ("40 %", "6.00 ms", "2.00 ms")
    assert first["server switches"] == "0.024"
    assert sum(isinstance(one, Fold) for one in section.blocks) == 2
    assert not any(isinstance(one, Bullets) for one in section.blocks)
    assert list(machine_sections(View([]))) == []


def test_of_a_server_elsewhere_the_section_says_whose_machine_it_is():
    use = replace(USE, processes=(process("generator", "python", S),))
    (section,) = machine_sections(View([ArmSystem((), "find", "old", 10, use)]))
    (how,) = [one.text for one in section.blocks if isinstance(one, Paragraph)]
    assert "This is the machine of the load generator" in how


def frame(name, own, total):
    return FrameFacts(name, False, own, total, None, None)


def request(name, *templates, functions=True):
    found = RequestFunctions(frame("parse", 0.4, 0.4), frame("list_orders", 0.1, 0.7), 90)
    return RequestFacts(
        name, 9, 0, 1e6, 2_000_000, 1e6, None, None, None, templates, functions=found if functions else None
    )


def table_of(*requests):
    return functions_table(cast(ServiceResult, SimpleNamespace(requests=requests)))


def test_statements_have_a_column_only_if_they_were_counted():
    counted = SentTemplate(0, "select 1", 1.0, None, None, None, 1e6, 1e6)
    both = table_of(request("/a", counted), request("/b"))
    assert [column.title for column in both.columns][-1] == "statement with most time"
    assert [row[-1].text for row in both.rows] == ["select 1", ""]
    alone = table_of(request("/a"))
    assert [column.title for column in alone.columns] == ["request", "most time within", "hottest function"]
    assert alone.rows[0][1].text == "list_orders" and alone.rows[0][1].note == "70 %"
    assert "statements" not in alone.caption
    assert table_of(request("/a", functions=False)) is None
