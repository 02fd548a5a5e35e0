"""What is said of a watched server (golden/database/answers.txt), and what its page holds."""

import re
from dataclasses import replace

import pytest

from fakes.database_results import BEGIN_US, database_result, told
from fakes.goldens import compare_cases, spoken, terminal
from uncork.model.database.missing import HiddenWork, Missing
from uncork.model.database.wait_classes import CPU
from uncork.model.results.database import ActivityLayer, CounterFacts, History, TimeNode
from uncork.model.results.database_transactions import InTransaction
from uncork.profile.activity import busiest
from uncork.report.blocks import StackChart, Table
from uncork.report.database.answer import answer_database
from uncork.report.database.document import activity_chart, build_database_document, render_database_terminal
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text

EMPTY = TimeNode("all", "", 0.0, 0.0, None, ())


def nothing(**changes):
    return database_result(tree=EMPTY, templates=(), blockers=(), applications=(), users=(), **changes)


def watched(of=None, **changes):
    result = database_result() if of is None else of
    return told(replace(result, watch=replace(result.watch, **changes)))


def ended(status):
    result = database_result()
    return told(replace(result, run=replace(result.run, status=status)))


def paused(gap_ns):
    """Return a server whose sessions are idle in transactions that pause so long between statements."""
    idle = TimeNode("class", "idle in transaction", 0.9, 0.9, None, ())
    pause = InTransaction(
        application="shop", user="app", template=1, text="select * from invoice where state = ?",
        sessions=0.9, gap_ns=gap_ns, per_transaction=3.0, length_ns=8_000_000, part=1.0, idle_ns=5_000_000,
        open_ns=9_000_000, held_age=None, samples=100,
    )  # fmt: skip
    usual = database_result()
    tree = replace(usual.tree, children=(idle,))
    return answer_database(replace(usual, tree=tree, findings=(), transactions=(pause,)))


def burst(seconds, rest, most, busy=range(20, 25)):
    """Return a result whose sessions are busy in some seconds of a watch, and hardly in the rest."""
    values = tuple(most if second in busy else rest for second in range(seconds))
    history = History(BEGIN_US, 1, (ActivityLayer(CPU, values),))
    tree = TimeNode("all", "", sum(values) / seconds, 1.0, None, ())
    return answer_database(database_result(history=history, busiest=busiest(history), tree=tree))


def test_answers_reasons_and_steps():
    usual = database_result()
    works = tuple(one for one in usual.templates if one.classes[0].name != "Lock")
    evicted = (CounterFacts("pg_stat_statements_info", "", "dealloc", 2.0),)
    hidden = HiddenWork("ada", 3.5, None, "", busy=False)
    results = {
        "usual": usual,
        "at rest": nothing(),
        "a role that may not see": watched(replace(nothing(), hidden=hidden), hidden=3.5),
        "a template that works is not blocked": database_result(templates=works),
        "no templates": database_result(templates=()),
        "counters were reset": database_result(resets=("pg_stat_wal",)),
        "the server counted more sessions": database_result(own_active=9.0),
        "statements were evicted": database_result(counters=evicted),
        "missed samples": watched(missed=60),
        "failed": ended("failed"),
        "interrupted": ended("interrupted"),
        "something is missing": database_result(missing=(Missing("jit", "what it compiled", "jit = on"),)),
        "short pauses of a client": paused(2_100_000),
        "a long pause of a client": paused(30_000_000_000),
        "a burst in a quiet minute": burst(60, 0.1, 7.0),
    }
    cases = []
    for name, result in results.items():
        cases.append((name, result.answer, *spoken(build_database_document(result))))
    compare_cases("database/answers", cases)


def test_a_burst_in_a_quiet_minute_is_drawn_and_what_the_average_tells_is_not():
    show = terminal(render_database_terminal, 100)
    shown = show(burst(60, 0.1, 7.0))
    assert "Busy sessions over time, in steps of 1 s" in shown
    assert "▁▁▁█████▁▁▁" in shown and "at most 7.00" in shown
    # The same sessions all the time, little more than usual, or a short watch: the average says it all.
    for even in (burst(60, 2.0, 2.0), burst(60, 2.0, 4.0), burst(10, 0.1, 7.0, range(3))):
        assert "in the busiest" not in even.answer
        assert "Busy sessions over time" not in show(even)


def test_the_page_links_to_parts_that_exist_and_ids_are_unique():
    page = html_page(build_database_document(database_result()))
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert {"template-0", "blockers", "foreign-keys"} <= set(ids)


def test_statements_that_never_showed_in_a_sample_have_their_part_too():
    result = database_result()
    first, *others = result.templates
    unseen = replace(first, sessions=0.0, share=0.0, classes=(), applications=())
    page = html_page(build_database_document(replace(result, templates=(*others, unseen))))
    assert 'href="#template-0"' in page and 'id="template-0"' in page


def test_figures_sort_by_their_value():
    document = build_database_document(database_result())
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    for table in (one for one in tables if one.sortable):
        for row in table.rows:
            for column, value in zip(table.columns, row, strict=True):
                assert not column.number or value.sort is not None or not value.text


def test_the_history_adds_up_to_the_tree():
    result = database_result()
    chart = activity_chart(result)
    assert isinstance(chart, StackChart) and (chart.start_s, chart.step_s) == (BEGIN_US // 10**6, 1)
    mean = sum(sum(layer.values) for layer in chart.layers) / 60
    assert mean == pytest.approx(result.tree.sessions, rel=0.02)
    assert activity_chart(replace(result, history=replace(result.history, layers=()))) is None


def test_a_tree_of_many_names_tells_the_small_ones_together():
    leaves = tuple(TimeNode("class", f"c{n}", 0.005, 0.005, None, ()) for n in range(20))
    tree = TimeNode("all", "", 1.0, 1.0, None, (TimeNode("class", CPU, 0.9, 0.9, None, ()), *leaves))
    document = build_database_document(database_result(tree=tree))
    time = next(one for one in document.sections if one.id == "time")
    (table,) = [block for block in time.blocks if isinstance(block, Table)]
    assert [row[2].text.strip("\N{NO-BREAK SPACE}") for row in table.rows] == [
        "busy sessions",
        "on CPU or ready for one",
        "20 smaller",
    ]


def test_the_document_is_json_without_rounding():
    assert '"sessions": 3.1' in json_text(database_result())
