"""The options of `uncork profile logs`, `db` and `cpu`, and of `advise`, `capture`, `cure` and `demo`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import nextafter
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from uncork.model.results.stacks import ProfileFormat
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.requests.moments import time_of_day
from uncork.requests.option import (
    Location,
    Opt,
    choice,
    duration,
    name_pattern,
    number,
    opt,
    pair,
    size,
    whole,
)
from uncork.requests.shared_options import (
    AsJson,
    Full,
    Html,
    Markdown,
    Quiet,
    Runs,
    Top,
    WatchedServer,
)

_filter = partial(opt, panel="Filters")
_cure = partial(opt, panel="Copy and measurements")
_FORMATS: Final = get_args(ProfileFormat)
_TEN_S, _MINUTE, _EVERY = 10_000_000_000, 60_000_000_000, 5_000_000_000
_TEN_MINUTES: Final = 600_000_000_000
_DEMO: Final = 90_000_000_000
_DISK: Final = 20_000_000_000
_READ: Final = 100_000_000

WatchRate = Annotated[
    float,
    Opt(
        "--rate HZ",
        "Samples a second, 0.1 to 200. Default: 20.",
        number(nextafter(0.1, 0), 200, refusal="{option} {value:g}: give from 0.1 to 200 samples a second"),
    ),
]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Report where the time went, from PostgreSQL's logs: templates, applications, errors, locks, files.

    Reads stderr logs with any log_line_prefix, csvlog and jsonlog. The run is stored; `uncork
    report` shows it again.
    """

    files: list[Location] = opt(
        "FILES...",
        "Logs in the order they were written: files, globs, folders, s3://, gs://, az://, https:// and "
        "ssh:// addresses, or - for standard input; compressed files and archives work.",
        required=True,
    )
    prefix: str | None = opt("-p, --prefix TEXT", "The server's log_line_prefix. Default: detect it.")
    begin: str | None = opt(
        "-b, --begin TIME",
        "Read only entries at or after TIME, in UTC.",
        python='Read only entries at or after this time, in UTC: ``"2026-05-31 08:30"``.',
    )
    end: str | None = opt("-e, --end TIME", "Read only entries before TIME, in UTC.")
    server: list[tuple[str, str]] | None = opt(
        "--server NAME=PATTERN",
        "The logs that match PATTERN (a file, folder, glob or address) are of the server NAME. Sessions of "
        "different servers are never mixed; repeatable.",
        pair(
            "=",
            "--server {value}: write NAME=PATTERN, such as db1=/logs/db1/; NAME must not be empty, begin "
            "with ! or contain *",
            r"[^!*\s][^*]*",
            r".*\S.*",
        ),
        python="Names of servers, each with the file, folder, glob or address of its logs.",
    )
    servers: Literal["by-folder"] | None = opt(
        "--servers HOW",
        "by-folder: name the server of each log by its folder.",
        choice("by-folder", refusal='--servers "{value}": expecting by-folder'),
        python='``"by-folder"``: name the server of each log by its folder.',
    )
    only_server: list[str] | None = _filter(
        "--only-server NAME",
        "Read only the logs of this server; repeatable.",
        name_pattern(),
        python="Read only the logs of these servers.",
    )
    database: list[str] | None = _filter(
        "--database NAME",
        "Count only entries of this database; repeatable. In all filters * stands for any text, and ! before "
        "NAME excludes.",
        name_pattern(),
        python="Count only entries of these databases. In all filters ``*`` stands for any text, and ``!`` "
        "before a name excludes.",
    )
    user: list[str] | None = _filter(
        "--user NAME",
        "Count only entries of this user; repeatable.",
        name_pattern(),
        python="Count only entries of these users.",
    )
    application: list[str] | None = _filter(
        "--application NAME",
        "Count only entries with this application_name; repeatable.",
        name_pattern(),
        python="Count only entries with these values of application_name.",
    )
    host: list[str] | None = _filter(
        "--host HOST",
        "Count only entries of this client host, such as 10.0.0.*; repeatable.",
        name_pattern(),
        python="Count only entries of these client hosts.",
    )
    time_of_day: list[str] | None = _filter(
        "--time-of-day FROM-TO",
        "Count only entries logged at this time of day, in UTC, such as 08:00-17:00; repeatable.",
        time_of_day(),
        python='Count only entries logged at these times of day, in UTC: ``["08:00-17:00"]``.',
    )
    against: list[Location] | None = opt(
        "--against OTHER",
        "Compare with this earlier log: a file, glob, folder or address; repeatable.",
    )
    against_begin: str | None = opt(
        "--against-begin TIME", "Start of the earlier period, in the --against log or in FILES."
    )
    against_end: str | None = opt("--against-end TIME", "End of the earlier period.")
    top: Top = 10
    full: Full = False
    rejected: bool = opt("--rejected", "Show the lines that could not be parsed.", default=False)
    jobs: int = opt(
        "-j, --jobs NUM", "Number of threads. Default: 0, one per processor.", whole(0), default=0
    )
    processes: int | None = opt(
        "--processes NUM",
        "Read with NUM processes at once: many compressed files are read faster. A task of a process that is "
        "killed is done again.",
        whole(1, 1_000),
        python="Read with this many processes at once.",
    )
    nodes: int | None = opt(
        "--nodes NUM",
        "Read with NUM nodes of a Ray cluster, which must see the same files.",
        whole(1, 10_000),
        python="Read with this many nodes of a Ray cluster, which must see the same files.",
    )
    cluster: str | None = opt(
        "--cluster local|auto|ADDRESS",
        "With --nodes, the Ray cluster: local starts one on this machine, auto is the one to which this "
        "machine belongs, else HOST:PORT or ray://HOST:PORT. Default: local.",
        python="The Ray cluster: ``local``, ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``. Default: local.",
    )
    extendable: bool = opt(
        "--extendable",
        "Also store what --add-to requires, with statements as they are logged.",
        default=False,
    )
    add_to: str | None = opt(
        "--add-to RUN",
        "The logs follow those of the earlier RUN, which was read with --extendable: the result is that of "
        "reading all logs at once.",
        python="An earlier run, read with `extendable`: the logs follow those of that run.",
    )
    events: Path | None = opt(
        "--events DIR", "Write every entry as Parquet to the new folder DIR, for `uncork sql` or any tool."
    )
    follow: bool = opt(
        "-f, --follow", "Keep reading as files grow and are rotated, until Ctrl-C.", default=False
    )
    lasting: int | None = opt("--for TIME", 'With --follow: stop after TIME, such as "10min".', duration())
    every: int = opt(
        "--every TIME", "With --follow: refresh interval. Default: 5s.", duration(), default=_EVERY
    )
    anonymize: bool = opt(
        "--anonymize",
        "Drop literals, parameters and details; replace users and hosts by pseudonyms.",
        default=False,
    )
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    quiet: Quiet = False
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class DatabaseOptions(WatchedServer):
    """Profile a running PostgreSQL server: CPU time, waits, blocking sessions and query templates.

    Reads the statistics views before and after, and samples active sessions in between. It changes
    nothing and resets no counters. The run is stored; `uncork report` shows it again.
    """

    database: str | None = opt(
        "[DSN]",
        "Database, or connection string: a URI or key=value pairs. PG* variables, service files and "
        ".pgpass apply.",
    )
    lasting: int = opt(
        "--for TIME",
        'Duration of the profile, such as "10min". Default: 60s.',
        duration(),
        python="Duration of the profile.",
        default=_MINUTE,
    )
    rate: WatchRate = 20.0
    anonymize: bool = opt(
        "--anonymize",
        "Drop values of columns, which the planner's statistics, and texts and plans of statements contain.",
        default=False,
    )
    top: Top = 10
    full: Full = False
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    graph: Path | None = opt("--graph FILE", "Write the graph of foreign keys to FILE.dot, for Graphviz.")
    since: str | None = opt(
        "--since RUN",
        "Compare the statements with those of an earlier watch, or of the watch of a cure, after its change.",
    )
    quiet: Quiet = False
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class CpuOptions(WatchedServer):
    """Profile CPU time by stack: of processes, a server, a command, or another profiler's file.

    Uses perf where the machine allows it, and otherwise reports what cannot be recorded. The run is
    stored; `uncork report` shows it again, and --against shows what changed.
    """

    arguments: list[str] | None = opt("[COMMAND...]", "With --command: the command and its arguments.")
    pids: list[int] | None = opt(
        "--pid PID",
        "Profile this process and its children; repeatable.",
        python="Processes to profile, with their children.",
    )
    postgres: str | None = opt(
        "--postgres DSN",
        "Profile the processes of this server, by session. DSN is a URI or key=value pairs; -h, -p, -U and "
        "-d name the server, too.",
        python="Connection string of a server whose processes to profile, by session.",
    )
    command: bool = opt(
        "--command", "Run COMMAND, which must come last, and profile it until it exits.", default=False
    )
    imports: list[str] | None = opt(
        "--import FILE|URL",
        "Read another profiler's profile: pprof, perf script, folded, speedscope or Pyroscope; - is "
        "standard input; repeatable.",
        python="Profiles of other tools to read: pprof, perf script, folded, speedscope or Pyroscope.",
    )
    form_of: ProfileFormat | None = opt(
        "--format NAME",
        f"Format of --import: {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}. Default: detect it.",
    )
    lasting: int = opt(
        "--for TIME",
        'Duration of the recording, such as "30s". Default: 10s.',
        duration(),
        python="Duration of the recording.",
        default=_TEN_S,
    )
    rate: int = opt(
        "--rate HZ", "Samples a second of each running process, 1 to 1000. Default: 99.", default=99
    )
    call_graph: Literal["dwarf", "fp"] | None = opt(
        "--call-graph HOW", "How to unwind stacks: dwarf or fp. Default: try both.", choice("dwarf", "fp")
    )
    syscalls: bool = opt(
        "--syscalls",
        "Count system calls afterwards for up to 3 s; strace slows the processes down.",
        default=False,
    )
    against: str | None = opt("--against RUN", "Compare with this stored profile: its id, or last.")
    flame: Path | None = opt("--flame FILE.svg", "Write the flame graph to FILE.svg.")
    folded: Path | None = opt("--folded FILE", "Write folded stacks to FILE.")
    speedscope: Path | None = opt("--speedscope FILE", "Write speedscope JSON to FILE.")
    pprof: Path | None = opt("--pprof FILE", "Write a pprof protocol buffer to FILE.")
    measure: str | None = opt("--measure NAME", "The measure to write to these files. Default: cpu.")
    top: int = opt("--top N", "Number of frames to show in the terminal. Default: 10.", default=10)
    full: Full = False
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    quiet: Quiet = False
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class AdviseOptions(WatchedServer):
    """Name what is wrong with a database: each fault with its cost and the changes to try.

    Watches a server, reads its logs, or takes runs that are stored, and joins them. It only reads.
    What it reads is stored as runs of `profile db` and `profile logs`.
    """

    sources: list[str] | None = opt(
        "[SOURCES...]",
        "A connection string to watch (a URI or key=value pairs), logs (files, or addresses such as "
        "s3://BUCKET/PREFIX), and stored runs (an id, a name, or last), in any combination. Default: watch "
        "the server of the PG* variables.",
    )
    lasting: int = opt(
        "--for TIME",
        'How long to watch a server, such as "10min". Default: 60s.',
        duration(),
        python="How long to watch a server.",
        default=_MINUTE,
    )
    rate: WatchRate = 20.0
    experiment: int | None = opt(
        "--experiment N",
        "Print the experiment file that would prove the changes of finding N, instead of the report. With a "
        "stored run and a connection string, the tables are made like those of that database.",
        whole(1),
    )
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    quiet: Quiet = False
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class CaptureOptions(WatchedServer):
    """Capture a database's workload as scripts: its statements with their rates and values.

    Watches a server, or takes runs that are stored, and writes one script for each statement and set of
    values. `uncork load sql -f FOLDER` sends them in the captured mix. The server is only read.
    """

    sources: list[str] | None = opt(
        "[SOURCES...]",
        "A connection string to watch (a URI or key=value pairs), or a stored run of `profile db` or "
        "`advise` (an id, a name, or last); and logs of the same server, or their stored run, for the values "
        "of executions. With a stored run, a connection string only checks the statements. Default: watch "
        "the server of the PG* variables.",
    )
    output: Path = opt(
        "-o, --output DIR", "Write to the new folder DIR. Default: workload.", default=Path("workload")
    )
    sessions: bool = opt(
        "--sessions",
        "Record the sessions of logs instead: their transactions in order, with times, values and the pauses "
        "of the clients. `uncork load sql --replay DIR` sends them again. The log needs "
        "log_min_duration_statement = 0; -d selects a database.",
        default=False,
    )
    begin: str | None = opt("-b, --begin TIME", "With --sessions: only entries at or after TIME, in UTC.")
    end: str | None = opt("-e, --end TIME", "With --sessions: only entries before TIME, in UTC.")
    log_prefix: str | None = opt(
        "--prefix TEXT", "With --sessions: the server's log_line_prefix. Default: detect it."
    )
    lasting: int = opt(
        "--for TIME",
        'How long to watch a server, such as "10min". Default: 60s.',
        duration(),
        python="How long to watch a server.",
        default=_MINUTE,
    )
    rate: WatchRate = 20.0
    quiet: Quiet = False
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class CureOptions(WatchedServer):
    """Try the changes of a database's findings on a copy, and hand over what is proven to help.

    Watches a server, or takes a stored watch; copies the database; measures each change with the statements
    that were seen. It only reads the server, and applies nothing: it writes the SQL for you.
    """

    sources: list[str] | None = opt(
        "[SOURCES...]",
        "A connection string of the database (a URI or key=value pairs), and stored runs of `profile db`, "
        "`profile service` or `profile logs`. Without a stored watch, the server is watched first.",
    )
    lasting: int = opt(
        "--for TIME",
        'How long to watch the server, such as "10min". Default: 60s.',
        duration(),
        python="How long to watch the server.",
        default=_MINUTE,
    )
    rate: WatchRate = 20.0
    logs: list[Location] | None = opt(
        "--logs FILE",
        "A log of the server: a file, glob, folder or address; repeatable. Values of parameters are taken "
        "from it.",
        python="Logs of the server: files, globs, folders and addresses. Values of parameters are taken from "
        "them.",
    )
    budget: int = _cure(
        "--budget TIME",
        "Time for copying and measuring, after the watch. Default: 10min.",
        duration(),
        python="Time for copying and measuring, after the watch.",
        default=_TEN_MINUTES,
    )
    disk: int = _cure(
        "--disk SIZE",
        "Disk space for all copies together; a part of the rows is copied if they need more. Default: 20GB.",
        size(),
        python="Disk space for all copies together, in bytes or as text.",
        default=_DISK,
    )
    max_read: int = _cure(
        "--max-read SIZE",
        "Most bytes a second to read from the server while copying. Default: 100MB.",
        size(),
        python="Most bytes a second to read from the server while copying.",
        default=_READ,
    )
    copy: str | None = _cure(
        "--copy CONNINFO",
        "A copy of the database that exists already, such as a restored backup; nothing else may use it.",
        python="Connection string of a copy that exists already.",
    )
    pg_bin: Path | None = _cure("--pg-bin DIR", "Folder with the server's programs to run the copy with.")
    only: list[str] | None = _cure(
        "--only RULE",
        "Try only findings of this rule, such as missing-index; repeatable.",
        python="Try only findings of these rules.",
    )
    finding: int | None = _cure("--finding N", "Try only finding N of the report.", whole(1))
    dry_run: bool = _cure("--dry-run", "Say what would be read and tried, and copy nothing.", default=False)
    resume: str | None = _cure(
        "--resume RUN",
        "Continue a cure that ended early, with its watch: findings that were decided are not tried again.",
    )
    output: Path | None = opt("-o, --output DIR", "Also write the files to hand over into this folder.")
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    quiet: Quiet = False
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Watch a cure in two minutes: the missing indexes of a small shop, on a temporary server.

    Starts PostgreSQL, sends the shop's traffic, watches the server, and tries the changes on a copy, as
    `uncork cure` does with your database. It ends with the report, and with what to type next.
    """

    budget: int = opt(
        "--budget TIME",
        "Time for copying and measuring, after the watch. Default: 90s.",
        duration(),
        python="Time for copying and measuring, after the watch.",
        default=_DEMO,
    )
    html: Html = None
    quiet: Quiet = False
    runs: Runs = DEFAULT_RUNS
