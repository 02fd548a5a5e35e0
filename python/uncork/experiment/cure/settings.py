"""Which settings a copy can prove, and why the others cannot be proven there. Pure."""

from __future__ import annotations

import re
from typing import Final

from uncork.experiment.spec.sqltext import statements_in

_SET: Final = re.compile(
    r"""
    (?: SET (?:\s+(?:SESSION|LOCAL))?
      | ALTER \s+ SYSTEM \s+ SET
      | ALTER \s+ (?:DATABASE|ROLE|USER) \s+ (?:"(?:[^"]|"")*"|[\w$:]+)
            (?:\s+IN\s+DATABASE\s+(?:"(?:[^"]|"")*"|[\w$:]+))? \s+ SET
    )
    \s+ (?P<name>[A-Za-z_][\w.]*) \s* (?:=|\bTO\b) \s* (?P<value>\S.*)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_RELOAD: Final = re.compile(r"SELECT\s+pg_reload_conf\s*\(\s*\)", re.IGNORECASE)

_PROVABLE: Final = re.compile(
    r"""enable_\w+ | jit\w* | geqo\w* | work_mem | hash_mem_multiplier | temp_buffers
      | (?:random|seq)_page_cost | cpu_\w+_cost | parallel_\w+_cost | effective_cache_size
      | (?:from|join)_collapse_limit | plan_cache_mode | max_parallel_workers_per_gather
      | max_parallel_workers | min_parallel_\w+_scan_size | default_statistics_target
      | cursor_tuple_fraction | constraint_exclusion | recursive_worktable_factor""",
    re.VERBOSE,
)
"""Settings of the planner and of one statement's memory, which a database can have of its own."""

_DURABILITY: Final = frozenset(
    ["synchronous_commit", "fsync", "full_page_writes", "wal_sync_method", "synchronous_standby_names"]
)
_LIMITS: Final = re.compile(r"\w+_timeout")


class SettingRefused(Exception):
    """A copy cannot prove a setting; the text is the reason, as a sentence."""


def settings_in(sql: str) -> dict[str, str]:
    """Return the settings that SQL sets, by name, if a copy can prove all of them.

    Accepted are ``SET``, ``ALTER SYSTEM SET``, ``ALTER DATABASE ... SET`` and ``ALTER ROLE ... SET``. The
    experiment sets them for the variant's database, and therefore for every statement.

    Raises:
        SettingRefused: with the reason.
    """
    found = {}
    for statement in statements_in(sql):
        if reloads(statement):
            continue
        setting = setting_in(statement)
        if setting is None:
            raise SettingRefused("uncork cannot set it for one database of a copy.")
        _refuse(setting[0])
        found[setting[0]] = setting[1]
    if not found:
        raise SettingRefused("It sets nothing.")
    return found


def setting_in(statement: str) -> tuple[str, str] | None:
    """Return the name and the value of the setting that a statement sets; None if it sets none."""
    match = _SET.fullmatch(statement)
    return None if match is None else (match["name"].lower(), _value(match["value"]))


def reloads(statement: str) -> bool:
    """Return whether a statement makes the server read its configuration again."""
    return _RELOAD.fullmatch(statement) is not None


def _refuse(name: str) -> None:
    if name in _DURABILITY:
        raise SettingRefused(
            f"{name} decides which committed changes a crash can lose. uncork shows it as a trade and never "
            "tries it."
        )
    if _LIMITS.fullmatch(name):
        raise SettingRefused(f"{name} makes statements fail after a time; it makes none of them faster.")
    if not _PROVABLE.fullmatch(name):
        raise SettingRefused(
            f"The effect of {name} depends on the memory, the disk and the traffic of the server. Those of a "
            "copy are different, so a verdict would say nothing about the server."
        )


def _value(text: str) -> str:
    plain = text.strip()
    if len(plain) > 1 and plain[0] == plain[-1] == "'":
        return plain[1:-1].replace("''", "'")
    return plain
