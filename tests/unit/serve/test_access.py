import pytest

from fakes.goldens import compare_answers
from uncork.serve import access


def test_a_host_is_ours_by_address_or_by_a_name_given():
    compare_answers(
        "answers/serve/a_host_is_ours_by_address_or_by_a_name_given",
        lambda host: access.host_is_ours(host, frozenset({"bench.example.org"})),
    )


@pytest.mark.parametrize(("headers", "cross"), [
    ({}, False),
    ({"host": "a:1", "origin": "http://a:1"}, False),
    ({"host": "a:1", "origin": "http://a:2"}, True),
    ({"host": "a:1", "origin": "null"}, True),
    ({"sec-fetch-site": "same-origin"}, False),
    ({"sec-fetch-site": "none"}, False),
    ({"sec-fetch-site": "same-site"}, True),
])  # fmt: skip
def test_a_form_of_another_site_is_known_by_what_the_browser_tells(headers, cross):
    assert access.is_cross_site(headers) is cross


def test_keys_differ_by_visitor_and_tell_nothing():
    assert access.form_key(b"s", "a") != access.form_key(b"s", "b") != access.form_key(b"t", "b")
    assert access.same("ä", "ä") and not access.same("a", "")
    assert "token" not in access.signed_in_key("token")
    assert [access.bearer(text) for text in ("Bearer x ", "bearer x", "Basic x", "")] == ["x", "x", "", ""]
