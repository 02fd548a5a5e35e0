"""Properties of what is read, for any files."""

import copy
import gzip
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from uncork.errors import UsageError
from uncork.profile.imported.reading import read_results
from uncork.profile.logs import LogReading, LogRequest, read_logs
from uncork.workbench.profile.log_files import LogServers, log_request

RESULTS = Path(__file__).parents[1] / "fixtures" / "results"
DOCUMENTS = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
TEXTS = [path.read_text() for path in sorted(RESULTS.glob("*.*")) if path.suffix in (".txt", ".log", ".csv")]

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1e-320, 1e308, 10**400, math.nan, math.inf, -math.inf, 2**63]),
    st.sampled_from(
        ["", "NaN", "1", "soon", "9999-12-31T23:59:59+00:00", "0001-01-01", "\x00", "us", "\ud800"]
    ),
    st.just([]),
    st.just({}),
    st.lists(st.floats(), max_size=2),
    st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=2), max_leaves=4),
)


def places(value, path=()):
    """Yield the paths to all values within a document."""
    yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from places(child, (*path, key))


@st.composite
def spoiled(draw, documents):
    """Return a document in which a few values are replaced or missing."""
    data = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(data))))
        if not path:
            return draw(ODD)
        place = data
        for key in path[:-1]:
            place = place[key]
        if draw(st.booleans()):
            place[path[-1]] = draw(ODD)
        else:
            del place[path[-1]]
    return data


def check(read):
    try:
        found = read()
    except UsageError as error:
        assert "\n" not in str(error)
        assert str(error).startswith("x ")
        return
    for run in found:
        assert run.figures
        for figure in run.figures:
            assert math.isfinite(figure.value)
            f"{figure.subject} {figure.name} {run.question}".encode()
            assert figure.within is None or math.isfinite(figure.within)
            assert figure.scale != "share" or 0 <= figure.count <= figure.of


@given(spoiled(DOCUMENTS))
def test_spoiled_json(data):
    check(lambda: read_results(json.dumps(data), "x"))


@given(spoiled(DOCUMENTS), st.integers(0, 200))
def test_truncated_json(data, left):
    text = json.dumps(data)
    check(lambda: read_results(text[: len(text) - left], "x"))


@given(st.sampled_from(TEXTS), st.data())
def test_spoiled_text(text, data):
    lines = text.splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    words = lines[place].split(" ")
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(
        st.sampled_from(["", "-1", "nan", "9" * 400, "x"])
    )
    lines[place] = " ".join(words)
    check(lambda: read_results("\n".join(lines), "x"))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["2026-05-01", "1777708800", "", "9999-12-31", "0001-01-01T00:00+14:00"]),
            st.sampled_from(["p99", "", "throughput"]),
            st.sampled_from(["1", "-1", "0", "nan", "1e308", "1e-320", ""]),
            st.sampled_from(["ms", "/s", "%", "TiB", "", "x"]),
        ),
        max_size=6,
    )
)
def test_odd_tables(rows):
    text = "\n".join(["time,metric,value,unit", *map(",".join, rows)])
    check(lambda: read_results(text, "x"))


@given(st.text(max_size=200))
def test_any_text(text):
    check(lambda: read_results(text, "x"))


def test_json_that_is_nested_too_deeply():
    check(lambda: read_results("[" * 100_000, "x"))


BEGIN_MS = 1_767_225_600_000
PREFIX = "%m [%p] %q%u@%d %a "
SPAN_MS = 500_000
"""Shorter than the 600 s from which the buckets of series depend on the span."""
TABLES = {
    "log_templates": ("text",),
    "log_origins": ("template", "server", "user", "database", "application", "host"),
    "log_series": ("kind", "name", "template", "server", "start_us"),
    "log_errors": ("server", "message"),
    "log_activity": ("kind", "name", "template", "server"),
    "log_incidents": ("server", "time_us", "pid", "amount"),
    "log_transactions": ("server", "user", "application"),
    "log_blocking": ("server", "waiting_template", "waiting_application"),
    "log_loops": ("server", "template", "parent", "in_transaction"),
    "log_routes": ("server", "route", "template"),
    "log_slowest": ("server", "duration_us", "time_us"),
    "log_sessions": ("server", "user", "application"),
    "log_vacuums": ("kind", "name", "server"),
}
OTHER_KEYS = {
    "log_hours": ("start_us",),
    "log_hours_by_server": ("server", "start_us"),
    "log_templates_by_server": ("template", "server"),
}
PLACES = ("file", "offset", "identity")
"""What depends on the files, and what the grammar adds."""
COLUMNS = {
    "log_templates": (
        *("text", "executions", "sum_us", "max_us", "repeated_rows", "repeated_executions"),
        *("repeated_longest", "repeated_elapsed_us", "repeated_sum_us"),
    ),
    "log_hours": ("start_us", "executions", "p50_us", "p95_us", "p99_us"),
}
"""What log_templates_by_server and log_hours_by_server have of several servers."""
MOST = {"log_incidents": "amount", "log_slowest": "duration_us"}
"""Tables that have the 100 rows with the largest amounts, of all servers."""
WHOLE = ("log_templates",)
"""Tables whose rows are of all servers. Here, nearly all statements name a table of their server."""


