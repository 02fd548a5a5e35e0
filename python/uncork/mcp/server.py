"""Serve the tools over standard input and output. The only module that imports the MCP SDK."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from io import TextIOWrapper
from types import FrameType
from typing import Any, Final, NoReturn

import anyio
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
from uncork.mcp.calls import Calls, note
from uncork.mcp.job import Tool
from uncork.mcp.tools import TOOLS

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
