"""Texts for the wait classes, sessions and blockers of a watched server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database import BlockerFacts, TimeNode
from uncork.model.template_words import short_template
from uncork.model.units import count_words

_CLASSES: Final = {
    CPU: "on CPU or ready for one",
    IDLE: "idle in transaction",
    "Lock": "waiting for locks",
    "LWLock": "waiting for internal locks",
    "IO": "reading and writing files",
    "IPC": "waiting for other processes",
    "Client": "waiting for the client",
    "Timeout": "sleeping",
    "BufferPin": "waiting for a page in use",
    "Extension": "within an extension",
}


def class_words(name: str) -> str:
    """Return a wait class in words."""
    return _CLASSES.get(name, name)


def sessions_text(number: float) -> str:
    """Format a number of sessions on average: ``2.31``, ``0.04``, ``under 0.01``."""
    if 0 < number < 0.01:
        return "under 0.01"
    return f"{number:.2f}" if number < 99.995 else f"{number:.0f}"


def snapshot_line(sessions: float, classes: Sequence[tuple[str, float]], left_s: float) -> str:
    """Return a progress line: the time left, and busy sessions on average, in total and by class."""
    parts = ", ".join(f"{sessions_text(number)} {class_words(name)}" for name, number in classes[:3])
    return f"{left_s:.0f} s left; {sessions_text(sessions)} sessions busy{f': {parts}' * bool(parts)}"


def node_words(node: TimeNode, template: str, width: int) -> str:
    """Return the name of a node of the time tree; `template` is its text if it is a template."""
    match node.kind:
        case "class":
            return class_words(node.name)
        case "template":
            return short_template(template, width) if template else "(unknown statement)"
        case "application":
            return f"application {node.name}" if node.name else "(no application name)"
        case "others":
            return f"{node.name} more"
        case _:
            return node.name


def blocker_words(blocker: BlockerFacts) -> str:
    """Return who blocks others, and what it did: ``application batch, idle in transaction after …``."""
    if blocker.state in ("prepared transaction", "not seen"):
        what = {
            "prepared transaction": "a prepared transaction that was neither committed nor rolled back",
            "not seen": "a session that was idle with a session-level lock, or had already ended",
        }
        return what[blocker.state]
    who = f"application {blocker.application}" if blocker.application else f"role {blocker.user}"
    several = f" ({count_words(blocker.processes, 'session')})" if blocker.processes > 1 else ""
    doing = {
        IDLE: "idle in transaction after",
        CPU: "running",
    }.get(blocker.state, f"{class_words(blocker.state)} in")
    text = short_template(blocker.text, 60) if blocker.text else "an unknown statement"
    return f"{who}{several}, {doing} {text}"
