"""Print how many seconds the fastest of several readings of a log takes: ``read_time.py LOG``."""

import sys
import time
from pathlib import Path

from uncork import _native
from uncork.profile.logs import LogRequest, core_request

READINGS = 3


def main() -> None:
    """Read the log repeatedly."""
    request = core_request(LogRequest((Path(sys.argv[1]),)))
    taken = []
    for _ in range(READINGS):
        begun = time.perf_counter()
        _native.read_logs(request, None, None, None)
        taken.append(time.perf_counter() - begun)
    print(min(taken))


if __name__ == "__main__":
    main()
