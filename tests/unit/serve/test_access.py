import pytest

from uncork.serve import access


@pytest.mark.parametrize(("host", "ours"), [
    ("localhost:8675", True),
    ("bench.example.org", True),
    ("BENCH.example.org.:80", True),
    ("192.0.2.7:8675", True),
    ("[2001:db8::1]:8675", True),
    ("evil.example", False),
    ("bench.example.org.evil.example", False),
    ("192.0.2.7.evil.example", False),
    ("localhost:8675@evil.example", False),
    ("", False),
    ("localhost\n", False),
])  # fmt: skip
def test_a_host_is_ours_by_address_or_by_a_name_given(host, ours):
    assert access.host_is_ours(host, frozenset({"bench.example.org"})) is ours


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
