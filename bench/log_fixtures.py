"""Compare what `uncork profile logs` counts in the test logs of other tools with what those tools count.

The logs stay where they are. Clone the repositories of pgBadger and quellog, build quellog, and name
their folders of test logs. The script runs each tool on each log, and counts the same things in the raw text
by plain regular expressions, which know neither prefixes nor entries. It prints Markdown: one row per log,
then one row per figure on which not all agree.

``python bench/log_fixtures.py pgbadger/t/fixtures quellog/test/testdata --pgbadger pgbadger/pgbadger
--quellog bin/quellog``
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Figures = Mapping[str, float]

# What is counted, in the order of the columns. Only tools that report a figure are compared.
COUNTED = (
    *("entries", "statements", "duration, ms", "errors", "temporary files", "temporary bytes"),
    *("lock waits", "deadlocks", "received", "authorized", "disconnected"),
    *("checkpoints", "vacuums", "analyzes", "pool reports", "pool sessions"),
)

# The prefix of logs that pgBadger's own tests read with -p. It does not detect that of quellog's stderr logs.
PREFIXES = {
    "begin_end.log": "%t [%p]: db=%d,user=%u,app=%a,client=%h ",
    "pg-timezones.log": "%t:%h:%u@%d:[%p]:",
    "pg_vacuums.log.gz": "%t [%p]: [%l-1] user=%u,db=%d,host=%h,app=%a",
    "pg_rawcsv.log": "%m [%p] %q%u@%d ",
}
# The same for the format, which pgBadger's tests name with -f.
FORMATS = {
    "anonymize.log": "csv",
    "csv_statement_without_duration.log": "csv",
    "weeknumber.log": "csv",
    "postgresql_param_range.log": "stderr",
}
QUELLOG_PREFIX = "%m [%p] %e: db=%d,user=%u,app=%a,client=%h "

# A severity precedes a message in plain text; in csvlog it is between commas, in jsonlog a field.
SEVERITY = rb"(?:(?<![\w\"])SEVERITY: |,SEVERITY,[0-9A-Z]{5},|\"error_severity\": ?\"SEVERITY\")"
ANY = rb"(?:LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG\d?)"
STATEMENT = rb"duration: (\d+\.\d+) ms +(?:statement|execute [^:]*|fetch from [^:]*):"
RAW = {
    "entries": SEVERITY.replace(b"SEVERITY", ANY),
    "errors": SEVERITY.replace(b"SEVERITY", rb"(?:ERROR|FATAL|PANIC)"),
    "temporary files": rb"temporary file: path ",
    "temporary bytes": rb"temporary file: path [^\n]*?, size (\d+)",
    "lock waits": rb" (?:acquired|detected deadlock while waiting for) \w+Lock on ",
    "deadlocks": rb"(?<!tected )deadlock detected",
    "received": rb"connection received: host=",
    "authorized": rb"connection authorized: ",
    "disconnected": rb"disconnection: session time: ",
    "checkpoints": rb"(?:checkpoint|restartpoint) complete: ",
    "vacuums": rb"automatic (?:aggressive )?vacuum (?:to prevent wraparound )?of table ",
    "analyzes": rb"automatic analyze of table ",
    "pool reports": rb" xacts/s, ",
    "pool sessions": rb" C-0x[0-9a-f]+: [^\n]*closing because: ",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One log: its lines, and each tool's figures. `raw` is None if the log cannot be unpacked here."""

    name: str
    lines: int
    tools: Mapping[str, Figures]
    raw: Figures | None


