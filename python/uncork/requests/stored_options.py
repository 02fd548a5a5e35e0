"""The options of the verbs that read, compare, move and serve stored runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from uncork.model.stored_run import DEFAULT_RUNS
from uncork.requests.option import Location, Opt, opt, whole
from uncork.requests.shared_options import RUNS_HELP, AsJson, Html, Markdown, Runs

LEAST_WINDOW: Final = 5
"""With fewer runs, it is unknown how much they differ: `uncork.stats.run_comparison.KNOWN_RUNS`."""
LastRun = Annotated[str, Opt("[RUN]", "Stored run: its id, a name, or last. Default: last.")]


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Show the report of a stored run, in the terminal and as a self-contained HTML page."""

    run: LastRun = "last"
    html: Html = None
    markdown: Markdown = False
    as_json: AsJson = False
    go_bench: bool = opt(
        "--go-bench", "Load run: print the result in the format that benchstat reads.", default=False
    )
    hdr_log: Path | None = opt(
        "--hdr-log FILE", "Load run: write one histogram per second in HdrHistogram's log format."
    )
    against: str | None = opt("--against RUN", "CPU profile: compare with this other profile.")
    show: bool = opt("--open", "Open the HTML page in a browser.", default=False)
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """Compare stored runs: what differs, by how much, and how certain that is.

    Compares throughput, percentiles, statuses, errors, cost per operation, sizes and plans of loads,
    experiments and profiled databases; logs by query template; CPU profiles by frame. Intervals reflect how
    much comparable stored runs differ from one to the next; with too few of them there is no verdict.
    """

    compared: list[str] = opt(
        "RUN...",
        "Stored runs: an id, the beginning of one, a name, or last. The first is the baseline.",
        required=True,
    )
    against: str | None = opt(
        "--against RUN",
        'Compare all of them with this run. Default for a single RUN: the run named "baseline".',
    )
    practical: str = opt(
        "--practical PERCENT", "Smallest difference that matters. Default: 3%.", default="3%"
    )
    any_machine: bool = opt(
        "--any-machine", "Include runs of different machines, without verdicts.", default=False
    )
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """Merge the parts of a load, or the runs of an experiment on several hosts, and show the report.

    Histograms of a load's parts (--shard) are added without loss, counts and series second by
    second. The report names parts that are missing, were killed, or disagree with the others, and
    counts what they may have sent. The rounds of an experiment are judged together: on these hosts,
    and from five hosts on, on hosts like these.
    """

    merged: list[str] = opt(
        "RUN...",
        "Runs of parts or hosts: their ids, the beginnings of ids, names, or paths.",
        required=True,
    )
    as_json: AsJson = False
    html: Html = None
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """Show how a metric changed over comparable stored runs, and when.

    For each change it reports the confidence, the first run and commit, and what else differs there. A series
    of pure noise shows a change in at most 5 % of cases. With --window, the newest run is judged: the exit
    status is 0 if it is not worse than the runs before it, 3 if it is worse, 4 if that is undecided.
    """

    metric: str = opt(
        "METRIC",
        "A metric as `uncork compare` names it, such as throughput, mean, p99 or failed.",
        required=True,
    )
    subject: str | None = opt("--of WHAT", "Statement, variant or command, where several have the metric.")
    like: str | None = opt(
        "--like RUN", "Use runs comparable to this one. Default: the newest run with the metric."
    )
    any_machine: bool = opt("--any-machine", "Include runs of different machines.", default=False)
    since: str | None = opt(
        "--since TIME", "Only runs since this date or time, or of this age: 2026-05-31, 30d, 12h."
    )
    branch: str | None = opt(
        "--branch NAME",
        "Only runs on this branch: as recorded with the run, or by git and the run's commit.",
    )
    window: int | None = opt(
        "--window N",
        "Judge the newest run against the N runs before it; at least 5.",
        whole(LEAST_WINDOW, 1000),
    )
    everything: bool = opt("--all", "Include runs in which a guard found a broken gate.", default=False)
    junit: Path | None = opt("--junit FILE", "Write the judgement of --window to FILE as JUnit XML.")
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Query a stored run, or all runs, in SQL; without a query, list the tables that have rows.

    Without RUN, the query is about the newest run that has not failed. An experiment also has the
    table comparisons, with its verdicts. `DESCRIBE trials` lists the columns of trials. Across all
    runs, each table has the additional column run, and the table runs has one row per run: name,
    kind, status, tags and start time.
    """

    run: str = opt("[RUN]", "Stored run: its id, a name, or last; or all. Default: last.", default="last")
    query: str | None = opt("[QUERY]", "Query of the run's tables, in DuckDB's SQL.")
    as_json: bool = opt("--json", "Print one JSON object per row.", default=False)
    as_csv: bool = opt("--csv", "Print comma-separated values.", default=False)
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Serve the stored runs as web pages: list, reports, runs in progress, cases and /metrics.

    Serves until Ctrl-C.
    """

    port: int = opt(
        "--port PORT", "TCP port; 0 picks a free one. Default: 8675.", whole(0, 65535), default=8675
    )
    host: str = opt(
        "--host ADDRESS",
        "Address to listen on. Any other than loopback requires a token. Default: 127.0.0.1.",
        default="127.0.0.1",
    )
    token_file: Path | None = opt(
        "--token-file FILE", "Require clients to send the token in FILE, or in UNCORK_TOKEN."
    )
    name: list[str] | None = opt("--name HOST", "Accept requests for this host name too; repeatable.")
    show: bool = opt("--open", "Open the pages in a browser.", default=False)
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class McpOptions:
    """Serve the stored runs to a language model's client, by the Model Context Protocol.

    The client, such as an editor or an assistant, starts this command and talks to it over standard
    input and output. It can list and read runs, query their tables, compare them, and plan
    experiments. It cannot write or measure anything, unless you allow it with --allow-run.
    """

    allow_run: bool = opt(
        "--allow-run",
        "Let the client run experiment files of this folder, with the programs that they start, and watch "
        "databases.",
        default=False,
    )
    runs: Location | None = opt("--runs DIR", f"{RUNS_HELP} Default: UNCORK_RUNS, or .uncork/runs.")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Store results of other tools as runs, to compare them and follow their history.

    A result already imported for the same time and name is not imported again.
    """

    files: list[Path] = opt(
        "FILE...",
        "Output or logs of pgbench, output of h2load or wrk, JSON of k6, oha or hyperfine, or CSV.",
        required=True,
    )
    name: str | None = opt("--as NAME", "Series to which the results belong, such as checkout.")
    at: str | None = opt(
        "--at TIME",
        "Time of the measurement, in UTC unless it has an offset. Default: the time in the file, or the "
        "file's age.",
    )
    commit: str | None = opt(
        "--commit ID", "The commit or version that was measured. Default: that in the file."
    )
    branch: str | None = opt("--branch NAME", "The branch that was measured. Default: that in the file.")
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Export a stored run's time series to a file or an OpenTelemetry collector.

    For a load: operations, failures and latencies per second, responses by status, and CPU use. For every
    run: the metrics that `uncork compare` names. Service, run, commit and environment are attributes.
    """

    run: LastRun = "last"
    otlp: str | None = opt(
        "--otlp FILE|URL",
        "Write OpenTelemetry metrics as JSON lines to FILE (- is standard output), or send them to a "
        "collector at URL, such as http://127.0.0.1:4318.",
    )
    service: str = opt("--service NAME", "Value of service.name. Default: uncork.", default="uncork")
    header: list[str] | None = opt(
        "--header 'NAME: VALUE'",
        "Send this header to the collector; repeatable. OTEL_EXPORTER_OTLP_HEADERS adds others.",
    )
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class AcknowledgeOptions:
    """Acknowledge a change that broke a gate, with a reason: it no longer alarms.

    Appends an entry to a file that belongs in the repository, beside the experiment. The change is
    accepted up to the measured extent, and no further.
    """

    run: str = opt(
        "RUN", "Guard run with the broken gate: its id, the beginning of one, a name, or last.", required=True
    )
    gate: str = opt("GATE", 'The broken gate, such as "p99 < +5%", in any of its spellings.', required=True)
    reason: str = opt("--reason TEXT", "Why the change is accepted.", required=True)
    workload: str | None = opt(
        "--workload NAME", "Only on this workload. Default: each workload where the gate is broken."
    )
    until: str = opt(
        "--until DATE", "Last day on which the acknowledgement applies, such as 2026-12-31.", default=""
    )
    limit: str = opt(
        "--limit BOUND",
        'Largest accepted change, such as "+8%". Default: the bad end of the measured interval.',
        default="",
    )
    file: Path | None = opt(
        "--file FILE",
        "File to append to. Default: the file that the experiment names, or uncork-acknowledged.toml.",
    )
    runs: Runs = DEFAULT_RUNS
