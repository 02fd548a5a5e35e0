"""Options that `uncork load sql` and `uncork load http` share."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from uncork.requests.option import Opt, duration
from uncork.requests.shared_options import RUNS_HELP

WHAT, HOW, WHEN = "What to send", "How to send it", "When and how long"
WATCH = "What to watch"
SWEEP, OUTPUT, INITIALIZE = "Load sweep", "Output", "Initialization (-i), as in pgbench -i"


_watch = partial(Opt, panel=WATCH)
_sweep = partial(Opt, panel=SWEEP)
_output = partial(Opt, panel=OUTPUT)

Advise = Annotated[
    bool,
    _watch(
        "--advise",
        "Afterwards, send the load for 5 s more while uncork watches the database, and name what is wrong "
        "with it and what to change.",
    ),
]
WarmUp = Annotated[
    int | None,
    Opt(
        "--warmup, --warm-up-time TIME",
        "First send the load for TIME without counting it.",
        duration(),
        panel=WHEN,
        python='Time to send the load before it is measured, such as ``"5s"``; nothing of that is counted.',
    ),
]
Objective = Annotated[
    str | None,
    _sweep("--objective TEXT", 'Find the highest load that meets these limits: "p99<250ms, errors<0.1%".'),
]
Verify = Annotated[
    bool,
    _sweep(
        "--verify",
        "After the sweep, send 70 % of the knee's throughput as arrivals that do not wait, for five load "
        "steps, and report whether the server sustains it.",
    ),
]
SweepBudget = Annotated[
    int | None, _sweep("--budget TIME", "Maximum duration of the sweep. Default: 3min.", duration())
]
ProgressEvery = Annotated[
    int | None, _output("-P, --progress SECONDS", "Report progress every SECONDS seconds.")
]
AsJson = Annotated[bool, _output("--json", "Print the result as JSON.")]
GoBench = Annotated[bool, _output("--go-bench", "Print the result in the format that benchstat reads.")]
Html = Annotated[Path | None, _output("--html FILE", "Write the HTML report to FILE.")]
HdrLog = Annotated[
    Path | None, _output("--hdr-log FILE", "Write one histogram per second in HdrHistogram's log format.")
]
RunsOutput = Annotated[
    Path, Opt("--runs DIR", RUNS_HELP, panel=OUTPUT, envvar="UNCORK_RUNS", show_default=True)
]
