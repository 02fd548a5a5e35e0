"""Run tests that failed beside others once more, by themselves: what CI does before it says that they fail.

Tests measure real servers on a machine of which other tests take the other half. A few failures are looked
at again, as CPython's `regrtest --rerun` does it; more are not chance. What passes by itself is named at the
end: it is to be mended, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
MOST = 3


def once_more(folder: Path) -> int:
    """Repeat what failed in the checkout `folder`; return 0 if all of it passes by itself."""
    try:
        failed = sorted(json.loads((folder / FAILED).read_text()))
    except FileNotFoundError:
        print("no test of Python is known to have failed, so there is none to run once more")
        return 1
    if not 0 < len(failed) <= MOST:
        print(f"{len(failed)} tests failed; only up to {MOST} are run once more")
        return 1
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:randomly", *failed], cwd=folder, check=False
    )
    said = "passed" if done.returncode == 0 else "failed"
    print(f"failed beside other tests, {said} alone: {', '.join(failed)}")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(once_more(Path.cwd()))
