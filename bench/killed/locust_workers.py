"""What Locust's worker processes do: are percentiles merged without loss, how far apart are starts, a kill.

    python -m bench.killed.locust_workers --locust PROGRAM [--rounds 5]

Needs Locust in an environment of its own, and nginx. Each round starts ``locust --processes 4`` against nginx
on loopback. Each worker writes down when its first request began, and the time of each response; these are
compared with the summary that Locust prints. In the last round, one worker is killed (SIGKILL) after 3 s.
"""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

from bench.killed.peer_rounds import run_rounds

from uncork.spawn.reaper import processes

_FILE: Final = """
import os, time
from pathlib import Path
from locust import FastHttpUser, constant_throughput, events, task

times, begun = [], []

@events.request.add_listener
def note(response_time, start_time=None, **_):
    begun.append(time.time() - response_time / 1e3)
    times.append(response_time)
    if len(times) % 50 == 1:
        place = Path(os.environ["TIMES"]) / f"{os.getpid()}.txt"
        place.write_text("\\n".join(map(repr, [begun[0], *times])))

@events.quitting.add_listener
def write(**_):
    if times:
        place = Path(os.environ["TIMES"]) / f"{os.getpid()}.txt"
        place.write_text("\\n".join(map(repr, [begun[0], *times])))

class Visitor(FastHttpUser):
    wait_time = constant_throughput(10)

    @task
    def look(self):
        self.client.get("/small.txt")
"""
_KILLED_AFTER_S: Final = 3.0


def visited(locust: Path, folder: Path, url: str, kill: bool) -> tuple[float, str]:
    """Send a load of 8 s; return how far apart the first requests were (ms), and what was found."""
    times = folder / "times"
    times.mkdir(parents=True)
    (folder / "locustfile.py").write_text(_FILE)
    command = [locust, "-f", folder / "locustfile.py", "--headless", "--processes", 4, "-u", 40, "-r", 1000]
    command += ["-t", "8s", "--host", url, "--csv", folder / "found", "--only-summary"]
    environment = {**os.environ, "TIMES": str(times)}
    with subprocess.Popen(
        list(map(str, command)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        if kill:
            time.sleep(_KILLED_AFTER_S)
            worker = next(one.pid for one in processes() if one.parent == running.pid)
            os.kill(worker, signal.SIGKILL)
        output, _ = running.communicate(timeout=60)
    noted = [[float(line) for line in one.read_text().splitlines()] for one in times.iterdir()]
    exact = sorted(value for first, *rest in noted for value in rest)
    apart = (max(one[0] for one in noted) - min(one[0] for one in noted)) * 1e3
    with (folder / "found_stats.csv").open() as lines:
        total = next(row for row in csv.DictReader(lines) if row["Name"] == "Aggregated")
    pairs = [
        f"{name} {total[name]} ms, exactly {exact[min(len(exact) - 1, int(part * len(exact)))]:.3f} ms"
        for name, part in (("50%", 0.50), ("95%", 0.95), ("99%", 0.99))
    ]
    said = [line for line in output.splitlines() if "missing" in line] if kill else []
    counted = f"{total['Request Count']} requests in the summary, {len(exact)} noted by workers"
    found = [
        counted,
        *pairs,
        *said,
        f"exit status {running.returncode}",
    ]
    return apart, "; ".join(found)


if __name__ == "__main__":
    run_rounds(__doc__ or "", "locust", visited)
