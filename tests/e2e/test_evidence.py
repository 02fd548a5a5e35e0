"""`evidence` in an experiment on a real server: who enters the kernel is named, and the page draws it."""

import json

import pytest

from uncork.workbench.overhead.observers import perf_trouble

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.thorough]

KERNEL = '''
[experiment]
name = "kernel"
question = "Does a function that enters the kernel once a row cost?"
evidence = ["waits", "cpu", "stacks", "syscalls"]

[variants.stat]
baseline = true
values = { body = "count((pg_stat_file('PG_VERSION')).size)" }

[variants.plain]
values = { body = "count(id::bigint)" }

[setup]
sql = """
CREATE TABLE t (id int PRIMARY KEY);
INSERT INTO t SELECT generate_series(1, 5000)
"""

[workloads.read]
sql = "SELECT :body FROM t"
operations = 5

[stop]
budget = "25s"
precision = "99%"
'''

TROUBLE = perf_trouble()
sees_stacks = pytest.mark.skipif(TROUBLE is not None, reason=str(TROUBLE))


def evidence_of(uncork):
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    return folder, {one["variant"]: one for one in result["evidence"]}, result


def test_user_and_kernel_time_and_waits_are_told_an_operation(uncork):
    path = uncork.write(KERNEL.replace('"stacks", "syscalls"', '"plans"'))
    done = uncork.briefly("run", path, seconds=1)
    assert done.returncode == 0, done.stderr
    _, found, _ = evidence_of(uncork)
    assert set(found) == {"stat", "plain"}
    assert found["stat"]["system_ns"] > 5 * found["plain"]["system_ns"]
    assert found["stat"]["waits"][0]["name"] == "CPU"
    assert not found["stat"]["stacks"] and not found["stat"]["calls"]


@sees_stacks
def test_who_enters_the_kernel_is_named_and_drawn(uncork):
    done = uncork.briefly("run", uncork.write(KERNEL), seconds=2)
    assert done.returncode == 0, done.stderr
    assert "collected evidence for stat on read" in done.stderr
    folder, found, result = evidence_of(uncork)
    (reason,) = (text for text in result["reasons"] if text.startswith("stat on read: the kernel takes"))
    assert "pg_stat_file" in reason
    calls = {one["name"]: one["operation_calls"] for one in found["stat"]["calls"]}
    most = max(calls, key=calls.__getitem__)
    assert "stat" in most and calls[most] == pytest.approx(5000, rel=0.35)
    page = (folder / "report.html").read_text()
    assert "What the server did" in page
    assert page.count('class="frames"') == 2, "the baseline's flame graph, and what the variant changed"
    asked = "SELECT variant, sum(value) AS value FROM stacks WHERE measure = 'cpu' GROUP BY ALL ORDER BY ALL"
    rows = [json.loads(row) for row in uncork("sql", "last", asked, "--json").stdout.splitlines()]
    assert [row["variant"] for row in rows] == ["plain", "stat"] and all(row["value"] > 5 for row in rows)
    (folder / "evidence" / "001" / "facts.json").write_text("{")
    broken = uncork("report", "last")
    assert broken.returncode != 0 and "damaged" in broken.stderr and "Traceback" not in broken.stderr
