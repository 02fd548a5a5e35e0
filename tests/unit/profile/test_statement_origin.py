"""Which route a statement's comment names."""

import pytest

from uncork.profile.statement_origin import origin


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("db_driver='psycopg',route='%2Forders%2F%7Bid%7D'", "/orders/{id}"),
        ("action='index',controller='orders',framework='rails'", "orders#index"),
        ("application:Shop,controller:orders,action:show", "orders#show"),
        ("traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01'", None),
        ("action='%2Fa%2Fb'", "/a/b"),
        ("just a remark", None),
        ("see: the manual, chapter 3", None),
        ("route=''", None),
        ("", None),
        (None, None),
    ],
)
def test_the_route_of_a_comment(comment, found):
    assert origin(comment) == found


def test_a_very_long_route_is_cut():
    assert len(origin(f"route='{'x' * 500}'")) == 120


def test_paths_of_requests_count_unless_values_are_left_out():
    assert origin("path='%2Forders%2F17'") == "/orders/17"
    assert origin("path='%2Forders%2F17'", paths=False) is None
    comment = "path='%2Forders%2F17',route='%2Forders%2F%7Bid%7D'"
    assert origin(comment, paths=False) == "/orders/{id}"
