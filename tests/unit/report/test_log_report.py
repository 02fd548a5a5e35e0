"""What a log's page holds: parts a template, links to them, figures to sort by."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from fakes.log_results import log_result, template
from uncork.report.blocks import Beside, Code, Fold, Spark, Table
from uncork.report.log_details import template_folds
from uncork.report.log_document import build_log_document
from uncork.report.log_writers import render_log_html, render_log_markdown
from uncork.report.spark import spark_path, spark_text


@pytest.fixture(scope="module")
def page():
    return render_log_html(log_result())


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
    assert 'class="scroll tall"' not in render_log_html(log_result(templates=40))
    tall = render_log_html(log_result(templates=41))
    (widths,) = re.findall(r'class="scroll tall" style="--columns:([^"]*)"', tall)
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
    text = render_log_markdown(log_result(templates=210))
    assert text.count("Executions over time") == 200
    assert re.search(
        "Executions over time, at most 39 in 5 min: 2026-05-30 22:00:00 [ ▁▂▃▄▅▆▇█]{12} 20", text
    )


def test_sparks_show_the_least_and_scale_to_the_greatest():
    assert spark_text((0, 1, 400, 800)) == " ▁▄█"
    assert spark_text((0, 0)) == "  "
    assert spark_path((0, 1, 400, 800)) == "M0 40H1V39H2V20H3V0H4V40z"


def test_folds_of_other_parts_have_no_way_back(page):
    errors = next(block for block in all_blocks(log_result()) if isinstance(block, Fold) and not block.id)
    assert errors.summary
    assert page.count("Back to the table") == 12
