"""Test uncork on a real server: how often it raises a false alarm, and whether it finds a planted 5 %.

Runs N small experiments, each on its own PostgreSQL and with its own seed. The variant `same` equals the
baseline; the variant `planted` reads 5 % more rows, so it does 5 % more work by construction. Prints every
interval, then the counts. Usage: alarms.py [N] [seconds for each].
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path

from uncork.analysis.experiment.result import build_result
from uncork.model.verdict import Verdict
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, file_source
from uncork.workbench.experiment.session import new_run

EXPERIMENT = '''
[experiment]
name = "alarms"
question = "Does the method cry wolf?"

[variants.base]
baseline = true
values = { last = "20000" }

[variants.same]
values = { last = "20000" }

[variants.planted]
values = { last = "21000" }

[setup]
sql = """
CREATE TABLE item (id integer PRIMARY KEY, price integer NOT NULL);
INSERT INTO item SELECT n, n % 997 FROM generate_series(1, 50000) AS n;
"""

[workloads.sum]
sql = "SELECT sum(price) FROM item WHERE id <= :last"
duration = "40ms"
state = "keep"
answer = "may differ"

[server.settings]
shared_buffers = "64MB"
max_parallel_workers_per_gather = 0

[stop]
blocks = 4
precision = "1.5%"
practical = "1%"
budget = "60s"
'''


def main(count: int, seconds: int) -> int:
    """Run the experiments; return the exit status."""
    verdicts: Counter[tuple[str, str]] = Counter()
    covered = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "alarms.toml"
        path.write_text(EXPERIMENT)
        for seed in range(1, count + 1):
            source = file_source(path, Options(seed=seed, budget_ns=seconds * 10**9))
            session = new_run(folder / "runs", source, ServerChoice())
            with closing(session.events()) as events:
                for _ in events:
                    pass
            for comparison in build_result(session.folder).comparisons:
                low, high = comparison.low or 0.0, comparison.high or float("inf")
                covered += comparison.variant == "same" and low <= 1.0 <= high
                verdicts[comparison.variant, comparison.verdict] += 1
                print(
                    f"seed {seed} {comparison.variant}: {comparison.ratio:.4f} [{low:.4f}, {high:.4f}] "
                    f"{comparison.rounds} rounds: {comparison.verdict}",
                    flush=True,
                )
    alarms = verdicts["same", Verdict.FASTER] + verdicts["same", Verdict.SLOWER]
    print(f"nothing differs: {alarms} false alarms in {count} experiments; {covered} intervals hold 1")
    print(f"5 % planted: {verdicts['planted', Verdict.SLOWER]} of {count} called slower")
    return 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(numbers + [30, 20][len(numbers) :])))
