"""What a log's page holds: parts a template, links to them, charts that add up, figures to sort by."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from fakes.log_results import BEGIN_US, NAMES, STEP_S, log_result, template
from uncork.report.blocks import Beside, Code, Fold, Spark, Table
from uncork.report.draw.axes import clock_ticks, clock_title
from uncork.report.draw.charts import layer_number, stack_bounds
from uncork.report.draw.spark import spark_path, spark_text
from uncork.report.log.charts import busy_charts, executions_chart, rate_charts
from uncork.report.log.document import PARTS_OF_MARKDOWN, build_log_document, template_folds
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
