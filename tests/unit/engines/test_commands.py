"""Commands of metrics: what they get, what they return, and how each failure is reported."""

import pytest

from uncork.engines.services.local import last_line_of
from uncork.errors import SetupError
from uncork.model.server import Target

TARGET = Target(
    "shop", {"host": "/run/pg", "port": 5433, "user": "me", "password": "hush", "database": "shop"}
)
SECOND = 10**9


def printed(script, *, timeout_ns=20 * SECOND, target=None, files=None):
    files = {"measure.py": script, **(files or {})}
    return last_line_of(
        ["{python}", "measure.py", "{database_name}"],
        files=files,
        environment={"VARIANT": "two"},
        target=target,
        timeout_ns=timeout_ns,
    )


def test_the_last_line_that_is_not_empty_counts():
    assert printed("print('reading'); print(' 7.5 '); print()") == "7.5"


def test_a_command_knows_its_variant_and_its_database():
    script = "import os, sys; print(os.environ['VARIANT'], sys.argv[1], os.environ['DATABASE_URL'][:10])"
    assert printed(script, target=TARGET) == "two shop postgresql"


@pytest.mark.parametrize(("script", "said"), [
    ("", "printed nothing; its last line must be a number"),
    ("import sys; sys.exit('no table; hush')", r"ended with status 1: no table; \*\*\*"),
    ("raise SystemExit(3)", "ended with status 3: it printed no reason"),
])  # fmt: skip
def test_a_command_that_fails_is_one_message(script, said):
    with pytest.raises(SetupError, match=said):
        printed(script, target=TARGET)


def test_a_command_that_does_not_end_is_ended():
    with pytest.raises(SetupError, match="took longer than 300 ms and was ended; raise its timeout"):
        printed("import time; time.sleep(60)", timeout_ns=SECOND * 3 // 10)


def test_a_missing_program_and_a_file_elsewhere_are_refused():
    with pytest.raises(SetupError, match="no-such-program cannot be started: No such file"):
        last_line_of(["no-such-program"], files={}, environment={}, target=None, timeout_ns=SECOND)
    with pytest.raises(SetupError, match="must be in the folder of the experiment file"):
        printed("print(1)", files={"../x": ""})
