"""A guard on a real server: an unchanged plan with a changed statistic is told apart from another plan."""

import json

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.thorough]

TURNOVER = '''
[experiment]
name = "turnover"
question = "Are orders read as before?"

[variants.now]
baseline = true
values = { also = "SELECT 1" }

[setup]
sql = """
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, total int NOT NULL);
INSERT INTO orders SELECT n, n % 500, n % 100 FROM generate_series(1, 5000) AS n;
CREATE INDEX orders_customer ON orders (customer);
:also
"""

[workloads.of_one]
sql = "SELECT sum(total) FROM orders WHERE customer = 7"
operations = 5

[workloads.by_total]
sql = "SELECT count(*) FROM orders WHERE total = 7"
operations = 5

[guard]
gates = ["plan unchanged"]

[stop]
budget = "120s"
'''
CHANGES = "DROP INDEX orders_customer; ALTER TABLE orders ALTER total SET STATISTICS 0"


def test_another_plan_breaks_its_gate_and_other_statistics_do_not(uncork):
    path = uncork.write(TURNOVER)
    done = uncork("guard", path, "--candidate", f"value=also:{CHANGES}", "--no-confirm")
    assert done.returncode == 3, done.stderr
    (kept,) = (folder / "guard.json" for folder in uncork.runs)
    result = json.loads(kept.read_text())
    assert {one["workload"]: one["outcome"] for one in result["checks"]} == {
        "of_one": "broken",
        "by_total": "kept",
    }
    assert {one["workload"]: one["kind"] for one in result["plans"]} == {
        "of_one": "changed",
        "by_total": "statistics",
    }
    text = " ".join(done.stdout.split())
    assert "Broken: the plan of of_one differs from that of the baseline (variant now)" in text
    assert (
        "The plan of by_total is unchanged, but its statistics differ: Seq Scan on orders is "
        "expected to return" in text
    )
    assert "+  Seq Scan on orders" in done.stdout
