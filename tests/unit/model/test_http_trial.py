"""Texts with braces."""

from uncork.model.http_trial import fill, names_in_braces


def test_names_stand_in_braces_and_other_braces_are_text():
    text = '/items/{id}?q={word}&json={"a": {}, "b": {{id}}}'
    assert names_in_braces(text) == {"id", "word"}
    assert fill(text, {"id": "7", "word": "x"}) == '/items/7?q=x&json={"a": {}, "b": {id}}}'
    kept = fill(text, {"word": "{id}"}, last=False)
    assert kept == '/items/{id}?q={{id}&json={"a": {}, "b": {{id}}}'
    assert fill(kept, {"id": "7"}) == '/items/7?q={id}&json={"a": {}, "b": {id}}}'
