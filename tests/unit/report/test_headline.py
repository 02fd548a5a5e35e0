"""Headlines: every answer begins with a sentence that is read at a glance."""

import re
from pathlib import Path

import pytest

from uncork.report.headline import (
    MOST_NUMBERS,
    MOST_WORDS,
    fitting,
    headline_template,
    join_sentences,
    numbers_in,
    split_answer,
    uncapital,
    words_in,
)

GOLDENS = Path(__file__).parents[2] / "golden"
ANSWERS = ("report/experiment_answers", "guard/answers", "load/answers", "load/sweeps", "log/answers")
ANSWERS += ("database/answers", "cure/answers")


def assert_brief(answer):
    headline = split_answer(answer)[0]
    assert words_in(headline) <= MOST_WORDS == 20, headline
    assert numbers_in(headline) <= MOST_NUMBERS == 3, headline
    assert headline.endswith("."), headline


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_begins_with_a_brief_sentence(name):
    answers = re.findall(
        r"^==== .*\n(.+)", (GOLDENS / f"{name}.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(answers) > 10
    for answer in answers:
        assert_brief(answer)


@pytest.mark.parametrize("path", sorted(GOLDENS.glob("*/*.md")), ids=lambda path: path.stem)
def test_every_golden_report_begins_with_a_brief_sentence(path):
    (headline,) = re.findall(r"^\*\*(.+?)\*\*", path.read_text(encoding="utf-8"), re.MULTILINE)[:1]
    assert split_answer(headline.replace("\\", ""))[1] == ""
    assert_brief(headline.replace("\\", "").replace("&lt;", "<"))


@pytest.mark.parametrize(
    ("text", "numbers", "words"),
    [
        ("uuid is 46 % faster than char (95 % interval: 44 % to 48 %).", 3, 10),
        ('"select 1 from t where a = 2" took 26 min 07 s.', 1, 9),
        ("The server handled 3 114 requests a second with p99 2.54 ms.", 2, 10),
        ("Slower than load-x-20261123-111925 since 2026-05-31 08:30.", 1, 5),
        ("p99 < 20ms holds with work_mem = 4MB at commit 1a2b3c4.", 2, 9),
    ],
)
def test_numbers_and_words_are_counted_as_read(text, numbers, words):
    assert (numbers_in(text), words_in(text)) == (numbers, words)


def test_what_does_not_fit_moves_to_the_second_sentence():
    long = "one two three 1 2 3 4"
    assert fitting([(long, ""), ("one two three", "1 2 3 4")]) == "one two three. 1 2 3 4."
    assert fitting([(long, "")]) == f"{long}."


def test_a_full_stop_in_quotation_marks_ends_no_sentence():
    assert split_answer('"a. b" takes 3.5 %. Then c.') == ('"a. b" takes 3.5 %.', "Then c.")
    assert split_answer("One sentence.") == ("One sentence.", "")


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("select 1", '"select 1"'),
        ('update "t" set a = ?', '"update t set a = ?"'),
        (
            "update orders set status = ?, updated_at = now() where id = ? and status = ?",
            '"update orders set status = ?, updated_at = now() where id …"',
        ),
        ("select a, b, c, d, e, f from orders join items using (id) where x = ?", None),
    ],
)
def test_a_headline_quotes_the_beginning_of_a_template(template, shown):
    found = headline_template(template)
    assert words_in(found) <= 8
    assert found == shown if shown else found.startswith('"select a, … from orders')


def test_a_question_gets_no_full_stop():
    assert join_sentences(("It is down", "", "Is a server running there?", "Look.")) == (
        "It is down. Is a server running there? Look."
    )


def test_a_title_within_a_title_keeps_its_acronym():
    assert [uncapital(text) for text in ("CPU", "CPU by route", "PostgreSQL settings", "p99 grows")] == [
        *("CPU", "CPU by route", "PostgreSQL settings", "p99 grows"),
    ]
    assert uncapital("System calls") == "system calls" and uncapital("A load") == "a load"
