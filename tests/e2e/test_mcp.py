"""`uncork mcp` as clients use it: the SDK's own client, real runs, a real server, and broken pipes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from databases.scenario import SETTINGS
from fakes.experiments import QUICK
from fakes.stored_loads import store_load
from uncork.engines.embedded import EmbeddedServer

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp.client.stdio import stdio_client  # noqa: E402 -- only if it is installed

pytestmark = pytest.mark.xdist_group("mcp")
MODULE = "uncork.mcp.call_process"


@pytest.fixture
def store(uncork):
    """Six loads, an hour apart."""
    runs = uncork.folder / "runs"
    runs.mkdir()
    for number in range(6):
        store_load(runs, number)
    return runs


@asynccontextmanager
async def connected(uncork, *words):
    command = [sys.executable, "-m", "uncork", "mcp", *words]
    started = mcp.StdioServerParameters(
        command=command[0], args=command[1:], env=uncork.environment, cwd=uncork.folder
    )
    errors = uncork.folder / "errors.txt"
    with errors.open("a") as file:
        async with mcp.Client(stdio_client(started, errlog=file)) as client:
            yield client


async def answer(client, tool, **arguments):
    """Return the result of a call that succeeds; the text is the same as JSON."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content[0].text
    assert json.loads(found.content[0].text) == found.structured_content
    assert len(found.content[0].text) < 60_000
    return found.structured_content


async def refusal(client, tool, **arguments):
    """Return the message of a call that is refused: one text without a traceback."""
    found = await client.call_tool(tool, arguments)
    assert found.is_error
    (content,) = found.content
    assert "Traceback" not in content.text
    return content.text


