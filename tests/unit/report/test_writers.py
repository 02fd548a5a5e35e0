"""Each writer: the same result, nothing lost, nothing taken for markup."""

import dataclasses
import io
import json
import math
import re
from functools import partial
from html.parser import HTMLParser

import jsonschema
import pytest
from rich.console import Console

from fakes.log_results import log_result
from fakes.results import bare_result, comparison, large_result, run_facts, small_result
from fakes.terminals import shown
from uncork.model.results.experiment import SliceCheckFacts
from uncork.model.verdict import Verdict
from uncork.report.blocks import Column, Table, Value
from uncork.report.experiment.conduct import disturbed_words, slice_check_words
from uncork.report.experiment.document import build_document, next_steps, render_terminal
from uncork.report.log.document import build_log_document
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.report.write.schemas import result_schema
from uncork.report.write.terminal_text import write_table

terminal = partial(shown, render_terminal)

VOID = {"meta", "link", "br", "path", "rect", "line"}
EVIL = '<script>alert("1")</script>'


@pytest.fixture(scope="module")
def small_page():
    return html_page(build_document(small_result()))


# ---- document ----


def test_every_row_has_a_value_a_column():
    def tables(block):
        if hasattr(block, "columns"):
            yield block
        if getattr(block, "table", None) is not None:
            yield block.table
        for inner in (*getattr(block, "blocks", ()), *getattr(block, "charts", ())):
            yield from tables(inner)

    found = [
        t for section in build_document(large_result()).sections for b in section.blocks for t in tables(b)
    ]
    assert len(found) > 20
    assert all(len(row) == len(table.columns) for table in found for row in table.rows)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_is_rendered_everywhere(verdict):
    result = bare_result(comparison("uuid", verdict, reason="because of it"))
    for text in (
        terminal(result),
        markdown_text(build_document(result)),
        html_page(build_document(result)),
        json_text(result),
    ):
        assert verdict.value in text


def test_an_empty_run_says_so():
    result = bare_result(run=run_facts(status="interrupted"))
    for text in (terminal(result), markdown_text(build_document(result)), html_page(build_document(result))):
        assert "Nothing was measured" in text
        assert "uncork run" in text


def test_not_enough_evidence_leads_to_the_command_that_resumes():
    result = bare_result(comparison("uuid", Verdict.NOT_ENOUGH_EVIDENCE, 0.96, 0.85, 1.09))
    assert f"uncork run --resume {result.run.id} --budget 30min" in terminal(result)


@pytest.mark.parametrize(
    ("needed", "budget", "which"),
    [
        ((16, 24), "5min", "them"),  # 20 s to set up, then twice the 2 min of eight rounds
        ((16, None), "3min", "1 of the 2"),
        ((1000, 9), "1min", "1 of the 2"),
    ],
)
def test_the_budget_that_will_probably_decide_is_named(needed, budget, which):
    opened = [
        dataclasses.replace(
            comparison(name, Verdict.NOT_ENOUGH_EVIDENCE, 0.96, 0.85, 1.09), rounds=8, rounds_needed=rounds
        )
        for name, rounds in zip(("uuid", "bytea"), needed, strict=True)
    ]
    result = bare_result(*opened, run=run_facts(elapsed_ns=140 * 10**9, setup_ns=20 * 10**9))
    (step,) = (step for step in next_steps(result) if step.command and "--resume" in step.command)
    assert step.text.endswith(f"Measure longer; this will probably decide {which}:")
    assert step.command == f"uncork run --resume {result.run.id} --budget {budget}"


# ---- html ----


def test_where_going_on_would_end_at_once_a_narrower_interval_is_the_next_step():
    result = small_result()
    (one, *others) = result.comparisons
    wide = dataclasses.replace(one, verdict=Verdict.NOT_ENOUGH_EVIDENCE, ratio=1.01, low=0.90, high=1.12)
    precise = dataclasses.replace(wide, low=1.0, high=1.02)
    others = [c for c in others if c.verdict is not Verdict.NOT_ENOUGH_EVIDENCE]
    for found, option in ((wide, "--budget 30min"), (precise, "--precision 1.5% --budget 30min")):
        changed = dataclasses.replace(result, comparisons=(found, *others), precision=0.03)
        (step,) = (step for step in next_steps(changed) if step.command and "--resume" in step.command)
        assert step.command == f"uncork run --resume {result.run.id} {option}"


@pytest.mark.parametrize(
    ("checks", "told"),
    [
        ((), ""),
        ([(None, None, None, False, 0)], "was not checked"),
        (
            [(1.01, 0.98, 1.04, False, 7)],
            "the same effects to within 4.0 % (1 comparison, each with at least 7 rounds",
        ),
        ([(1.2, 1.1, 1.3, True, 5)], ""),
    ],
)
def test_what_the_check_of_short_slices_found_is_told(checks, told):
    facts = tuple(
        SliceCheckFacts((("rows", "1000"),), "find", "uuid", rounds, ratio, low, high, disturbed)
        for ratio, low, high, disturbed, rounds in checks
    )
    words = slice_check_words(facts)
    assert told in words if told else words == ""
    warnings = list(disturbed_words(facts, small_result().factors))
    assert bool(warnings) == any(one.disturbed for one in facts)
    if warnings:
        assert "on find at 1 000 rows" in warnings[0] or "on find at rows 1 000" in warnings[0]
        assert "+20 % [+10, +30]" in warnings[0]


