"""The name of a stored run as a person would say it. Pure."""

from __future__ import annotations

from typing import Final

from uncork.model.stored_run import StoredRun

_PREFIXES: Final = {
    "load": ("load: ", "load of "),
    "sweep": ("sweep of ", "sweep of "),
    "log": ("log: ", "log "),
    "database": ("database: ", "database "),
    "cpu": ("stacks: ", "CPU of "),
    "service": ("service: ", "service at "),
    "cure": ("cure: ", "cure of "),
    "together": ("together: ", "loads together: "),
}
"""How the stored question of each kind begins, and how the title begins instead."""
_LONGEST: Final = 80


def run_title(run: StoredRun) -> str:
    """Return the name given to a run, or else what it measured, such as ``load of orders.sql``."""
    if run.names:
        return run.names[0]
    if run.kind == "guard" or run.name.startswith("guard-"):
        return f"guard of {run.name.removeprefix('guard-')}"
    if run.kind == "import":
        return run.question or run.name
    before, title = _PREFIXES.get(run.kind, ("", ""))
    if not before or not run.question.startswith(before):
        return run.name
    what = run.question.removeprefix(before)
    if run.kind == "sweep":
        axis, _, scripts = what.partition(": ")
        what = f"{scripts} over {axis}" if scripts else axis
    elif run.kind in ("load", "database"):
        what = what.rpartition(", ")[0] or what  # the protocol, the rate of samples
    text = f"{title}{what}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"
