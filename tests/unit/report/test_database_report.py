"""What is said of a watched server, case by case, and what its page holds."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from fakes.database_results import BEGIN_US, database_result, told
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


def test_a_server_at_rest_is_told_as_such():
    result = nothing()
    assert result.answer == "No session was busy in the 60.0 s watched (120 samples)."
    assert [step.text for step in build_database_document(result).steps] == [
        "Watch the server while it is slow, or for longer:"
    ]


def test_a_role_that_may_not_see_is_told_that_it_does_not():
    result = nothing()
    hidden = HiddenWork("ada", 3.5, None, "", busy=False)
    result = told(replace(result, watch=replace(result.watch, hidden=3.5), hidden=hidden))
    assert result.answer.startswith('Role "ada" may not see what the sessions of other roles do.')
    assert "No session that this role may see was busy" in result.answer
    assert result.answer.endswith("The server itself counted 2.40 active ones.")
    assert not any("processors" in one for one in result.warnings)
    assert build_database_document(result).steps[0].command == 'GRANT pg_read_all_stats TO "ada"'
    assert any(
        "3.50 sessions on average, idle ones included, belong to other roles" in one
        for one in result.warnings
    )


def text_of(result):
    console = Console(file=io.StringIO(), width=100, color_system=None)
    render_database_terminal(result, console)
    return console.file.getvalue()


def burst(seconds, rest, most, busy=range(20, 25)):
    """Return a result whose sessions are busy in some seconds of a watch, and hardly in the rest."""
    values = tuple(most if second in busy else rest for second in range(seconds))
    history = History(BEGIN_US, 1, (ActivityLayer(CPU, values),))
    tree = TimeNode("all", "", sum(values) / seconds, 1.0, None, ())
    return answer_database(database_result(history=history, busiest=busiest(history), tree=tree))


def test_a_burst_in_a_quiet_minute_is_in_the_answer_and_drawn():
    result = burst(60, 0.1, 7.0)
    assert "0.68 sessions were busy on average, 3.55 in the busiest 10 s (from 00:00:20 UTC)" in result.answer
    shown = text_of(result)
    assert "Busy sessions over time, in steps of 1 s" in shown
    assert "▁▁▁█████▁▁▁" in shown and "at most 7.00" in shown
    # The same sessions all the time, little more than usual, or a short watch: the average says it all.
    for even in (burst(60, 2.0, 2.0), burst(60, 2.0, 4.0), burst(10, 0.1, 7.0, range(3))):
        assert "in the busiest" not in even.answer
        assert "Busy sessions over time" not in text_of(even)


def test_a_template_that_works_is_not_reported_as_blocked():
    result = database_result()
    works = [one for one in result.templates if one.classes[0].name != "Lock"]
    assert "blocked by" not in database_result(templates=tuple(works)).answer


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"resets": ("pg_stat_wal",)}, "The counters of pg_stat_wal were reset during the watch"),
        ({"own_active": 9.0}, "The server itself counted 9.00 active sessions"),
        (
            {"counters": (CounterFacts("pg_stat_statements_info", "", "dealloc", 2.0),)},
            "pg_stat_statements was full",
        ),
    ],
)
def test_what_casts_doubt_is_told(changes, warning):
    assert any(warning in one for one in database_result(**changes).warnings)
    assert database_result().warnings == ()


def test_samples_that_were_missed_are_told_with_what_to_do():
    result = database_result()
    result = told(replace(result, watch=replace(result.watch, missed=60)))
    assert any("60 of 180 samples were missed" in one and "--rate" in one for one in result.warnings)


@pytest.mark.parametrize(
    ("status", "word"), [("failed", "connection to the server was lost"), ("interrupted", "interrupted")]
)
def test_how_it_ended_is_told(status, word):
    result = database_result()
    assert any(word in one for one in told(replace(result, run=replace(result.run, status=status))).warnings)


def test_what_lacks_is_one_line_with_its_remedy():
    lack = Missing("jit", "what it compiled", "jit = on")
    said = "Not known: what it compiled. This needs jit: jit = on."
    assert said in build_database_document(database_result(missing=(lack,))).reasons


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


def test_pauses_of_a_client_between_statements_are_told_from_a_statement_that_takes_the_time():
    usual = database_result()
    idle = TimeNode("class", "idle in transaction", 0.9, 0.9, None, ())
    pause = InTransaction(
        application="shop",
        user="app",
        template=1,
        text="select * from invoice where state = ?",
        sessions=0.9,
        gap_ns=2_100_000,
        per_transaction=3.0,
        length_ns=8_000_000,
        part=1.0,
        idle_ns=5_000_000,
        open_ns=9_000_000,
        held_age=None,
        samples=100,
    )
    tree = replace(usual.tree, children=(idle,))
    short = answer_database(replace(usual, tree=tree, findings=(), transactions=(pause,)))
    assert short.answer.startswith(
        "Transactions wait for application shop between their statements for 90 % of the busy time. The "
    )
    assert "typically take 2.10 ms." in short.answer
    left = replace(pause, gap_ns=30_000_000_000)
    forgotten = answer_database(replace(usual, tree=tree, findings=(), transactions=(left,)))
    assert "between their statements" not in forgotten.answer
