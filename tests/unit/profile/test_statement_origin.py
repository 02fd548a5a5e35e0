"""Which route a statement's comment names."""

from fakes.goldens import compare_answers
from uncork.profile.statement_origin import origin


def test_the_route_of_a_comment():
    compare_answers("profile/origins", origin)
    assert origin("") is origin(None) is None


def test_a_very_long_route_is_cut():
    assert len(origin(f"route='{'x' * 500}'")) == 120


def test_paths_of_requests_count_unless_values_are_left_out():
    assert origin("path='%2Forders%2F17'") == "/orders/17"
    assert origin("path='%2Forders%2F17'", paths=False) is None
    comment = "path='%2Forders%2F17',route='%2Forders%2F%7Bid%7D'"
    assert origin(comment, paths=False) == "/orders/{id}"