def children_in(folder):
    """Return the processes of calls that were started in a folder."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and MODULE.encode() in (path / "cmdline").read_bytes():
                found += [path.name] if (path / "cwd").readlink() == folder else []
        except OSError:
            continue  # it has ended
    return found


def test_stored_runs_are_listed_read_queried_and_compared(uncork, store):
    async def talk():
        async with connected(uncork) as client:
            assert "list_runs" in client.instructions
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert all(tool.annotations.read_only_hint for tool in tools.values())
            assert not any("run_" in name for name in tools)
            listed = await answer(client, "list_runs", kind="load", last=2)
            assert listed["matching"] == 6
            newest, before = (run["run"] for run in listed["runs"])
            assert (newest, before) == tuple(sorted((newest, before), reverse=True))
            read = await answer(client, "read_run", run=newest)
            assert read["answer"].startswith("The server handled 100 transactions a second")
            part = await answer(client, "read_run", run=newest, part="scripts.0")
            assert part["result"] == read["result"]["scripts"][0]
            described = await answer(client, "list_tables")
            totals = next(one for one in described["tables"] if one["table"] == "load_totals")
            column = {"name": "elapsed_ns", "type": "BIGINT", "unit": "ns", "meaning": "measured time"}
            assert totals["rows"] == 1
            assert column["name"] in [one["name"] for one in totals["columns"]]
            assert next(one for one in totals["columns"] if one["name"] == "elapsed_ns")["unit"] == "ns"
            every = "SELECT run, succeeded FROM load_totals ORDER BY run DESC"
            found = await answer(client, "query_run", sql=every, run="all", max_rows=4)
            assert [row[0] for row in found["rows"]][:2] == [newest, before]
            assert len(found["rows"]) == 4 and "more" in found
            compared = await answer(client, "compare_runs", runs=[before, newest])
            assert compared["answer"] and compared["result"]["before"]["id"] == before

    anyio.run(talk)


def test_hostile_calls_are_refused_with_a_sentence(uncork, store):
    (file,) = (store / "load-tpcb-like-20260301-100000" / "load_totals").glob("*.parquet")
    kept = file.read_bytes()
    write = f"WITH x AS (COPY load_totals TO '{file}' (FORMAT parquet)) SELECT * FROM x"
    (uncork.folder / "secret.toml").symlink_to("/etc/passwd")

    async def talk():
        async with connected(uncork) as client:
            assert "there is no run" in await refusal(client, "read_run", run="../../etc")
            assert 'there is no run "nope"' in await refusal(client, "read_run", run="nope")
            assert "there is no run" in await refusal(
                client, "compare_runs", runs=[str(store)], against="last"
            )
            assert "disabled" in await refusal(client, "query_run", sql=write, run="last")
            assert "disabled" in await refusal(
                client, "query_run", sql="FROM read_csv('/etc/passwd')", run="all"
            )
            assert "COPY is refused" in await refusal(client, "query_run", sql="COPY load_totals TO 'x'")
            long = "SELECT repeat('x', 100000) AS text, * FROM load_series, range(1000)"
            found = await answer(client, "query_run", sql=long, max_rows=1000)
            assert "more" in found and found["rows"][0][0].endswith("… (cut: 100 000 characters)")
            heavy = "SELECT list(a) FROM range(1000000000) AS t(a)"
            assert "GiB of memory" in await refusal(client, "query_run", sql=heavy)
            outside = await refusal(client, "plan_experiment", file="secret.toml")
            assert "outside of the folder" in outside
            assert "--allow-run" in await refusal(client, "run_experiment", file="x.toml")
            with pytest.raises(mcp.MCPError, match="there is no tool 'nonsense'"):
                await client.call_tool("nonsense", {})

    anyio.run(talk)
    assert file.read_bytes() == kept
    assert "Traceback" not in (uncork.folder / "errors.txt").read_text()


def test_a_query_that_does_not_end_is_ended(uncork, store, monkeypatch):
    """DuckDB cannot interrupt this query for half a minute, so the process must be ended."""
    from uncork.mcp import server as calls
    from uncork.mcp.tools import TOOLS

    monkeypatch.setattr(calls, "_GRACE_S", 0.5)

    class Brief(TOOLS["query_run"]):
        limit_s = 3.0

    sql = "SELECT length(repeat('x', 900000000)) + length(repeat('y', 900000000)) FROM range(50)"

    async def quiet(_line):
        pass

    async def ask():
        return await calls.Calls(str(store)).answer(Brief, {"sql": sql}, quiet)

    begun = time.monotonic()
    assert anyio.run(ask) == {"error": "query_run took longer than 3 s and was ended; ask for less"}
    assert time.monotonic() - begun < 20
    assert children_in(Path.cwd()) == []


@pytest.mark.thorough
@pytest.mark.postgres
def test_an_experiment_is_planned_and_run_with_progress(uncork):
    uncork.write(QUICK)
    lines = []

    async def hear(_progress, _total, message):
        lines.append(message)

    async def talk():
        async with connected(uncork, "--allow-run") as client:
            tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
            assert [name for name, hints in tools.items() if not hints.read_only_hint] == [
                "run_experiment",
                "advise_database",
            ]
            assert tools["run_experiment"].destructive_hint and not tools["advise_database"].destructive_hint
            planned = await answer(client, "plan_experiment", file="experiment.toml", budget="60s")
            assert (planned["plan"]["baseline"], planned["plan"]["worst_ns"]) == ("scan", 60 * 10**9)
            assert uncork.runs == []
            arguments = {"file": "experiment.toml", "budget": "8s"}
            found = await client.call_tool("run_experiment", arguments, progress_callback=hear)
            return found, await answer(client, "query_run", sql="SELECT variant, plan_hash FROM plans")

    found, queried = anyio.run(talk)
    assert not found.is_error, found.content
    assert found.structured_content["answer"]
    assert any("round 1" in line for line in lines)
    (folder,) = uncork.runs
    assert found.structured_content["run"] == folder.name
    hashes = {one["variant"]: one["plan_hash"] for one in found.structured_content["result"]["plans"]}
    assert dict(queried["rows"]) == hashes
    assert hashes["key"] != hashes["scan"] and all(len(one) == 16 for one in hashes.values())


@pytest.fixture
def raw(uncork):
    """Start the server on pipes, with a call that has begun."""
    uncork.write(QUICK)
    started = []

    def begun(tool, **arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "uncork", "mcp", "--allow-run"],
            cwd=uncork.folder,
            env=uncork.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        client = {"clientInfo": {"name": "t", "version": "1"}, "capabilities": {}}
        send(process, id=1, method="initialize", params={"protocolVersion": "2025-06-18", **client})
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "uncork"
        send(process, method="notifications/initialized")
        call = {"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}
        send(process, id=2, method="tools/call", params=call)
        wait_until(lambda: len(children_in(uncork.folder)) == 1)
        return process

    yield begun
    for process in started:
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
        process.wait()


def send(process, **message):
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def received(process, id):
    """Return the answer to a request, and all messages before it."""
    found = [json.loads(process.stdout.readline())]
    while found[-1].get("id") != id:
        found.append(json.loads(process.stdout.readline()))
    return found[-1]["result"], found[:-1]


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda process: process.stdin.close(), 0),
        (lambda process: (send(process, id=3, method="tools/list"), process.stdout.close()), 0),
        (lambda process: process.send_signal(signal.SIGTERM), 130),
        (lambda process: process.kill(), -9),
    ],
    ids=["closed input", "closed output", "SIGTERM", "SIGKILL"],
)
def test_whatever_ends_the_server_ends_its_calls(uncork, store, raw, end, status):
    process = raw("query_run", sql="SELECT count(*) FROM range(1000000000000)")
    end(process)
    assert process.wait(30) == status
    wait_until(lambda: children_in(uncork.folder) == [])


@pytest.mark.thorough
@pytest.mark.postgres
def test_runs_end_with_their_servers_when_they_are_cancelled_or_the_client_leaves(uncork, raw):
    process = raw("run_experiment", file="experiment.toml")
    while "comparing answers" not in (line := process.stdout.readline()).decode():
        assert json.loads(line)["method"] == "notifications/progress"
    second = {"name": "run_experiment", "arguments": {"file": "experiment.toml"}}
    send(process, id=3, method="tools/call", params=second)
    assert "a second measurement would disturb it" in received(process, 3)[0]["content"][0]["text"]
    send(process, method="notifications/cancelled", params={"requestId": 2})
    wait_until(lambda: children_in(uncork.folder) == [])
    assert uncork.runs == []  # nothing was measured yet
    ready = {"name": "run_experiment", "arguments": {"file": "absent.toml"}}

    def freed():
        send(process, id=4, method="tools/call", params=ready)
        return "cannot read" in received(process, 4)[0]["content"][0]["text"]

    wait_until(freed)
    send(process, id=5, method="tools/call", params={**second, "_meta": {"progressToken": 5}})
    while "starting the server" not in process.stdout.readline().decode():
        assert process.poll() is None
    process.stdin.close()
    assert process.wait(30) == 0
    assert (children_in(uncork.folder), uncork.runs) == ([], [])
    assert not any(json.loads(line).get("id") == 2 for line in process.stdout)


@pytest.mark.postgres
def test_a_database_is_watched_and_its_password_never_shown(uncork):
    server = EmbeddedServer(dict(SETTINGS))
    server.start()
    try:
        with psycopg.connect(server.conninfo("postgres"), autocommit=True) as control:
            control.execute("CREATE TABLE item AS SELECT n AS id FROM generate_series(1, 1000) AS n")
        secret = "s3cr!t-word"
        dsn = f"{server.conninfo('postgres')} password={secret}"

        async def talk():
            async with connected(uncork, "--allow-run") as client:
                seen = await answer(client, "advise_database", dsn=dsn, seconds=1)
                again = await answer(client, "advise_run", runs=[seen["run"]])
                lost = await refusal(client, "advise_database", dsn=f"{dsn} port=1 host=/nowhere", seconds=1)
                odd = await refusal(
                    client, "advise_database", dsn=f"host = /nowhere {secret} password='{secret}", seconds=1
                )
                word = await refusal(client, "advise_database", dsn="/etc/passwd")
                return seen, again, lost, odd, word

        seen, again, lost, odd, word = anyio.run(talk)
    finally:
        server.stop()
    assert seen["answer"] and again["result"]["looked_at"] == seen["result"]["looked_at"]
    assert "/nowhere" in lost
    assert "write a connection string" in word
    told = json.dumps([seen, again, lost, odd], ensure_ascii=False)
    told += (uncork.folder / "errors.txt").read_text()
    told += "".join(path.read_text() for path in uncork.folder.rglob("*.json"))
    assert secret not in told


def test_without_the_package_the_command_says_how_to_install_it(uncork):
    program = "import sys; sys.modules['mcp'] = None; from uncork.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "mcp"],
        env=uncork.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("uncork: `uncork mcp` needs the package mcp: ")


def test_closed_streams_and_noise_end_it_quietly(uncork):
    command = f"{sys.executable} -m uncork mcp"
    for redirected, status in (("</dev/null", 0), ("<&-", 1), (">&-", 1)):
        done = subprocess.run(
            f"{command} {redirected}",
            shell=True,
            env=uncork.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, (redirected, done.stderr)
        assert "Traceback" not in done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "uncork", "mcp"], input="no JSON\n{}\n[1, 2\n\n", env=uncork.environment,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in done.stdout.splitlines())
