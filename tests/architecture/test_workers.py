"""Several workers share the tests by groups: what a file's tests share is started once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ("tests/unit/stats/test_load.py", "tests/unit/stats/test_student.py")


def test_the_tests_of_a_file_run_in_one_worker():
    how = ("-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "-v", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *how, *FILES], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    ran = re.findall(r"\[(gw\d)\] .*PASSED (tests/\S+\.py)::", done.stdout)
    assert len(ran) > 20
    assert sorted({file for _, file in ran}) == sorted(FILES)
    assert len(set(ran)) == len(FILES)
