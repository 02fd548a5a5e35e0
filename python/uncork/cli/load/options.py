"""What the options of `uncork load sql` and of `uncork load http` have in common.

All values arrive as text, so that one place reads them and words what is wrong with them (`load_request` and
`http_request`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from uncork.cli import places

Text = str | None
Texts = list[str] | None

WHAT, HOW, WHEN = "What to send", "How to send it", "When and how long"
SWEEP, TELL = "Sweep over levels", "What to tell"


def option(*names: str, metavar: str, help: str, panel: str) -> Any:
    """Make an option that takes a value, and belongs under the heading `panel`."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, show_default=False)


def flag(*names: str, help: str, panel: str) -> Any:
    """Make an option without a value, which belongs under the heading `panel`."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False)


Objective = Annotated[
    Text,
    option(
        "--objective",
        metavar="TEXT",
        help='Find the highest load that holds it: "p99<250ms, errors<0.1%".',
        panel=SWEEP,
    ),
]
Budget = Annotated[
    Text, option("--budget", metavar="TIME", help="How long to sweep at most. Default: 3min.", panel=SWEEP)
]
Progress = Annotated[
    Text, option("-P", "--progress", metavar="SECONDS", help="Tell progress every so often.", panel=TELL)
]
AsJson = Annotated[bool, flag("--json", help="Print the result as JSON.", panel=TELL)]
GoBench = Annotated[bool, flag("--go-bench", help="Print the result as benchstat reads it.", panel=TELL)]
Html = Annotated[Path | None, option("--html", metavar="FILE", help="Write the HTML page here.", panel=TELL)]
HdrLog = Annotated[
    Path | None,
    option(
        "--hdr-log", metavar="FILE", help="Write histograms by second for HdrHistogram's tools.", panel=TELL
    ),
]
Runs = Annotated[
    Path,
    typer.Option(
        "--runs",
        metavar="DIR",
        envvar="UNCORK_RUNS",
        parser=places.place_of_runs,
        help=places.HELP,
        rich_help_panel=TELL,
    ),
]
