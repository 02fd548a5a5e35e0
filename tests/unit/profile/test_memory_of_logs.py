"""The memory that reading logs takes is returned to the system, although nothing waits until it is freed."""

import subprocess
import sys

READ = """
import sys, time
from pathlib import Path
from uncork import _native
from uncork.profile.logs import LogRequest, core_request

def resident():
    for row in Path("/proc/self/status").read_text().splitlines():
        if row.startswith("VmRSS:"):
            return int(row.split()[1]) >> 10

profile = _native.read_logs(core_request(LogRequest((Path(sys.argv[1]),))))
full = resident()
del profile
until = time.monotonic() + 30
while (left := resident()) > full / 2 and time.monotonic() < until:
    time.sleep(0.01)
print(full, left)
"""
ENTRY = (
    "2026-11-28 08:00:{:02}.{:03} UTC [7] app@shop LOG:  duration: 0.{:03} ms  statement: "
    "SELECT name_{} FROM items WHERE id = {}\n"
)


def test_what_was_gathered_is_returned_to_the_system(tmp_path):
    path = tmp_path / "server.log"
    path.write_text(
        "".join(ENTRY.format(at // 1000, at % 1000, at % 997 + 1, at, at) for at in range(20_000))
    )
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    full, left = map(int, done.stdout.split())
    assert full > 60  # MiB: some 20 are Python's
    assert left <= full / 2
