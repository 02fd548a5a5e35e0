"""Answers that differ: where, how that is told, and the lines of a file that allow it."""

import json

import pytest

from uncork.model.http_trial import HttpAnswer
from uncork.model.services.answers import AnswerRules, allowing, answer_differences

NONE = AnswerRules()
UUIDS = ("0190d8f1-7a7f-7cc4-a7bb-0b9c4a3d1f5e", "e7b1c2d3-1a2b-4c3d-8e4f-5a6b7c8d9e0f")


def answer(body, status=200):
    text = body if isinstance(body, str) else None
    data = body if text is not None else json.dumps(body)
    form = None if text is not None else json.dumps(body, sort_keys=True)
    return HttpAnswer("GET /a", status, form, data, len(data), text)


def told(expected, found, rules=NONE):
    return [one.beside("the baseline") for one in answer_differences([expected], [found], rules)]


@pytest.mark.parametrize(("expected", "found", "sentences"), [
    ({"a": 1, "b": [1, {"c": 2}]}, {"b": [1, {"c": 2}], "a": 1}, []),
    ({"a": 1}, {"a": 2}, ["/a is 2 where the baseline has 1"]),
    ({"a": [1, 2]}, {"a": [2, 1]}, ["/a has the elements of the baseline in another order"]),
    ({"a": [1, 2]}, {"a": [1]}, ["/a has 1 element where the baseline's has 2"]),
    ({"a": 1, "b": 2}, {"a": 1}, ["/b is missing"]),
    ({"a": 1}, {"a": 1, "b": 2}, ["/b is missing in the baseline's"]),
    ([1], {"a": 1}, ['the body is {"a": 1} where the baseline has [1]']),
    ({"a": 1}, {"a": 1.0}, ["/a is 1.0 where the baseline has 1"]),
    ({"a": True}, {"a": 1}, ["/a is 1 where the baseline has true"]),
    ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, ["/a~1b/~0 is 2 where the baseline has 1"]),
    ("plain", "plain", []),
    ("one\ntwo", "one\n2", ['line 2 is "2" where the baseline has "two"']),
    ("one\n", "one\r\n", ["a text with other line ends where the baseline has a text"]),
    ({"a": 1}, "plain", ["a body that is not JSON where the baseline has a body that is JSON"]),
])  # fmt: skip
def test_answers_are_compared_as_json_and_each_place_is_told(expected, found, sentences):
    assert told(answer(expected), answer(found)) == [f"GET /a: {one}" for one in sentences]


def test_a_status_and_a_body_without_text_are_told_whole():
    assert told(answer({"a": 1}), answer({"a": 2}, status=404)) == [
        "GET /a: status 404 where the baseline has status 200"
    ]
    images = [HttpAnswer("GET /a", 200, None, digest, size) for digest, size in (("x", 1), ("y", 2))]
    assert told(*images) == ["GET /a: a body of 2 bytes where the baseline has a body of 1 byte"]
    assert allowing([images[0]], [images[1]], NONE) is None


def test_objects_in_another_order_are_paired_by_what_they_share():
    first = {"items": [{"id": 1, "age": 5}, {"id": 2, "age": 7}]}
    second = {"items": [{"id": 2, "age": 8}, {"id": 1, "age": 6}]}
    assert told(answer(first), answer(second)) == [
        "GET /a: /items has the elements of the baseline in another order",
        "GET /a: /items/0/age is 6 where the baseline has 5",
        "GET /a: /items/1/age is 8 where the baseline has 7",
    ]
    swapped = {"items": [{"id": 2, "age": 5}, {"id": 1, "age": 7}]}
    assert told(answer(first), answer(swapped)) == [
        "GET /a: /items/0/id is 2 where the baseline has 1",
        "GET /a: /items/1/id is 1 where the baseline has 2",
    ], "other rows, although each key has the same values"