def main() -> int:
    """Run the comparison; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", help="folders with test logs")
    parser.add_argument("--pgbadger", help="pgBadger's script; needs JSON::XS, and Text::CSV_XS for csvlog")
    parser.add_argument("--quellog", help="the program quellog")
    parser.add_argument("--only", default="", help="only logs whose path contains this text")
    options = parser.parse_args()
    logs = [log for folder in options.folders for log in sorted(folder.rglob("*")) if log.is_file()]
    # quellog keeps the expected output of a test beside the logs.
    wanted = [log for log in logs if options.only in str(log) and log.name != "golden.json"]
    _print([_row(log, options) for log in wanted])
    return 0


def _row(log: Path, options: argparse.Namespace) -> Row:
    print(log, file=sys.stderr)
    text = _unpacked(log)
    with tempfile.TemporaryDirectory() as scratch:
        tools = {"uncork": _uncork(log, text, Path(scratch))}
        if options.pgbadger:
            tools["pgBadger"] = _pgbadger(options.pgbadger, log, Path(scratch) / "out.json")
        if options.quellog:
            tools["quellog"] = _quellog(options.quellog, log)
    lines = text.count(b"\n") + (not text.endswith(b"\n")) if text else 0
    name = (
        f"{log.parent.name}/{log.name}" if log.parent.name in ("autoexplain", "comprehensive") else log.name
    )
    return Row(name, lines, tools, _raw(text) if text else None)


# ---- the tools ----


def _uncork(log: Path, text: bytes, scratch: Path) -> Figures:
    """Return uncork's figures; an empty mapping if it refuses the log.

    It asks to reverse a log that is newest first, so that is done.
    """
    prefix = ("-p", PREFIXES[log.name]) if log.name in PREFIXES else ()
    options = ("--json", "--quiet", "--runs", str(scratch), *prefix)
    command = (sys.executable, "-m", "uncork", "profile", "logs")
    found = _json([*command, str(log), *options])
    if not found and text:
        found = _json([*command, "-", *options], b"\n".join(reversed(text.splitlines())) + b"\n")
    if not found:
        return {}
    server, pool, sessions = found["server"], found["pool"] or {}, found["sessions"] or {}
    files, bad = server["temporary_files"], ("ERROR", "FATAL", "PANIC")
    return {
        "entries": found["entries"],
        "statements": found["executions"]["count"],
        "duration, ms": found["executions"]["sum_ns"] / 1e6,
        "errors": sum(one["count"] for one in found["errors"] if one["severity"] in bad),
        "temporary files": sum(one["count"] for one in files),
        "temporary bytes": sum(one["sum"] for one in files),
        "lock waits": sum(one["count"] for one in server["lock_waits"]),
        "deadlocks": server["deadlocks"],
        "received": server["connections"],
        "authorized": sessions.get("begun", 0),
        "disconnected": sessions.get("ended", 0),
        "checkpoints": server["checkpoints"]["count"],
        "vacuums": sum(one["count"] for one in server["vacuums"]),
        "analyzes": sum(one["count"] for one in server["analyzes"]),
        "pool reports": pool.get("reports", 0),
        "pool sessions": sum(
            one["count"] for one in pool.get("connections", ()) if one["side"] == "client" and one["ended"]
        ),
    }


def _pgbadger(script: str, log: Path, out: Path) -> Figures:
    """Return pgBadger's figures."""
    prefix = PREFIXES.get(log.name)
    if prefix is None and "testdata" in log.parts and "stderr" in log.name:
        prefix = QUELLOG_PREFIX
    command = ["perl", script, "-q", "-x", "json", "-o", str(out)]
    for option, value in (("-p", prefix), ("-f", FORMATS.get(log.name))):
        command += (option, value) if value else ()
    command.append(str(log))
    subprocess.run(command, capture_output=True, check=False, timeout=600)
    if not out.is_file():
        return {}
    found = json.loads(out.read_bytes())

    def of(table: str, *path: str) -> Any:
        value: Any = found.get(table) or {}
        for key in path:
            value = value.get(key) or {}
        return value

    def number(table: str, *path: str) -> float:
        return float(of(table, "postgres", *path) or 0)

    kinds, bad = of("logs_type", "postgres"), ("ERROR", "FATAL", "PANIC")
    # EVENTLOG stands for starts, stops and other messages of the server.
    levels = (*bad, "LOG", "EVENTLOG", "WARNING", "NOTICE", "INFO", "DEBUG")
    errors = of("error_info", "postgres")
    return {
        "entries": sum(kinds.get(kind, 0) for kind in levels),
        "statements": of("overall_stat", "queries_number") or number("overall_stat", "queries_number"),
        "duration, ms": sum(
            float(one.get("duration", 0)) for one in of("database_info", "postgres").values()
        ),
        "errors": sum(kinds.get(kind, 0) for kind in bad),
        "temporary files": number("tempfile_info", "count"),
        "temporary bytes": number("tempfile_info", "size"),
        "lock waits": sum(one["count"] for one in of("lock_info", "postgres").values()),
        "deadlocks": sum(one["count"] for text, one in errors.items() if text.endswith(" deadlock detected")),
        "authorized": number("connection_info", "count"),
        "disconnected": number("session_info", "count"),
        "checkpoints": sum(of("checkpoint_info", "starting").values()),
        "vacuums": number("autovacuum_info", "count"),
        "analyzes": number("autoanalyze_info", "count"),
        "pool sessions": float(of("pgb_session_info", "count") or 0),
    }


