"""The settings of a source that plans, caches and answers depend on, and that a copy needs too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from uncork.engines.connecting import connect_errors, connect_to_watch, reason_of
from uncork.engines.copying.objects import identifier
from uncork.model.database.copy import NotCopied
from uncork.model.database.names import literal
from uncork.model.database.role_settings import LIST_SETTINGS, NO_PLAN_PATTERN, PLAN_PATTERN, PLAN_SETTINGS

_CHOSEN: Final = """
SELECT name, coalesce(own.value, current_setting(name)), context
  FROM pg_settings
  LEFT JOIN (SELECT split_part(entry, '=', 1) AS own_name, substr(entry, strpos(entry, '=') + 1) AS value
               FROM pg_db_role_setting CROSS JOIN unnest(setconfig) AS entry
              WHERE setrole = 0
                AND setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())) AS own
    ON lower(own_name) = lower(name)
 WHERE (name = ANY(%s) OR name ~ %s) AND name !~ %s
   AND (own.value IS NOT NULL
        OR source NOT IN ('default', 'override', 'client', 'session', 'user', 'database user'))
 ORDER BY name
"""
"""The settings of the reading role are left out: other roles execute the statements."""
_SESSION: Final = ("user", "superuser", "backend", "superuser-backend")


@dataclass(frozen=True, slots=True)
class ChosenSetting:
    """A setting that the source does not have by default. `at_start` means a database cannot have its own."""

    name: str
    value: str
    at_start: bool


def read_settings(connection: psycopg.Connection[Any]) -> tuple[ChosenSetting, ...]:
    """Return the settings of the connection's database, apart from defaults and those of roles.

    Raises psycopg.Error if the connection fails.
    """
    parameters = [list(PLAN_SETTINGS), PLAN_PATTERN, NO_PLAN_PATTERN]
    rows = connection.execute(_CHOSEN, parameters).fetchall()
    return tuple(ChosenSetting(name, value, context not in _SESSION) for name, value, context in rows)


def start_settings(conninfo: str) -> dict[str, str]:
    """Return the settings of a source that a server of copies must be started with, by name.

    `shared_buffers` can be larger than this machine's memory: the caller decides. Raises
    ConnectError if the source cannot be reached.
    """
    with connect_errors(), connect_to_watch(conninfo) as connection:
        return {setting.name: setting.value for setting in read_settings(connection) if setting.at_start}


def apply_settings(
    connection: psycopg.Connection[Any], settings: Iterable[ChosenSetting]
) -> tuple[NotCopied, ...]:
    """Set settings for the connection's database, and return those that it cannot have.

    Raises psycopg.Error if the connection fails.
    """
    missing = []
    name = identifier(connection.info.dbname)
    query = "SELECT name, current_setting(name) FROM pg_settings"
    now: Mapping[str, str] = dict(connection.execute(query).fetchall())
    for setting in settings:
        what = f"setting {setting.name} = {setting.value}"
        lost = "plans and timings can differ from the source's"
        if setting.at_start:
            if setting.name in now and now[setting.name] != setting.value:
                why = f"a server has it from its start; the copy's has {now[setting.name]}"
                missing.append(NotCopied(what, why, lost))
            continue
        value = setting.value if setting.name in LIST_SETTINGS and setting.value else literal(setting.value)
        try:
            connection.execute(f"ALTER DATABASE {name} SET {identifier(setting.name)} = {value}".encode())
        except psycopg.Error as error:
            if connection.broken:
                raise
            missing.append(NotCopied(what, reason_of(error), lost))
    return tuple(missing)
