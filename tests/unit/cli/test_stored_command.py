"""The command that made a run, as it is stored."""

import pytest

from uncork.cli.places import redacted_command


@pytest.mark.parametrize("words", [
    ["--dsn", "postgresql://me:hush@db/x"],
    ["--dsn=postgresql://me:hush@db/x"],
    ["-dpostgres://me:hush@db/x"],
    ["--dsn", "host=db password=hush"],
    ["--dsn=host=db password='hush hush'"],
    ["postgresql://db/x?password=hush&sslpassword=hush"],
])  # fmt: skip
def test_the_command_that_repeats_a_load_holds_no_password(words):
    command = redacted_command(["load", "sql", *words])
    assert command.startswith("uncork load sql ")
    assert "hush" not in command
    assert "db" in command