def test_a_page_escapes_names():
    result = bare_result(comparison(EVIL, workload="<b>select</b>", reason=EVIL))
    page = html_page(build_document(dataclasses.replace(result, environment={EVIL: {EVIL: EVIL}})))
    assert "<script>alert" not in page
    assert "<b>select" not in page
    assert page.count("<script") == 1


def test_markdown_and_terminal_take_names_as_they_are():
    result = bare_result(comparison("[bold]a|b[/bold]", Verdict.REFUSED, reason=EVIL))
    assert "<script" not in markdown_text(build_document(result))
    assert r"\[bold\]a\|b\[/bold\]" in markdown_text(build_document(result))
    assert "[bold]a|b[/bold]" in terminal(result)


def test_a_page_needs_nothing_from_outside(small_page):
    page = re.sub(r'xmlns="[^"]*"', "", small_page)
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    assert "url(" not in page
    assert not re.search(r"\son\w+=", page)


@pytest.mark.parametrize(
    "make",
    [
        lambda: html_page(build_document(small_result())),
        lambda: html_page(build_log_document(log_result(templates=50))),
    ],
)
def test_a_page_is_well_formed_and_accessible(make):
    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.ids, self.headings, self.count = [], [], [], {}

        def handle_starttag(self, tag, attributes):
            values = dict(attributes)
            self.ids += [values["id"]] if "id" in values else []
            self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
            self.count[tag] = self.count.get(tag, 0) + 1
            if tag not in VOID:
                self.open.append(tag)
            if tag == "th":
                assert values.get("scope") in ("row", "col")
            if tag == "svg" and "chart" in values.get("class", ""):
                assert values["role"] == "img"
                assert values["aria-labelledby"]

        def handle_startendtag(self, tag, attributes):
            pass

        def handle_endtag(self, tag):
            if tag not in VOID:
                assert self.open.pop() == tag

    reader = Reader()
    reader.feed(make())
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    assert reader.headings[0] == 1
    assert all(
        after - before <= 1 for before, after in zip(reader.headings, reader.headings[1:], strict=False)
    )
    assert reader.count["caption"] == reader.count["table"]


def test_colours_of_charts_follow_the_page(small_page):
    charts = re.findall(r'<svg[^>]*class="chart".*?</svg>', small_page, re.DOTALL)
    assert len(charts) >= 4
    assert all("var(--" in chart for chart in charts)
    assert not re.search(r"#[0-9a-f]{3}", "".join(charts)), "no colour but the page's"


def contrast(one, other):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_suffices_in_both_themes(small_page):
    blocks = re.findall(r"color-scheme: (?:light|dark);\s*(--page.*?)\}", small_page, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        for ground in ("page", "card"):
            assert all(contrast(colour[name], colour[ground]) >= 4.5 for name in ("ink", "soft", "link"))
            assert all(contrast(colour[f"v{n}"], colour[ground]) >= 3 for n in range(8))
        assert contrast(colour["ink"], colour["bar"]) >= 4.5
        for tone in ("faster", "slower", "unsure", "refused"):
            assert contrast(colour[tone], colour[f"{tone}-bg"]) >= 4.5


# ---- terminal ----


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_terminal(width):
    lines = terminal(large_result(), width).splitlines()
    assert max(len(line) for line in lines if "--resume" not in line) <= width


def test_a_terminal_without_colour_gets_none():
    assert "\x1b" not in terminal(small_result(), force_terminal=False)
    assert "\x1b[" in terminal(small_result(), force_terminal=True, color_system="standard", no_color=False)


# ---- json ----


def test_json_is_what_the_schema_says():
    for result in (small_result(), large_result(), bare_result()):
        document = json.loads(json_text(result))
        assert document["version"] == 1
        jsonschema.Draft202012Validator(result_schema("report")).validate(document)
    jsonschema.Draft202012Validator.check_schema(result_schema("report"))


def test_json_knows_no_infinity():
    result = bare_result(comparison("uuid", Verdict.NOT_ENOUGH_EVIDENCE, 1.0, -math.inf, math.nan))
    found = json.loads(json_text(result), parse_constant=pytest.fail)["comparisons"][0]
    assert (found["low"], found["high"]) == (None, None)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_table_wraps_its_words_or_becomes_paragraphs_and_cuts_nothing(width):
    names = ("executions", "failed", "mean", "p50", "p99", "longest", "statement")
    words = ("935", "0", "4.02 ms", "305 µs", "37.9 ms", "71.7 ms", "select abalance from pgbench_accounts")
    columns = tuple(Column(name, number=name != "statement") for name in names)
    table = Table("Statements", columns, (tuple(map(Value, words)),))
    console = Console(file=io.StringIO(), width=width, color_system=None)
    write_table(console, table)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert all(word in text for value in (*names, *words) for word in value.split())
