"""Statements before and after a change, in words; and intervals that are too wide to be figures."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from fakes.cures import proven_cure
from fakes.terminals import shown
from uncork.model.results.run_comparison import FigureComparison, RunComparison, RunPair, RunSide, RunVerdict
from uncork.report.blocks import Table
from uncork.report.cure.answer import answer_cure, cure_steps
from uncork.report.findings import server_conninfo
from uncork.report.headline import fits, split_answer
from uncork.report.runs.comparison import build_runs_document, render_runs_terminal
from uncork.report.runs.comparison_answer import answer_runs, interval_words, speed_words, statements_table
from uncork.report.words import effect_with_interval, interval_ends, interval_text

ORDERS = "select count(*) from orders where customer = ?"
OTHER = "update orders set state = ? where id = ?"


def figure(subject, name, before, after, **changes):
    unit = {"mean": "ns", "calls": "/s"}.get(name, "")
    found = FigureComparison(
        *(subject, name, unit, "lower" if unit == "ns" else "", "ratio", before, after, after / before),
        *(None, None, RunVerdict.NOT_ENOUGH_EVIDENCE, "too few comparable runs", (), 0, None, 0, 0, 0, 0),
    )
    return replace(found, **changes)


def side(name, command="uncork profile db host=db --for 5min --since cure-1"):
    return RunSide(
        name, (), "database", "complete", "2026-05-31T10:00:00+00:00", "", "ada@db:1/x", None, command
    )


def compared(**changes):
    mean = figure(
        *(ORDERS, "mean", 82e6, 33e3),
        verdict=RunVerdict.FASTER, low=0.00015, high=0.0011, assumed=True,
        before_count=12_000, after_count=15_400, reason="the interval excludes no difference",
    )  # fmt: skip
    figures = (
        *(mean, figure(ORDERS, "calls", 40.0, 51.3), figure(ORDERS, "rows each", 1.0, 1.0)),
        *(
            figure(OTHER, "mean", 1e6, 1.1e6, low=0.4, high=2.9, assumed=True),
            figure(OTHER, "calls", 9.0, 9.0),
        ),
        figure("", "busy sessions", 3.3, 0.02, low=1e-6, high=3.0),
    )
    pair = RunPair(side("after-1"), (), figures, (), 0, (), (), (), changed=(ORDERS,))
    result = RunComparison(
        side("before-1", "uncork cure host=db"), "", (), (replace(pair, **changes),), (), 0.95, 0.03, "1",
        cure="cure-1",
    )  # fmt: skip
    return answer_runs(result)


def test_the_answer_after_a_cure_is_the_time_of_a_call_before_and_after():
    result = compared()
    headline, lead = split_answer(result.answer)
    assert headline == f'"{ORDERS}" is 2 500 times faster: 33.0 µs a call instead of 82.0 ms.' and fits(
        headline
    )
    assert lead == "It was called 12 000 times before and 15 400 times after."
    assert any(one.startswith("One watch on each side cannot show") for one in result.reasons)
    text = shown(render_runs_terminal, result, width=100, force_terminal=False)
    assert (
        "82.0 ms → 33.0 µs a call, 2 500 times faster (95 % interval: 910 to 6 700 times), ✓ faster" in text
    )
    assert "40 → 51.3 calls a second, 1 rows a call" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_steps_never_copy_production_again():
    (step,) = compared().steps
    assert step.command == "uncork profile db host=db --for 5min --since cure-1"
    advised = compared(after=side("after-1", "uncork advise host=db")).steps[0]
    assert advised.command == "uncork profile db 'host=db port=1 user=ada dbname=x' --since cure-1"


def test_a_changed_statement_that_did_not_run_is_named():
    result = compared(changed=(ORDERS, "delete from gone where id = ?"))
    assert any("delete from gone where id = ?" in one and "did not run" in one for one in result.reasons)
    assert "its effect on the server is unknown" in compared(changed=("delete from gone",)).answer


def test_changed_statements_come_first_in_the_table():
    result = compared(changed=(OTHER,))
    table = statements_table(result.before, result.pairs[0])
    assert [row[-1].text for row in table.rows] == [OTHER, ORDERS]
    assert [row[2].text for row in table.rows] == ["10 % more time", "2 500 times faster"]


def test_no_interval_wider_than_a_factor_of_100_is_printed_as_figures():
    for low, high in ((1e-3, 2.6e14), (1.0, 101.0), (0.001, 0.2)):
        for text in (interval_text(low, high), interval_ends(low, high), interval_words(low, high)):
            assert "unknown" in text and not re.search(r"\d", text)
        assert effect_with_interval(math.sqrt(low * high), low, high).endswith(" [unknown]")
    assert interval_text(1.0, 100.0) == "[×1, ×100]"
    document = build_runs_document(compared())
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    cells = [value.text for table in tables for row in table.rows for value in row]
    assert "[unknown]" in cells and not any("×3" in cell for cell in cells)


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        *((33e-6 / 82e-3, "2 500 times faster"), (0.5, "2 times faster"), (0.7, "30 % less time")),
        *((1.0, "0 % more time"), (1.25, "25 % more time"), (4.1, "4.1 times slower")),
    ],
)
def test_a_change_is_in_per_cent_up_to_a_factor_of_two(ratio, words):
    assert speed_words(ratio) == words


def test_the_hand_over_names_one_command_that_compares_on_the_server():
    steps = {step.text: step.command for step in cure_steps(proven_cure())}
    (command,) = [one for text, one in steps.items() if text.startswith("Afterwards")]
    assert command == (
        "uncork profile db 'host=db.example port=5432 user=ada dbname=shop' --for 5min "
        "--since cure-shop-20260531-101000"
    )
    elsewhere = replace(proven_cure(), reproduce="uncork cure host=db --runs '/my runs' --budget 10min")
    assert any(
        (one.command or "").endswith("--since cure-shop-20260531-101000 --runs '/my runs'")
        for one in cure_steps(answer_cure(elsewhere))
    )


def test_names_with_spaces_and_quotes_work_in_a_connection_string():
    assert server_conninfo("watch er@/run/pg:5432/it's") == (
        "host=/run/pg port=5432 user='watch er' dbname='it\\'s'"
    )