def entries(server: str, seed: int, count: int) -> list[str]:
    """Return the entries of a server. All servers have the same processes, users and applications."""
    draw = random.Random(seed)
    times = sorted(draw.sample(range(1, SPAN_MS), count))
    times[0], times[-1] = 0, SPAN_MS
    return ["".join(lines(server, draw, at)) for at in times]


def lines(server: str, draw: random.Random, at: int) -> Iterator[str]:  # noqa: PLR0912 -- a kind each
    pid, other = draw.choice((7, 8, 9)), draw.choice((7, 8, 9))
    when = datetime.fromtimestamp((BEGIN_MS + at) / 1000, UTC)
    head = f"{when:%Y-%m-%d %H:%M:%S}.{at % 1000:03d} UTC [{pid}] u{pid % 2}@d web "
    ms = draw.randrange(1, 4000) / 10
    update = f"UPDATE {server} SET a = {pid} WHERE id = 3"
    match draw.randrange(20):
        case 0 | 1:
            yield f"{head}LOG:  duration: {ms} ms  statement: BEGIN\n"
        case 2 | 3:
            yield f"{head}LOG:  duration: {ms} ms  statement: COMMIT\n"
        case 4:
            yield f'{head}ERROR:  relation "{server}" does not exist\n'
            yield f"{head}STATEMENT:  SELECT * FROM {server}\n"
        case 5:
            yield f"{head}LOG:  statement: SELECT 1 FROM {server} WHERE b = {at}\n"
        case 6:
            yield f"{head}LOG:  duration: {ms} ms\n"
        case 7:
            yield (
                f"{head}LOG:  process {pid} still waiting for ShareLock on transaction 5 after {ms} ms\n"
                f"{head}DETAIL:  Process holding the lock: {other}. Wait queue: {pid}.\n"
                f"{head}STATEMENT:  {update}\n"
            )
        case 8:
            yield (
                f"{head}LOG:  process {pid} acquired ShareLock on transaction 5 after {ms} ms\n"
                f"{head}STATEMENT:  {update}\n"
            )
        case 9:
            yield f"{head}LOG:  connection received: host=10.0.0.{pid} port=5\n"
            yield f"{head}LOG:  connection authorized: user=u{pid % 2} database=d application_name=web\n"
        case 10:
            yield (
                f"{head}LOG:  disconnection: session time: 0:00:0{pid}.000 user=u{pid % 2} database=d "
                "host=[local]\n"
            )
        case 11:
            yield f"{head}LOG:  checkpoint starting: wal\n"
            yield (
                f"{head}LOG:  checkpoint complete: wrote 44 buffers (0.3%); 0 WAL file(s) added, 0 removed, "
                "0 recycled; write=0.3 s, sync=0.0 s, total=0.3 s; sync files=1, longest=0.0 s, average=0.0 s"
                "; distance=260 kB, estimate=260 kB\n"
            )
        case 12:
            usage = "system usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.03 s"
            yield f'{head}LOG:  automatic analyze of table "d.public.t" {usage}\n'
        case 13:
            yield f"{head}LOG:  database system is ready to accept connections\n"
        case _:
            trace = f"{1 + at // 1_000:032x}-{at + 1:016x}"
            tags = (f" /*route='%2F{pid}',traceparent='00-{trace}-01'*/", "")[draw.randrange(2)]
            yield f"{head}LOG:  duration: {ms} ms  statement: SELECT * FROM {server} WHERE id = {at}{tags}\n"


def packed(path: Path, text: str, how: str) -> Path:
    """Write a file as it is, or compressed."""
    data = text.encode()
    if how == "gz":
        path, data = path.with_name(f"{path.name}.gz"), gzip.compress(data)
    elif how == "zst":
        path, data = path.with_name(f"{path.name}.zst"), pa.compress(data, "zstd", asbytes=True)
    path.write_bytes(data)
    return path


def busiest(reading: LogReading) -> Mapping[str, Any]:
    """Return each server's busiest second, most sessions and checkpoints."""
    keys = ("peak", "most_sessions", "checkpoints")
    return {one["name"]: {key: one[key] for key in keys} for one in reading.facts["servers"]}


def by_server(tables: Mapping[str, pa.Table], server: str) -> dict[str, list[dict[str, Any]]]:
    """Return a server's executions by template and by hour, from the tables that have them by server."""
    several = tables["log_templates_by_server"].num_rows > 0
    parts: dict[str, list[dict[str, Any]]] = {}
    for name, key in (("log_templates", "text"), ("log_hours", "start_us")):
        rows = rows_of(tables, f"{name}_by_server" if several else name)
        parts[name] = [
            {column: row[column] for column in COLUMNS[name]}
            for row in ({**row, "text": row.get("text", row.get("template"))} for row in rows)
            if row.get("server", server) == server and row["executions"]
        ]
        parts[name].sort(key=lambda row: str(row[key]))
    return parts