@pytest.mark.parametrize(
    ("first", "second", "lines"),
    [
        (
            {"at": "2026-06-01T10:00:00Z", "items": [{"id": 1, "age": 5}]},
            {"at": "2026-06-01T10:00:01Z", "items": [{"id": 1, "age": 6}]},
            'ignore = ["/at", "/items/*/age"]',
        ),
        ({"items": [1, 2, 3]}, {"items": [3, 1, 2]}, 'order_free = ["/items"]'),
        ([{"x": [1, 2]}, {"x": [3]}], [{"x": [3]}, {"x": [2, 1]}], 'order_free = ["", "/*/x"]'),
        (
            {"items": [{"id": 1, "n": 1}, {"id": 2, "n": 2}]},
            {"items": [{"id": 2, "n": 3}, {"id": 1, "n": 4}]},
            'ignore = ["/items/*/n"] and order_free = ["/items"]',
        ),
        ({"by": {"a1": 1, "b2": 2}}, {"by": {"c3": 1, "d4": 2}}, 'ignore = ["/by/*"]'),
        ({"list": [1]}, {"list": [1, 2]}, 'ignore = ["/list"]'),
        (
            '<p>\n<input name="csrf" value="a81f">\n<i>took 3 ms</i>',
            '<p>\n<input name="csrf" value="71ff">\n<i>took 14 ms</i>',
            """ignore_text = [' name="csrf" value=".*?">', "<i>took .*? ms</i>"]""",
        ),
        ("a=1 b=2", "a=3 b=4", 'ignore_text = ["a=.*"]'),
    ],
)
def test_the_lines_allow_what_differs(first, second, lines):
    pair = [answer(first)], [answer(second)]
    rules = allowing(*pair, NONE)
    assert NONE.lines(rules) == lines
    assert answer_differences(*pair, rules) == []


def test_rules_of_the_file_are_kept_and_extended():
    rules = AnswerRules(ignore=("/id",))
    first, second = answer({"id": 1, "x": 1}), answer({"id": 2, "x": 2})
    assert told(first, second, rules) == ["GET /a: /x is 2 where the baseline has 1"]
    wider = allowing([first], [second], rules)
    assert rules.lines(wider) == 'ignore = ["/id", "/x"]'


@pytest.mark.parametrize(("first", "second"), [
    ([1], [2, 3]),
    (1, 2),
    ("one line", "two\nlines"),
    ("other", "words"),
    (answer({}), answer({}, status=503)),
])  # fmt: skip
def test_what_no_line_can_allow(first, second):
    pair = [one if isinstance(one, HttpAnswer) else answer(one) for one in (first, second)]
    if first == [1]:
        assert NONE.lines(allowing([pair[0]], [pair[1]], NONE)) == 'ignore = ["/*"]'
    else:
        assert allowing([pair[0]], [pair[1]], NONE) is None


def test_an_ignored_place_matches_one_step_for_each_star():
    rules = AnswerRules(ignore=("/items/*/age",))
    first = {"items": [{"age": 1, "in": {"age": 1}}], "age": 1}
    second = {"items": [{"age": 2, "in": {"age": 2}}], "age": 2}
    assert told(answer(first), answer(second), rules) == [
        "GET /a: /age is 2 where the baseline has 1",
        "GET /a: /items/0/in/age is 2 where the baseline has 1",
    ]


@pytest.mark.parametrize(("first", "second", "generated"), [
    (*UUIDS, True),
    ("2026-06-01 10:00:00.123+02", "2026-06-01 10:00:01.5+02", True),
    ("2026-06-01", "2026-06-02", False),
    ("open", "paid", False),
    (UUIDS[0], "none", False),
])  # fmt: skip
def test_moments_and_uuids_are_known(first, second, generated):
    (one,) = answer_differences([answer({"a": first})], [answer({"a": second})], NONE)
    assert one.generated is generated


def test_both_answers_of_one_service_are_told():
    first = {"a": 1, "b": [1, 2], "c": [1], "d": 1}
    second = {"a": 2, "b": [2, 1], "c": [1, 2], "e": 1}
    assert [one.twice() for one in answer_differences([answer(first)], [answer(second)], NONE)] == [
        "GET /a: /a is 1, then 2",
        "GET /a: /b has the same elements in another order the second time",
        "GET /a: /c has 1 element, then 2",
        "GET /a: /d is present only the first time",
        "GET /a: /e is present only the second time",
    ]
    (one,) = answer_differences([answer({})], [answer({}, status=429)], NONE)
    assert one.twice() == "GET /a: status 200 first, then status 429"
