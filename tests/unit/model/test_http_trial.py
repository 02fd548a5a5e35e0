"""Texts with braces, and answers that differ."""

from __future__ import annotations

import json

import pytest

from uncork.model.http_trial import HttpAnswer, answers_differ, fill, names_in_braces


def answer(body, status=200):
    text = body if isinstance(body, str) else None
    data = body if text is not None else json.dumps(body)
    form = None if text is not None else json.dumps(body, sort_keys=True)
    return HttpAnswer("GET /a", status, form, data, len(data))


def test_names_stand_in_braces_and_other_braces_are_text():
    text = '/items/{id}?q={word}&json={"a": {}, "b": {{id}}}'
    assert names_in_braces(text) == {"id", "word"}
    assert fill(text, {"id": "7", "word": "x"}) == '/items/7?q=x&json={"a": {}, "b": {id}}}'
    kept = fill(text, {"word": "{id}"}, last=False)
    assert kept == '/items/{id}?q={{id}&json={"a": {}, "b": {{id}}}'
    assert fill(kept, {"id": "7"}) == '/items/7?q={id}&json={"a": {}, "b": {id}}}'


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        ({"a": 1, "b": [1, {"c": 2}]}, {"b": [1, {"c": 2}], "a": 1}, None),
        ({"a": 1}, {"a": 2}, "GET /a: /a is 2 where the baseline has 1"),
        ({"a": [1, 2]}, {"a": [2, 1]}, "GET /a: /a/0 is 2 where the baseline has 1"),
        ({"a": [1, 2]}, {"a": [1]}, "GET /a: /a has 1 element where the baseline's has 2"),
        ({"a": 1, "b": 2}, {"a": 1}, "GET /a: /b is missing"),
        ({"a": 1}, {"a": 1, "b": 2}, "GET /a: /b is missing in the baseline's"),
        ([1], {"a": 1}, 'GET /a: the body is {"a": 1} where the baseline has [1]'),
        ({"a": 1}, {"a": 1.0}, "GET /a: /a is 1.0 where the baseline has 1"),
        ({"a": True}, {"a": 1}, "GET /a: /a is 1 where the baseline has true"),
        ("plain", "plain", None),
        ("plain", "other text", "GET /a: a different body: 10 bytes where the baseline's has 5"),
        ({"a": 1}, "plain", "GET /a: the body is no JSON where the baseline's is JSON"),
    ],
)
def test_answers_are_compared_as_json_and_the_first_place_is_told(expected, found, told):
    assert answers_differ([answer(expected)], [answer(found)]) == told


def test_the_first_request_that_differs_is_told():
    same, other = answer({"a": 1}), answer({"a": 1}, status=404)
    assert answers_differ([same, same], [same, other]) == (
        "GET /a: status 404 where the baseline answers 200"
    )
