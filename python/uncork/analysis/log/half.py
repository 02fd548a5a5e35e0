"""The log half of a case, as its expected.toml defines it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncork import cases
from uncork.errors import UsageError
from uncork.requests.source import case_folder

__all__ = ["LogHalf", "log_half"]


@dataclass(frozen=True, slots=True)
class LogHalf:
    """The section ``[logs]`` of a case's expected.toml, with the SQL that it names.

    `ways` are the variants before and after. The background runs `script` (in pgbench's language) `rate`
    times a second over `clients` connections, on tables that `setup` creates beside the experiment's.
    """

    case: str
    question: str
    source: str
    levels: Mapping[str, list[str]]
    workload: str
    updater: str
    ways: tuple[str, str]
    background: str
    setup: str
    script: str
    rate: float
    clients: int
    figures: tuple[Mapping[str, Any], ...]


def log_half(name: str) -> LogHalf:
    """Return the log half of a case.

    Raises:
        UsageError: if there is no such case, or it has none.
    """
    folder = case_folder(name)
    data = _expected(folder)
    facts = data.get("logs")
    if facts is None:
        known = [one for one in cases.names() if "logs" in _expected(cases.path(one))]
        raise UsageError(
            f'the case "{name}" has no log half; {", ".join(known)} has one: uncork case logs {known[0]}'
        )
    beside = facts["background"]
    return LogHalf(
        case=name,
        question=facts["question"],
        source=data["source"],
        levels={factor: [level] for factor, level in facts["set"].items()},
        workload=facts["workload"],
        updater=facts["updater"],
        ways=(facts["before"], facts["after"]),
        background=beside["application"],
        setup=(folder / beside["setup"]).read_text(),
        script=(folder / beside["script"]).read_text(),
        rate=beside["rate"],
        clients=beside["clients"],
        figures=tuple(facts["figures"]),
    )


def _expected(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "expected.toml").read_text())
