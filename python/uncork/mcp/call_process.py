"""Answer one call of a tool. A program: ``python -m uncork.mcp.call_process``.

The server (`uncork.mcp.server`) writes the call to standard input as JSON: ``{"tool", "arguments", "runs"}``.
The program writes ``{"result": {...}}`` or ``{"error": "..."}`` to standard output, and progress to standard
error, a line each. On SIGINT, SIGTERM and SIGHUP it ends as `uncork` does on Ctrl-C: what it started ends,
and what was measured is kept.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from types import FrameType
from typing import Any

from uncork.errors import UncorkError
from uncork.mcp.job import Job, Tool
from uncork.mcp.tools import TOOLS
from uncork.model.redaction import without_password


def main() -> None:
    """Read a call, answer it, and exit."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    result = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing else can write to the server
    try:
        call = json.load(sys.stdin.buffer)
        tool = TOOLS[call["tool"]]
        if tool.memory is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (tool.memory, tool.memory))
        answer = answered(tool, call["arguments"], call["runs"])
    except KeyboardInterrupt:
        sys.exit(130)
    with result:
        json.dump(answer, result, ensure_ascii=False, allow_nan=False)


def answered(tool: type[Tool], given: dict[str, Any], runs: str | None) -> dict[str, Any]:
    """Return the result of a tool, or its error in one text, which never shows a password that was given."""
    dsn = str(given.get("dsn", "")) if "dsn" in tool.model_fields else ""

    def tell(line: str) -> None:
        sys.stderr.write(f"{without_password(line, dsn)}\n")
        sys.stderr.flush()

    answer: dict[str, Any]
    try:
        answer = {"result": tool.read(given).answer(Job(runs, tell))}
    except UncorkError as error:
        notes = getattr(error, "__notes__", ())
        answer = {"error": "; ".join([str(error), *notes])}
    except MemoryError:
        answer = {"error": "it needs more memory than a call may have; ask for less"}
    except Exception as error:  # noqa: BLE001 -- a fault of uncork: the client gets one line of it
        line = " ".join(f"{type(error).__name__}: {error}".split())
        answer = {"error": f"unexpected error in uncork, please report it: {line}"}
    return _hidden(answer, dsn) if dsn else answer


def _hidden(value: Any, dsn: str) -> Any:
    if isinstance(value, str):
        return without_password(value, dsn)
    if isinstance(value, dict):
        return {name: _hidden(one, dsn) for name, one in value.items()}
    return [_hidden(item, dsn) for item in value] if isinstance(value, list) else value


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
