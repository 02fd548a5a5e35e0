"""Serve the tools over standard input and output. The only module that imports the MCP SDK.

Each call is a process, because a query can run away in ways that only the kernel can stop (DuckDB
looks for an interruption only now and then), a cancelled measurement must end its servers as Ctrl-C
does, and a crash must not end the server. The children lead sessions of their own and end whenever
the server ends, even if it is killed (`uncork.spawn`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from io import TextIOWrapper
from types import FrameType
from typing import Any, Final, NoReturn

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool

from uncork import __version__
from uncork.errors import UsageError
from uncork.mcp.job import Tool
from uncork.mcp.tools import TOOLS
from uncork.spawn.child import Child, start

_INSTRUCTIONS: Final = (
    "uncork finds the bottleneck of a database-backed service, and proves fixes by experiment. These tools "
    "read its stored runs. Start with list_runs, then read_run; list_tables and query_run answer what the "
    'result does not show. Report verdicts with their intervals. "Not enough evidence" is an answer: a '
    "difference without a verdict proves nothing."
)
_INTERRUPTED: Final = 130
"""The exit status, as of every verb: see `uncork.cli.exit_codes`, which this room cannot import."""
_READS: Final = " This server cannot measure, because it was started without --allow-run."


def serve(runs: str | None, *, allow_run: bool) -> None:
    """Serve until standard input is closed, or a signal; then everything that was started has ended.

    `runs` is the folder or address of runs, None for the default; `allow_run` adds the tools that measure.
    Raises UsageError if standard input or output is closed.
    """
    if sys.stdin is None or sys.stdout is None:
        raise UsageError(
            "a client talks to `uncork mcp` over standard input and output, and one of them is closed; let "
            "the client start it"
        )
    logging.basicConfig(format="uncork: %(message)s", level=logging.CRITICAL)
    calls = Calls(runs)

    def leave(_number: int, _frame: FrameType | None) -> None:
        note("interrupted")
        _leave(calls, _INTERRUPTED)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    try:
        anyio.run(_serve, calls, allow_run)
    finally:
        calls.end()


async def _serve(calls: Calls, allow_run: bool) -> None:
    server = _server(calls, allow_run)
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray line goes to standard error; standard output is the protocol's
    output = _Output(TextIOWrapper(wire, encoding="utf-8", newline="\n"), calls)
    async with stdio_server(stdout=output) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _server(calls: Calls, allow_run: bool) -> Server[Any]:
    tools = {name: tool for name, tool in TOOLS.items() if allow_run or not tool.measures}
    listed = [_listed(tool) for tool in tools.values()]

    async def list_tools(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!r}; there are {', '.join(tools)}")
        if tool.name not in tools:
            return _refused(
                f"{tool.name} is not allowed; the person who runs this server can start it with "
                "`uncork mcp --allow-run`"
            )
        given = params.arguments or {}
        try:
            tool.read(given)
        except UsageError as error:
            return _refused(str(error))
        told = 0

        async def tell(line: str) -> None:
            nonlocal told
            told += 1
            await context.session.report_progress(told, message=line)

        answer = await calls.answer(tool, given, tell)
        if "error" in answer:
            return _refused(answer["error"])
        result = answer["result"]
        text = json.dumps(result, ensure_ascii=False)
        return CallToolResult(content=[TextContent(text=text)], structured_content=result)

    return Server(
        "uncork",
        version=__version__,
        title="uncork",
        instructions=_INSTRUCTIONS + ("" if allow_run else _READS),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _listed(tool: type[Tool]) -> ListedTool:
    description, schema = tool.described()
    return ListedTool(
        name=tool.name,
        title=tool.title,
        description=description,
        input_schema=schema,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.measures,
            destructive_hint=tool.starts_programs,
            idempotent_hint=not tool.measures,
            open_world_hint=tool.measures,
        ),
    )


def _refused(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


class _Output(anyio.AsyncFile[str]):
    """Standard output. If the client no longer reads it, nobody can receive a result: the server ends."""

    def __init__(self, file: TextIOWrapper, calls: Calls) -> None:
        super().__init__(file)
        self._calls = calls

    async def write(self, text: str) -> int:
        try:
            written: int = await super().write(text)
        except OSError:
            _leave(self._calls, 0)
        return written

    async def flush(self) -> None:
        try:
            await super().flush()
        except OSError:
            _leave(self._calls, 0)


def _leave(calls: Calls, status: int) -> NoReturn:
    """End the calls and the process, whose thread that waits for standard input cannot be ended otherwise."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    calls.end()
    os._exit(status)


# ---- the processes of calls: their progress, and their end with all that they started ----


Tell = Callable[[str], Awaitable[None]]
"""Takes a line of progress."""

