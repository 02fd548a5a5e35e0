"""What k6's execution segments do: are percentiles merged, how far apart are starts, a kill.

    python -m bench.killed.k6_segments --k6 PROGRAM [--rounds 5]

Needs k6 (``go install go.k6.io/k6@v1.8.1``) and nginx. Each round starts four processes at once, each with
a quarter of one load (``--execution-segment``), against nginx on loopback. Each writes a summary of its own,
and every request to a CSV file, from which the exact percentiles of the whole come. In the last round, one
process is killed (SIGKILL) after 3 s.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Final

from bench.killed.peer_rounds import run_rounds

_SCRIPT: Final = """
import http from "k6/http";
export const options = {
  summaryTrendStats: ["med", "p(95)", "p(99)", "count"],
  scenarios: { visit: { executor: "constant-arrival-rate", rate: 400, timeUnit: "1s", duration: "8s",
                        preAllocatedVUs: 40 } },
};
export default function () { http.get(__ENV.URL); }
"""
_PARTS: Final = 4
_KILLED_AFTER_S: Final = 3.0
_PERCENTILES: Final = {"med": 0.50, "p(95)": 0.95, "p(99)": 0.99}


def visited(k6: Path, folder: Path, url: str, kill: bool) -> tuple[float, str]:
    """Send a load of 8 s in parts; return how far apart the first requests were (ms), and what was found."""
    folder.mkdir()
    script = folder / "script.js"
    script.write_text(_SCRIPT)
    borders = ["0", *(f"{number}/{_PARTS}" for number in range(1, _PARTS)), "1"]
    running = []
    for low, high in pairwise(borders):
        part = folder / low.replace("/", "-")
        command = [k6, "run", "--quiet", "--no-usage-report", "--execution-segment", f"{low}:{high}"]
        command += ["--execution-segment-sequence", ",".join(borders), "--address", "127.0.0.1:0"]
        command += ["--summary-export", f"{part}.json", "--out", f"csv={part}.csv", script]
        environment = {**os.environ, "URL": f"{url}/small.txt", "K6_CSV_TIME_FORMAT": "unix_micro"}
        quiet = subprocess.DEVNULL
        running.append(
            subprocess.Popen([str(one) for one in command], env=environment, stdout=quiet, stderr=quiet)
        )
    if kill:
        time.sleep(_KILLED_AFTER_S)
        running[-1].kill()
    statuses = [one.wait(60) for one in running]
    begun, all_ms = [], []
    for path in sorted(folder.glob("*.csv")):
        times = []
        with path.open() as lines:
            for row in csv.DictReader(lines):
                if row["metric_name"] == "http_req_duration":
                    all_ms.append(float(row["metric_value"]))
                    times.append(float(row["timestamp"]) / 1e3 - float(row["metric_value"]))
        if times:
            begun.append(min(times))
    summaries = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    trends = [one["metrics"]["http_req_duration"] for one in summaries]
    counted = sum(round(one["metrics"]["http_reqs"]["count"]) for one in summaries)
    exact = sorted(all_ms)
    found = [f"{counted} requests in {len(summaries)} summaries, {len(exact)} in the files of requests"]
    for name, share in _PERCENTILES.items():
        parts = ", ".join(f"{one[name]:.2f}" for one in trends)
        whole = exact[min(len(exact) - 1, int(share * len(exact)))]
        found.append(f"{name} of the parts {parts} ms, of the whole {whole:.2f} ms")
    apart = max(begun) - min(begun)
    found.append(f"exit statuses {', '.join(map(str, statuses))}")
    return apart, "; ".join(found)


if __name__ == "__main__":
    run_rounds(__doc__ or "", "k6", visited)
