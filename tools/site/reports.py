"""Make the reports that the site shows, with real servers: ``python tools/site/reports.py``.

Each is the page that a command writes, in ``build/site/reports``. All together take about half an hour; a
page that is there already is kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

from build import REPORTS, ROOT

CASES: Final = ("time-zones", "cluster-names", "message-archive", "clair", "analysis-api")
VERDICTS: Final = (3, 4)
"""Exit statuses of results that are not what was hoped for."""
_LOG: Final = ROOT / "tests" / "fixtures" / "logs" / "autoexplain.stderr.log.gz"


def main() -> int:
    """Make the pages that are missing; return 1 if a command failed."""
    parser = argparse.ArgumentParser(description="Make the reports that the site shows.")
    parser.add_argument("--only", default="", help="pages whose names have these words in them")
    parser.add_argument("--budget", default="4min", help="longest time of each case")
    options = parser.parse_args()
    REPORTS.mkdir(parents=True, exist_ok=True)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, words in _commands(options.budget):
            page = REPORTS / f"{name}.html"
            if options.only not in name or page.exists():
                continue
            print(f"{name}: uncork {' '.join(words)}", flush=True)
            runs, html = ["--runs", f"{folder}/runs"], ["--html", str(page)]
            written = ["report", "last", *runs, *html]
            commands = [[*words, *runs], written] if words[0] == "case" else [[*words, *runs, *html]]
            if not all(_uncork(one, folder) for one in commands):
                page.unlink(missing_ok=True)
            failed |= not page.exists()
    return int(failed)


def _uncork(words: Sequence[str], folder: str) -> bool:
    """Execute a command of uncork; return whether it has a result."""
    done = subprocess.run([sys.executable, "-m", "uncork", *words], cwd=folder, check=False)
    return done.returncode in (0, *VERDICTS)


def _commands(budget: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each page, and the command that writes it."""
    yield "cure-of-a-shop", ["demo"]
    yield "load-of-a-server", ["load", "sql", "--embedded", "-s", "10", "-c", "4", "-T", "20"]
    yield "log-with-plans", ["profile", "logs", str(_LOG)]
    for case in CASES:
        yield f"case-{case}", ["case", "run", case, "--budget", budget]


if __name__ == "__main__":
    raise SystemExit(main())