_COMMAND: Final = (sys.executable, "-m", "uncork.mcp.call_process")
_READING: Final = 4
"""Calls that read at the same time; further ones wait."""
_GRACE_S: Final = 20.0
"""How long a call may take to end its servers and to store what was measured."""
_LAST_LINES_S: Final = 0.5
_ATOMIC: Final = 4096
"""Bytes that a pipe takes at once if it is ready (PIPE_BUF of Linux)."""


class Calls:
    """The calls in progress."""

    def __init__(self, runs: str | None) -> None:
        self._runs = runs
        self._living: dict[Child, float] = {}
        """Each child, and the time until which it may live after it was asked to end; infinity before."""
        self._measuring = ""
        self._reading = anyio.CapacityLimiter(_READING)

    async def answer(self, tool: type[Tool], arguments: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
        """Return ``{"result": {...}}`` or ``{"error": "..."}``. A cancelled call has ended."""
        if not tool.measures:
            async with self._reading:
                return await self._within_limit(tool, arguments, tell)
        if self._measuring:
            busy = f"{self._measuring} is running, and a second measurement would disturb it"
            return {"error": f"{busy}; wait until it has ended, or cancel it"}
        self._measuring = tool.name
        try:
            return await self._within_limit(tool, arguments, tell)
        finally:
            self._measuring = ""

    def end(self) -> None:
        """End all calls, and wait until they have ended. Blocks; for the end of the server."""
        for child in self._living:
            self._ask(child)
        for child in tuple(self._living):
            self._ended(child)

    async def _within_limit(
        self, tool: type[Tool], arguments: Mapping[str, Any], tell: Tell
    ) -> dict[str, Any]:
        with anyio.move_on_after(tool.limit_s):
            return await self._answered(tool, arguments, tell)
        return {"error": f"{tool.name} took longer than {tool.limit_s:.0f} s and was ended; ask for less"}

    async def _answered(self, tool: type[Tool], arguments: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
        call = json.dumps({"tool": tool.name, "arguments": arguments, "runs": self._runs}).encode()
        child = start(
            _COMMAND,
            ask=signal.SIGINT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._living[child] = float("inf")
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_forward, child, tell)
                output = await _in_thread(partial(_exchange, child, call))
                status = await _in_thread(child.wait)
                group.cancel_scope.deadline = anyio.current_time() + _LAST_LINES_S
        finally:
            threading.Thread(target=_drain, args=(child,), name="drain", daemon=True).start()
            with anyio.CancelScope(shield=True):
                self._ask(child)
                await anyio.to_thread.run_sync(self._ended, child)
        try:
            answer: dict[str, Any] = json.loads(output)
        except ValueError:
            return {"error": _crash(tool, status)}
        return answer

    def _ask(self, child: Child) -> None:
        """Ask a child once to end, as Ctrl-C does; a second time would interrupt how it ends."""
        if self._living.get(child) == float("inf") and child.poll() is None:
            self._living[child] = time.monotonic() + _GRACE_S
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGINT)

    def _ended(self, child: Child) -> None:
        """Wait until a child has ended; kill it when its time is over."""
        limit = self._living.get(child, 0.0)
        try:
            child.wait(timeout=max(0.0, min(limit - time.monotonic(), _GRACE_S)))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        self._living.pop(child, None)


def note(text: str) -> None:
    """Write a line to standard error, unless nobody reads it: a full pipe must not stop the server."""
    with contextlib.suppress(OSError):
        if select.select((), (2,), (), 0)[1]:
            os.write(2, f"uncork: {text}\n".encode()[:_ATOMIC])


def _exchange(child: Child, call: bytes) -> bytes:
    """Write the call, and read the answer until the child closes its standard output."""
    assert child.stdin is not None and child.stdout is not None  # noqa: S101 -- see `start`
    with contextlib.suppress(BrokenPipeError), child.stdin:
        child.stdin.write(call)
    with child.stdout:
        return bytes(child.stdout.read())


async def _forward(child: Child, tell: Tell) -> None:
    """Pass each line of a child's standard error on, to ours and to the client."""
    assert child.stderr is not None  # noqa: S101 -- see `start`
    while line := await _in_thread(child.stderr.readline):
        text = line.decode(errors="replace").rstrip("\n").removeprefix("uncork: ")
        note(text)
        await tell(text)


def _drain(child: Child) -> None:
    """Read what a child still writes to standard error while it ends, or it would wait for a reader."""
    assert child.stderr is not None  # noqa: S101 -- see `start`
    with child.stderr:
        while child.stderr.read(1 << 16):
            pass


async def _in_thread(function: Callable[[], Any]) -> Any:
    """Run a function that blocks on a pipe. A cancelled call leaves it; it returns when the child ends."""
    return await anyio.to_thread.run_sync(function, abandon_on_cancel=True)


def _crash(tool: type[Tool], status: int) -> str:
    if status == -signal.SIGKILL:
        return f"{tool.name} was killed, perhaps because it needed too much memory"
    return f"{tool.name} ended without a result (exit status {status}); standard error of the server says why"
