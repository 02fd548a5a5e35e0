"""What a report says of requests by HTTP."""

from dataclasses import replace

from fakes.results import bare_result, comparison, small_result
from uncork.model.results.experiment import AnswerDifference
from uncork.model.verdict import Verdict
from uncork.report.experiment.document import build_document
from uncork.report.experiment.requests import answer_words
from uncork.report.write.html import html_page
from uncork.report.write.markdown import markdown_text


def told(*differences):
    result = small_result()
    answers = tuple(AnswerDifference((), "find", f"v{n}", text) for n, text in enumerate(differences))
    return answer_words(replace(result, answers=answers))


def test_a_changed_answer_is_told_with_its_place():
    (said,) = told("GET /1: /id is 2 where the baseline has 1")
    assert said.startswith("v0 changes the answer on find: GET /1: /id is 2 where the baseline has 1. It is")


def test_many_are_counted():
    *_, last = told(*["GET /1: another body"] * 5)
    assert last == "So do 2 more: see Requests."


def test_a_difference_of_all_is_a_hundred_points():
    from uncork.report.experiment.answer import claim_words, interval_words

    found = replace(
        small_result().comparisons[0], difference=1.0, difference_low=0.951, difference_high=1.0, ratio=None
    )
    assert claim_words(found, "success") == ("lets 100 percentage points more requests succeed", "than")
    assert interval_words(found, "success", 0.95) == "95 % interval: 95 to 100 points"


def test_a_tally_says_succeed_where_success_is_compared():
    share = {"difference": -0.2, "difference_low": -0.25, "difference_high": -0.1}
    result = bare_result(
        comparison("a", Verdict.SLOWER, None, None, None, **share),
        comparison("b", Verdict.SLOWER, None, None, None, **share),
        comparison("c", Verdict.SLOWER),
        comparison("d", Verdict.FASTER),
    )
    document = build_document(result)
    assert document.tally == (
        (Verdict.FASTER, "faster", 1),
        (Verdict.SLOWER, "fewer succeed", 2),
        (Verdict.SLOWER, "slower", 1),
    )
    assert "fewer succeed: 2 · ✗ slower: 1" in markdown_text(document)
    assert '<b>2</b> <span aria-hidden="true">✗</span> fewer succeed' in html_page(document)
