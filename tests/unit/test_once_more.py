"""What CI does with a few tests that failed: they run once more, by themselves."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "once_more.py"
TESTS = """
from pathlib import Path
import pytest

def test_that_fails_once():
    first = not Path("been").exists()
    Path("been").touch()
    assert not first

@pytest.mark.parametrize("number", range({always}))
def test_that_always_fails(number):
    assert not Path("been").exists() or number < 0

def test_that_passes():
    Path("passed").open("a").write("x")
"""


@pytest.fixture
def failed(tmp_path):
    def run(always):
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "test_some.py").write_text(TESTS.format(always=always))
        plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:xdist"]
        subprocess.run(plain, cwd=tmp_path, capture_output=True, check=False)
        again = subprocess.run(
            [sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        return again.returncode, again.stdout, (tmp_path / "passed").read_text()

    return run


def test_what_failed_by_chance_passes_alone_and_is_named(failed):
    status, said, passed = failed(0)
    assert status == 0
    assert (
        said.splitlines()[-1] == "failed beside other tests, passed alone: test_some.py::test_that_fails_once"
    )
    assert passed == "x"  # what had passed is not run again


def test_what_fails_alone_too_fails(failed):
    status, said, _ = failed(2)
    assert status == 1
    assert "failed beside other tests, failed alone: " in said


def test_many_failures_are_no_chance(failed):
    status, said, passed = failed(3)
    assert (status, passed) == (1, "x")
    assert said == "4 tests failed; only up to 3 are run once more\n"


def test_without_a_failed_test_of_python_something_else_has_failed(tmp_path):
    done = subprocess.run([sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == "no test of Python is known to have failed, so there is none to run once more\n"
