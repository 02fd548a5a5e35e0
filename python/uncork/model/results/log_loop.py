"""Statements that a client repeats in a loop, as a log shows them; times are nanoseconds."""

from __future__ import annotations

from uncork.model.records import Record
from uncork.model.results.log_activity import NameCount


class LoopTemplate(Record):
    """A template that a loop repeats.

    `executions` counts those in the loop, `longest` the most in one transaction or session. `waiting_ns` is
    the time between the end of the statement before each execution and its beginning, in which the server
    waited for the client. `sum_ns` is the time of the executions, with their parse and bind. `servers` has
    the executions of each server, most first; it is empty unless the logs are of several servers.
    """

    number: int
    text: str
    executions: int
    longest: int
    sum_ns: int
    waiting_ns: int
    servers: tuple[NameCount, ...] = ()


class LogLoop(Record):
    """Templates that sessions repeat with other statements in between, the one with the most time first.

    `stretches` is the number of transactions that did so; outside of transactions (`in_transaction` is
    false), of stretches of statements without a long pause. The parent is the statement before the loop; each
    of its `parents` executions has ten or more of each template. If there is none, `parent_text` is empty.
    `ratio` is the number of executions of the first template for each execution of the parent, or, without a
    parent, for each transaction. With `pipelined`, the client sent further statements without waiting for
    each answer.
    """

    in_transaction: bool
    parent_number: int | None
    parent_text: str
    parents: int
    stretches: int
    ratio: float
    templates: tuple[LoopTemplate, ...]
    pipelined: bool = False
