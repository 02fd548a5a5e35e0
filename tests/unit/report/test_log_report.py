"""The report on a log: its parts, charts and tables."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pyarrow as pa
import pytest

from fakes.findings import compare_findings
from fakes.goldens import terminal
from fakes.log_results import BEGIN_US, MS, NAMES, STEP_S, log_result, template
from fakes.terminals import markdown_of
from uncork.analysis.log.evidence import evidence_of_log
from uncork.analysis.log.result import loops_of
from uncork.diagnosis.findings import find_findings
from uncork.model.results.log import (
    CheckpointWork,
    HourFacts,
    LeftOut,
    LogFilter,
    LogResult,
    Peak,
    QueryId,
    SessionFacts,
    SessionTally,
    SlowStatement,
    VacuumWork,
)
from uncork.report.blocks import Beside, Code, Fold, Spark, Table
from uncork.report.draw.charts import clock_ticks, clock_title, layer_number, stack_bounds
from uncork.report.draw.spark import spark_path, spark_text
from uncork.report.log.answer import answer_log, order_warnings, overlap_refusal
from uncork.report.log.charts import busy_charts, executions_chart, rate_charts
from uncork.report.log.document import (
    PARTS_OF_MARKDOWN,
    build_log_document,
    render_log_terminal,
    template_folds,
)
from uncork.report.log.tables import activity_tables, hours_table, loop_notes, session_tables, slowest_table
from uncork.report.write.html import html_page
from uncork.report.write.markdown import markdown_text


@pytest.fixture(scope="module")
def page():
    return html_page(build_log_document(log_result()))


def blocks_of(blocks):
    for block in blocks:
        yield block
        yield from blocks_of(getattr(block, "blocks", ()))


def all_blocks(result):
    document = build_log_document(result, parts=len(result.templates))
    return list(blocks_of(block for section in document.sections for block in section.blocks))


# ---- tables ----


def test_figures_sort_by_their_value_and_not_by_their_text():
    tables = [block for block in all_blocks(log_result()) if isinstance(block, Table) and block.sortable]
    assert len(tables) >= 8
    for table in tables:
        for row in table.rows:
            assert len(row) == len(table.columns)
            for column, value in zip(table.columns, row, strict=True):
                assert column.title
                assert not column.number or value.sort is not None or not value.text


def test_only_tables_that_are_sorted_carry_the_values(page):
    sorted_tables = re.findall(r'<table class="sortable">.*?</table>', page, re.DOTALL)
    others = re.findall(r"<table>.*?</table>", page, re.DOTALL)
    assert sorted_tables and all("data-v=" in one for one in sorted_tables)
    assert others and not any("data-v=" in one for one in others)


def test_the_policy_allows_the_one_script_there_is(page):
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page


def test_a_tall_table_is_given_the_widths_of_its_columns():
    assert 'class="scroll tall"' not in html_page(build_log_document(log_result(templates=40)))
    tall = html_page(build_log_document(log_result(templates=41)))
    widths, *_ = re.findall(r'class="scroll tall" style="--columns:([^"]*)"', tall)
    assert widths.split(" ")[-1] == "minmax(14rem,4fr)"


# ---- parts ----


def test_every_template_has_a_part_and_every_link_leads_somewhere(page):
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    for number in range(12):
        assert {f"template-{number}", f"to-template-{number}"} <= set(ids)


def test_a_template_that_never_ran_has_no_part():
    result = log_result(templates=3)
    failed = replace(result.templates[1], executions=0)
    result = replace(result, templates=(result.templates[0], failed, result.templates[2]))
    assert [fold.id for fold in template_folds(result, 3)] == ["template-0", "template-2"]
    assert [fold.id for fold in template_folds(result, 2)] == ["template-0"]


def test_a_part_holds_the_whole_template_its_figures_and_who_sent_it():
    (fold,) = template_folds(log_result(templates=1), 1)
    inside = list(blocks_of(fold.blocks))
    assert inside[0] == Code(template(0).text, "sql", "Template")
    captions = [block.caption for block in inside if isinstance(block, Table)]
    assert captions == ["Executions by duration", "By application", "By host"]
    (spark,) = (block for block in inside if isinstance(block, Spark))
    assert sum(spark.values) == template(0).executions
    assert spark.title.endswith(" in 5 min")
    assert any(isinstance(block, Beside) for block in inside)


def test_an_execution_that_is_slowest_and_newest_is_shown_once():
    (fold,) = template_folds(log_result(templates=1), 1)
    titles = [block.title.partition(":")[0] for block in fold.blocks if isinstance(block, Code)][1:]
    assert titles == ["slowest and newest", "median", "plan"]


def test_parts_of_little_time_are_light():
    folds = list(template_folds(log_result(templates=201), 201))

    def examples(fold):
        return [block for block in fold.blocks if isinstance(block, Code)][1:]

    assert examples(folds[199])[1].text.endswith("END")
    titles = [block.title.partition(":")[0] for block in examples(folds[200])]
    assert titles == ["slowest", "plan"]


def test_what_is_cut_says_so():
    result = log_result(templates=201)
    last = result.templates[200]
    long = replace(last.examples[0], text="x" * 1_500, parameters="y" * 1_001)
    result = replace(result, templates=(*result.templates[:200], replace(last, examples=(long,))))
    *_, fold = template_folds(result, 201)
    text = fold.blocks[-1].text
    assert "x" * 1_000 + "… (500 characters more)" in text
    assert text.endswith("… (1 characters more)")


def test_markdown_holds_fewer_parts_and_draws_in_text():
    text = markdown_text(build_log_document(log_result(templates=210), parts=PARTS_OF_MARKDOWN))
    assert text.count("Executions over time") == 200
    assert re.search(
        "Executions over time, at most 39 in 5 min: 2026-05-30 22:00:00 [ ▁▂▃▄▅▆▇█]{12} 20", text
    )


# ---- charts ----


def test_the_layers_of_a_stack_add_up_to_the_whole():
    result = log_result(templates=12)
    for chart in (*busy_charts(result), *rate_charts(result)):
        scale = 1e9 if "at once" in chart.title else 1
        read = [(one.sum_ns if scale > 1 else one.count) / scale / STEP_S for one in result.series]
        sums = [sum(layer.values[step] for layer in chart.layers) for step in range(12)]
        assert sums == pytest.approx(read)
        assert [top for _, top in stack_bounds(chart)[-1]] == pytest.approx(read)


def test_seven_templates_and_the_rest_are_told_apart_by_number():
    chart, by_application = busy_charts(log_result(templates=12))
    assert [layer_number(chart, layer) for layer in chart.layers] == [1, 2, 3, 4, 5, 6, 7, 0]
    assert chart.layers[-1].name == "5 other templates"
    assert chart.layers[0].link == "template-0"
    assert tuple(layer.name for layer in by_application.layers[:2]) == NAMES


def test_few_templates_leave_no_rest_and_one_application_no_chart():
    result = log_result(templates=3)
    one = replace(result, application_series=result.application_series[:1])
    (chart,) = busy_charts(one)
    assert [layer.rest for layer in chart.layers] == [False, False, False]


def test_a_log_of_a_moment_has_no_charts():
    result = log_result(steps=2)
    assert not list(busy_charts(result)) and executions_chart(result) is None
    assert not list(busy_charts(replace(result, timeline_us=None)))
    assert "Template by template" in html_page(build_log_document(result))


def test_a_gap_in_the_log_is_drawn_as_nothing():
    result = log_result()
    gap = replace(result, series=(*result.series[:3], *result.series[6:]))
    chart = executions_chart(gap)
    assert [y for _, y in chart.lines[0].points[3:6]] == [0, 0, 0]
    assert len(chart.lines[0].points) == 12


BEGIN = BEGIN_US // 1_000_000


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        (10, ["22:00:00", "22:00:02", "22:00:04", "22:00:06", "22:00:08", "22:00:10"]),
        (4 * 3600, ["22:00", "22:30", "23:00", "23:30", "31 May", "00:30", "01:00", "01:30", "02:00"]),
        (3 * 86_400, ["31 May", "12:00", "1 Jun", "12:00", "2 Jun", "12:00"]),
        (40 * 86_400, ["4 Jun", "11 Jun", "18 Jun", "25 Jun", "2 Jul", "9 Jul"]),
    ],
)
def test_ticks_stand_at_round_times_of_day(length, labels):
    ticks, found = clock_ticks(BEGIN, length)
    assert found == labels
    assert all(0 <= tick <= length for tick in ticks)


def test_an_axis_names_its_day():
    assert clock_title(BEGIN, 60) == "2026-05-30, UTC"
    assert clock_title(BEGIN, 4 * 3600) == "UTC, from 2026-05-30 on"


def test_sparks_show_the_least_and_scale_to_the_greatest():
    assert spark_text((0, 1, 400, 800)) == " ▁▄█"
    assert spark_text((0, 0)) == "  "
    assert spark_path((0, 1, 400, 800)) == "M0 40H1V39H2V20H3V0H4V40z"


def test_folds_of_other_parts_have_no_way_back(page):
    errors = next(block for block in all_blocks(log_result()) if isinstance(block, Fold) and not block.id)
    assert errors.summary
    assert page.count("Back to the table") == 12


HOUR_US = 3_600_000_000


def slow(number: int) -> SlowStatement:
    text = f"SELECT *\n\tFROM orders\n  WHERE id = {number}"
    return SlowStatement(
        (90 - number) * MS, BEGIN_US, 0, "ada", "shop", "web", "10.0.0.7", "a.log", 5, text, "$1 = '7'"
    )


@pytest.fixture
def full() -> LogResult:
    """A log with all that this file is about."""
    base = log_result()
    tallies = (SessionTally("shop", 9, 8, 800 * MS, 300 * MS), SessionTally("stock", 1, 0, 0, 0))
    server = replace(
        base.server,
        checkpoint_work=CheckpointWork(
            *(4, 2, 1, 1, 1_000, 0.03, 4, 8, 12, 2_560_000.0, 4_096_000, 2_048_000.0),
            *(16_000 * MS, 2_000 * MS, 400 * MS, 44),
        ),
        vacuum_work=(
            VacuumWork("d.s.orders", False, 2, 60 * MS, 40 * MS, 2, 6, 200, 14, 34, 8, 10, 20, 4, 4_912),
            VacuumWork("d.s.orders", True, 3, 9 * MS, 4 * MS, 0, 0, 0, 0, 77, 1, 2, 0, 0, 0),
        ),
    )
    first = replace(base.templates[0], query_ids=(QueryId("-77", 5), QueryId("88", 1)))
    return replace(
        base,
        server=server,
        templates=(first, *base.templates[1:]),
        p50_ns=2 * MS,
        p95_ns=30 * MS,
        p99_ns=70 * MS,
        peak=Peak(BEGIN_US + 7_000_000, 1_234),
        slowest=tuple(slow(number) for number in range(60)),
        hours=(
            HourFacts(BEGIN_US, 70, 700 * MS, MS, 2 * MS, 3 * MS, 0),
            HourFacts(BEGIN_US + HOUR_US, 0, 0, None, None, None, 5),
        ),
        sessions=SessionFacts(10, 8, 800 * MS, 300 * MS, 90 * MS, 290 * MS, 5, None, tallies, (), (), ()),
        filters=LogFilter(
            ("shop",), (), (), (), (), 312, (LeftOut("database", "stock", 300), LeftOut("database", "", 12))
        ),
    )


def rows(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[value.text for value in row] for row in table.rows]


def test_the_terminal_shows_the_quantiles_at_once_and_the_rest_in_full(full):
    def render(result, console, **options):
        render_log_terminal(answer_log(result), console, top=3, **options)

    short = terminal(render, 100)(full)
    assert "p50 2.00 ms, p95 30.0 ms, p99 70.0 ms, peak 1 234 statements a second" in " ".join(short.split())
    words = "The filters (database shop) left out 312 of 412 entries: 312 by database (stock 300, (none) 12)"
    assert words in " ".join(short.replace("  ", " ").split())
    titles = ("Slowest single statements", "By hour", "Sessions by user", "Work of checkpoints")
    assert not [title for title in titles if title in short]
    long = terminal(lambda result, console: render(result, console, full=True), 100)(full)
    assert not [title for title in titles if title not in long]
    assert "90.0 ms  2026-05-30 22:00:00  database shop, user ada, web, from 10.0.0.7" in long
    assert "    SELECT * FROM orders WHERE id = 0\n" in long and "id = 3\n" not in long


def test_tables_have_what_was_stored(full):
    whose = ["2026-05-30 22:00:00", "shop", "ada", "web", "10.0.0.7"]
    assert rows(slowest_table(full, 2)) == [
        ["90.0 ms", *whose, "SELECT * FROM orders WHERE id = 0"],
        ["89.0 ms", *whose, "SELECT * FROM orders WHERE id = 1"],
    ]
    assert rows(hours_table(full.hours, 300)) == [
        ["2026-05-30 22:00", "70", "700 ms", "1.00 ms", "2.00 ms", "3.00 ms", "0"],
        ["2026-05-30 23:00", "0", "", "", "", "", "5"],
    ]
    assert hours_table(full.hours[:1], 300) is None
    whole, users = session_tables(full.sessions)
    assert rows(whole) == [["10", "8", "100 ms", "90.0 ms", "290 ms", "300 ms", "5", "at the beginning"]]
    assert rows(users) == [["shop", "9", "8", "800 ms", "100 ms", "300 ms"], ["stock", "1", "0", "", "", ""]]


def test_background_work_is_shown_by_table(full):
    tables = {table.caption: rows(table) for table in activity_tables(full)}
    assert ["buffers written", "1 000; 3.0 % of shared_buffers each"] in tables["Work of checkpoints"]
    assert tables["Autovacuum by table"] == [["d.s.orders", "2", "60.0 ms", "40.0 ms", "200", "14", "6"]]
    assert tables["Autoanalyze by table"] == [["d.s.orders", "3", "9.00 ms", "77", "1", "2", "0 B"]]


def test_the_page_has_everything(full):
    page = markdown_of(build_log_document)(answer_log(full))
    for text in (
        "Slowest single statements",
        "by the hour",
        "Sessions by user",
        "Work of checkpoints",
        "-77, 88",
    ):
        assert text in page


TEXTS = ["select id from orders", "select name from items where id = ?", "insert into log values (?)"]
ROW = {
    "template": 1,
    "parent": 0,
    "server": "",
    "in_transaction": True,
    "stretches": 20,
    "executions": 800,
    "parents": 20,
    "squares": 32_000.0,
    "groups": 0,
    "at_once": 0,
    "longest": 60,
    "elapsed_us": 900_000,
    "sum_us": 400_000,
    "file": 0,
    "offset": 0,
}


def found(*rows, executions=(20, 900, 900)):
    return loops_of(pa.Table.from_pylist([{**ROW, **row} for row in rows]), TEXTS, executions)


def findings(*rows):
    """Return what a log of a second shows of loops, without anything else that stands out."""
    result = log_result(templates=3)
    templates = (
        replace(
            one,
            number=place,
            text=TEXTS[place],
            sum_ns=300 * MS,
            lists=None,
            repetition=None,
            examples=(),
            applications=(),
        )
        for place, one in enumerate(result.templates)
    )
    quiet = replace(
        result,
        first_us=0,
        last_us=1_000_000,
        templates=tuple(templates),
        transactions=(),
        errors=(),
        server=replace(result.server, lock_waits=()),
        loops=found(*rows),
    )
    return find_findings(evidence_of_log(quiet))


BATCH = {"template": 2, "parent": None, "parents": 0}
PIPELINE = {"groups": 25, "at_once": 14}


def test_findings_word_for_word():
    many = ((30, 4), (25, 0), (1, 1), (0, 0))
    compare_findings("loops_in_logs", [
        ("templates in turn are a finding with the query before",
         findings({}, {"template": 2, "elapsed_us": 500_000, "sum_us": 100_000})),
        ("a batch in a transaction is written with one statement", findings(BATCH)),
        ("a pipeline does not let the server wait", findings(BATCH | PIPELINE)),
        ("a pipeline outside of transactions",
         findings({**BATCH, **PIPELINE, "in_transaction": False, "parent": 0, "parents": 40})),
        ("statements that seldom follow at once wait for each answer",
         *(findings({**BATCH, "groups": groups, "at_once": at_once}) for groups, at_once in many)),
        ("a look-up after a list names its table", findings({"in_transaction": False})),
    ])  # fmt: skip


def test_a_loop_that_takes_little_time_is_no_finding():
    assert findings({"elapsed_us": 40_000, "sum_us": 30_000}) == ()


@pytest.mark.parametrize(("executions", "many"), [((20, 900, 0), 1), ((200, 900, 0), 0)])
def test_outside_of_transactions_the_query_before_must_be_followed_by_the_loop(executions, many):
    loops = found({"in_transaction": False}, executions=executions)
    assert len(loops) == many
    result = replace(log_result(templates=1), loops=loops)
    assert loop_notes(result) == ({1: "repeated up to 60 times in a session"} if many else {})


ORDER_BEGIN_US = 1_767_225_600_000_000
"""2026-01-01 00:00:00 UTC."""


def files_of(*files: tuple[str, int | None, int], server: str = "", dialects: tuple[str, ...] = ()):
    """Return files: name, and the seconds of the first and the last entry."""
    (first, *_) = log_result().files
    return tuple(
        replace(
            first,
            name=name,
            server=server,
            dialect=dialects[place] if dialects else "stderr",
            first_us=None if begin is None else ORDER_BEGIN_US + begin * 1_000_000,
            last_us=ORDER_BEGIN_US + end * 1_000_000,
        )
        for place, (name, begin, end) in enumerate(files)
    )


def warnings(*files: tuple[str, int | None, int], withheld: tuple[str, ...] = (), **more) -> str:
    """Return the warnings on files; see `files_of`."""
    result = replace(log_result(), withheld=withheld, files=files_of(*files, **more))
    return "\n".join(order_warnings(result)).replace("\N{NO-BREAK SPACE}", " ")


def test_a_refusal_names_the_files_that_overlap_most():
    told = overlap_refusal(files_of(("a", 0, 60), ("b", 57, 600), ("c", 100, 590), dialects=("x", "x", "y")))
    assert told.startswith("b and c overlap in time") and told.endswith("name only files in one format")
    assert "name files that follow each other" in overlap_refusal(files_of(("a", 0, 60)))


def test_files_in_order_need_no_word():
    # Sessions write a moment later than others, also across a rotation.
    assert warnings(("a", 0, 60), ("b", 59, 120), ("pgbouncer", None, 0), ("c", 120, 130)) == ""


def test_files_that_overlap_are_named_with_the_time_and_what_it_means():
    text = warnings(("a", 0, 600), ("b", 300, 900), ("c", 890, 900), ("d", 0, 5), withheld=("",))
    assert text.startswith(
        "Files of one server overlap in time: a and b, 2026-01-01 00:05:00 to 00:10:00 UTC; b and c, "
        "2026-01-01 00:14:50 to 00:15:00 UTC; and 1 other pair. Read one after the other"
    )
    assert "uncork reports nothing of this server that follows from it: transactions" in text
    assert "--servers by-folder" in text and "count twice" not in text
    named = warnings(
        ("a", 0, 600), ("b", 0, 600), server="db1", dialects=("stderr", "csvlog"), withheld=("db1",)
    )
    assert "a and b of server db1, 2026" in named
    assert "count twice: read only one of the formats" in named and "--servers" not in named


def test_where_a_busy_server_begins_its_next_file_sessions_are_complete():
    text = warnings(("a", 0, 3_600), ("b", 3_580, 7_200))
    assert "a and b, 2026-01-01 00:59:40 to 01:00:00 UTC. As long as each session logs in order" in text
    assert "reports nothing" not in text


def test_a_log_that_was_read_too_late_is_named():
    text = warnings(("a", 600, 900), ("b", 0, 500), server="db1")
    assert text.startswith(
        "Logs were not read in the order of time: b ends at 2026-01-01 00:08:20 UTC, before a of server db1 "
        "ends"
    )
