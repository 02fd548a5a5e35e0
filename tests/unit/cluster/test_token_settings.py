"""uncork attaches only to clusters that require a token."""

import pytest

from uncork.cluster.attach import token_settings
from uncork.errors import UsageError


@pytest.mark.parametrize("name", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "home"])
def test_a_token_of_any_source_is_used(tmp_path, name):
    file = tmp_path / ".ray" / "auth_token"
    file.parent.mkdir()
    file.write_text("x" * 64)
    home = tmp_path if name == "home" else tmp_path / "nobody"
    environment = {} if name == "home" else {name: str(file)}
    assert token_settings(environment, home) == {"RAY_AUTH_MODE": "token"}


@pytest.mark.parametrize(("environment", "message"), [
    ({}, "this machine has no token: start Ray on all nodes with RAY_AUTH_MODE=token"),
    ({"RAY_AUTH_TOKEN_PATH": "/nowhere/token"}, "there is no file /nowhere/token"),
    ({"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": "x"}, "RAY_AUTH_MODE is disabled"),
])  # fmt: skip
def test_without_a_token_the_way_to_set_one_is_named(tmp_path, environment, message):
    with pytest.raises(UsageError, match=message):
        token_settings(environment, tmp_path)