def rows_of(tables: Mapping[str, pa.Table], name: str) -> list[dict[str, Any]]:
    """Return the rows of a table in an order of their own, with the texts of templates and without places."""
    texts = dict(
        zip(*(tables["log_templates"][one].to_pylist() for one in ("template", "text")), strict=True)
    )
    rows = []
    for row in tables[name].to_pylist():
        for key in PLACES:
            row.pop(key, None)
        for key in [key for key in row if key in ("template", "parent") or key.endswith("_template")]:
            row[key] = "" if row[key] is None else texts[row[key]]
        row.pop("error", None)
        rows.append(row)
    # Errors of several messages have a row of the series each, in no order.
    return sorted(
        rows, key=lambda row: [str(row[key]) for key in {**TABLES, **OTHER_KEYS}[name]] + [str(row)]
    )


def of_server(tables: Mapping[str, pa.Table], name: str, server: str) -> list[dict[str, Any]]:
    """Return the rows of a server; those of statements on the other's tables are not."""
    rows = rows_of(tables, name)
    if name in WHOLE:
        return [row for row in rows if not alien(row, server)]
    # The series of a template is of all servers.
    return [row for row in rows if row["server"] == server or not (row["server"] or alien(row, server))]


def alien(row: Mapping[str, Any], server: str) -> bool:
    texts = (str(row.get(key) or "") for key in ("text", "template", "parent"))
    return any(word in ("begin", "commit") or f" {other(server)}" in word for word in texts)


def other(server: str) -> str:
    return {"left": "right", "right": "left"}[server]


@cache
def logs() -> Mapping[str, list[str]]:
    return {"left": entries("left", 1, 700), "right": entries("right", 2, 900)}


@cache
def alone() -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of each server, read on its own, by table, and when it was busiest."""
    found = {}
    for server, parts in logs().items():
        with TemporaryDirectory() as folder:
            path = Path(folder) / "whole.log"
            path.write_text("".join(parts))
            reading = read_logs(LogRequest((path,), PREFIX, threads=1, servers=(server,)))
        found[server] = {name: of_server(reading.tables, name, server) for name in TABLES}
        found[server]["busiest"] = busiest(reading)[server]
        found[server]["by server"] = by_server(reading.tables, server)
    return found


def shortest(tables: Mapping[str, pa.Table], name: str) -> int:
    """Return the amount that rows of a table must exceed, so that none of them is left out."""
    amounts = tables[name][MOST[name]].to_pylist() if name in MOST else []
    return min(amounts) if len(amounts) >= 100 else 0


def difference(found: Sequence[object], expected: Sequence[object]) -> tuple[object, object] | None:
    """Return the first two rows that differ."""
    pairs = zip_longest(found, expected)
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


@settings(max_examples=30, deadline=None)
@given(
    cuts=st.tuples(*(st.lists(st.integers(1, 690), max_size=5, unique=True) for _ in range(2))),
    packing=st.lists(st.sampled_from(["", "gz", "zst"]), min_size=12, max_size=12),
    threads=st.integers(1, 4),
    order=st.integers(0, 2**32),
    by_folder=st.booleans(),
)
def test_each_server_has_the_tables_that_it_has_alone(
    cuts: tuple[list[int], list[int]], packing: list[str], threads: int, order: int, by_folder: bool
) -> None:
    with TemporaryDirectory() as scratch:
        folder, how = Path(scratch), iter(packing)
        sources: dict[str, list[str]] = {}
        for (server, parts), cut in zip(logs().items(), cuts, strict=True):
            (folder / server).mkdir()
            sources[server] = [
                str(packed(folder / server / f"{begin:04}.log", "".join(parts[begin:end]), next(how)))
                for begin, end in pairwise([0, *sorted(cut), len(parts)])
            ]
        # The files are named in any order: those of one server are read in the order of time.
        files = [path for paths in sources.values() for path in paths]
        random.Random(order).shuffle(files)
        patterns = () if by_folder else tuple((server, str(folder / server)) for server in sources)
        servers = LogServers(patterns, by_folder)
        reading = read_logs(log_request(files, PREFIX, (None, None), threads, servers=servers))
    together = reading.tables
    for server, expected in alone().items():
        for name in TABLES:
            found, least = of_server(together, name, server), shortest(together, name)
            amount = MOST.get(name)
            wanted = [row for row in expected[name] if amount is None or row[amount] > least]
            kept = [row for row in found if amount is None or row[amount] > least]
            assert difference(kept, wanted) is None, (server, name)
            assert found or name == "log_loops", (server, name)
        assert busiest(reading)[server] == expected["busiest"]
        assert by_server(together, server) == expected["by server"]
        assert expected["busiest"]["most_sessions"]["count"] > 1
    for name in TABLES:
        if name not in WHOLE:
            assert {row["server"] for row in rows_of(together, name)} <= {"left", "right", ""}
