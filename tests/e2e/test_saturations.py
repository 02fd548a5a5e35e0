"""What gives out is named: the saturations of the benchmark that need no free machine, on real servers.

The others, which need one, are in `bench/saturations.py` too, with how often each was named rightly.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("load"), pytest.mark.thorough]
SCRIPT = Path(__file__).parents[2] / "bench" / "saturations.py"


@pytest.mark.parametrize(
    "name",
    [
        "quota",
        "pool",
        "locks",
        "connection limit",
        "file descriptors",
        "ephemeral ports",
        "generator",
        "sleeping service",
    ],
)
def test_what_was_made_scarce_is_named_first(name):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--only", name, "--json"],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.stdout, done.stderr
    (outcome,) = json.loads(done.stdout)
    if outcome["skipped"]:
        pytest.skip(outcome["skipped"])
    assert done.returncode == 0, outcome
    # Where other programs fill the machine, it is what is scarce; the script tries again, and then says so.
    assert outcome["named"] in (outcome["expected"], "machine cpu"), outcome
    assert outcome["expected"] == "none" or outcome["sentence"]