def _quellog(program: str, log: Path) -> Figures:
    """Return quellog's figures."""
    found = _json([program, str(log), "--json-compact"])
    if not found:
        return {}
    kinds = {one["type"]: one["count"] for one in found.get("events") or ()}
    sql, locks = found.get("sql_performance") or {}, found.get("locks") or {}
    connections, maintenance = found.get("connections") or {}, found.get("maintenance") or {}
    return {
        "entries": found["summary"]["total_logs"],
        "statements": sql.get("total_queries_parsed", 0),
        "duration, ms": sum(one["duration_ms"] for one in sql.get("executions") or ()),
        "errors": sum(kinds.get(kind, 0) for kind in ("ERROR", "FATAL", "PANIC")),
        "temporary files": (found.get("temp_files") or {}).get("total_messages", 0),
        "lock waits": locks.get("acquired_events", 0),
        "deadlocks": locks.get("deadlock_events", 0),
        "received": connections.get("connection_count", 0),
        "disconnected": connections.get("disconnection_count", 0),
        "checkpoints": (found.get("checkpoints") or {}).get("total_checkpoints", 0),
        "vacuums": maintenance.get("vacuum_count", 0),
        "analyzes": maintenance.get("analyze_count", 0),
    }


def _json(command: list[str], text: bytes | None = None) -> dict[str, Any]:
    done = subprocess.run(command, input=text, capture_output=True, check=False, timeout=600)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# ---- the raw text ----


def _raw(text: bytes) -> Figures:
    """Count in the raw text."""
    durations = [float(found) for found in re.findall(STATEMENT, text)]
    counted: dict[str, float] = {"statements": len(durations), "duration, ms": sum(durations)}
    for name, pattern in RAW.items():
        found = re.findall(pattern, text)
        counted[name] = sum(map(int, found)) if name == "temporary bytes" else len(found)
    return counted


def _unpacked(log: Path) -> bytes:
    """Return the text of a log; empty if nothing here unpacks it."""
    data, suffix = log.read_bytes(), log.suffix
    if suffix == ".7z":
        return b""
    if suffix in (".gz", ".tgz"):
        data = gzip.decompress(data)
    elif suffix == ".bz2":
        data = bz2.decompress(data)
    elif suffix == ".zst":
        data = subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout  # noqa: S607
    elif suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return b"".join(archive.read(one) for one in archive.namelist())
    if ".tar" in log.suffixes or suffix == ".tgz":
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            return b"".join(file.read() for one in archive if (file := archive.extractfile(one)))
    return data


# ---- the tables ----


def _print(rows: list[Row]) -> None:
    print("| log | lines | read by | all agree on | differ | " + " | ".join(COUNTED) + " |")
    print("|---" * (len(COUNTED) + 5) + "|")
    differences = []
    for row in rows:
        ours, agree, differ, cells = row.tools["uncork"], 0, [], []
        readers = [
            tool for tool, found in row.tools.items() if found.get("entries") or found.get("pool sessions")
        ]
        for name in COUNTED:
            told = {tool: row.tools[tool][name] for tool in readers if name in row.tools[tool]}
            if row.raw is not None:
                told["raw text"] = row.raw[name]
            same = len({round(value, 1) for value in told.values()}) <= 1
            agree += same and any(told.values())
            if not same:
                differ.append((name, told))
            cells.append("" if not ours.get(name) else f"{ours[name]:.10g}" + ("" if same else " *"))
        differences += [(row.name, name, told) for name, told in differ]
        counts = (row.lines or "", ", ".join(readers), agree, len(differ) or "")
        print(f"| {row.name} | {' | '.join(map(str, counts))} | {' | '.join(cells)} |")
    tools = ("uncork", "raw text", "pgBadger", "quellog")
    print("\n| log | figure | " + " | ".join(tools) + " |\n|---|---" + "|---" * len(tools) + "|")
    for log, name, told in differences:
        cells = [f"{told[tool]:.10g}" if tool in told else "" for tool in tools]
        print(f"| {log} | {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    sys.exit(main())
