"""`uncork demo` as a new user runs it, until its measurements; the whole demo takes two minutes."""

import os
import signal

import pytest

from uncork.store.layout import read_manifest

pytestmark = pytest.mark.postgres


def test_the_demo_finds_both_missing_indexes_and_ctrl_c_keeps_its_report(uncork):
    process = uncork.start("demo")
    said = "".join(uncork.wait_for(process, "finding 1 of 2"))
    assert "the captured workload is" in said
    os.kill(process.pid, signal.SIGINT)
    shown, told = process.communicate(timeout=60)
    assert process.returncode == 130, told  # the fixture checks that no server is left
    assert "Traceback" not in told
    kinds = {read_manifest(one).kind: one for one in uncork.runs}
    assert kinds.keys() == {"database", "cure"}
    page = kinds["cure"] / "report.html"
    assert f"report: {page}" in shown
    text = page.read_text()
    assert "orders has no index on customer_id" in text
    assert "order_lines has no index on order_id" in text
