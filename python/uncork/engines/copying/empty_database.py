"""Create the empty database that becomes a copy, with the source's encoding and, if possible, its locale."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from uncork.engines.connecting import connect_error, connect_to_watch
from uncork.engines.copying.ddl import identifier
from uncork.errors import SetupError, UsageError
from uncork.model.database.copy import NotCopied
from uncork.model.database.names import literal

_LOCALE: Final = """
SELECT pg_encoding_to_char(encoding)::text, datcollate::text, datctype::text,
       coalesce(to_jsonb(d) ->> 'datlocprovider', 'c'),
       coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')
  FROM pg_database d WHERE datname = current_database()
"""
_USED: Final = """
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' AND c.relkind IN ('r', 'p', 'v', 'm')
"""
_FALLBACKS: Final = ("C.UTF-8", "C")


def make_database(source: psycopg.Connection[Any], target: str) -> tuple[bool, tuple[NotCopied, ...]]:
    """Return whether the database was created, and what of the source's locale it lacks.

    Raises:
        ConnectError: if the server of the copy cannot be reached.
        SetupError: if the database exists and has tables, or cannot be created.
        UsageError: if `target` names no database.
    """
    name = str(conninfo_to_dict(target).get("dbname") or "")
    if not name:
        raise UsageError("the connection string of the copy names no database; add dbname=NAME")
    with closing(_connect(make_conninfo(target, dbname="postgres"))) as control:
        try:
            if control.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                return False, _existing(source, target)
            return True, _create(source, control, name)
        except psycopg.Error as error:
            reason = error.diag.message_primary or " ".join(str(error).split())
            raise SetupError(f"cannot create database {name} for the copy: {reason}") from error


def _connect(conninfo: str) -> psycopg.Connection[Any]:
    try:
        return connect_to_watch(conninfo)
    except psycopg.Error as error:
        raise connect_error(error) from error


def drop_database(target: str) -> None:
    """Drop the database of a copy that failed.

    Raises:
        psycopg.Error: if that is not possible.
    """
    name = str(conninfo_to_dict(target)["dbname"])
    with closing(connect_to_watch(make_conninfo(target, dbname="postgres"))) as control:
        control.execute(f"DROP DATABASE IF EXISTS {identifier(name)} WITH (FORCE)".encode())


def _existing(source: psycopg.Connection[Any], target: str) -> tuple[NotCopied, ...]:
    with closing(_connect(target)) as connection:
        row = connection.execute(_USED.encode()).fetchone()
        if row is None or row[0]:
            raise SetupError(
                f"database {connection.info.dbname} has tables already; name a database that does not exist"
            )
        wanted, found = source.execute(_LOCALE).fetchone(), connection.execute(_LOCALE).fetchone()
    if wanted is None or found is None or wanted == found:
        return ()
    if wanted[0] != found[0]:
        raise SetupError(
            f"the source has the encoding {wanted[0]}, the database of the copy {found[0]}; name a database "
            "that does not exist"
        )
    return (_other_locale(wanted[4] or wanted[1], f"the database of the copy has {found[4] or found[1]}"),)


def _create(
    source: psycopg.Connection[Any], control: psycopg.Connection[Any], name: str
) -> tuple[NotCopied, ...]:
    row = source.execute(_LOCALE).fetchone()
    assert row is not None  # noqa: S101 -- a session's own database is in pg_database
    encoding, collate, ctype, provider, locale = row
    create = f"CREATE DATABASE {identifier(name)} TEMPLATE template0 ENCODING {literal(encoding)}"
    libc = f" LC_COLLATE {literal(collate)} LC_CTYPE {literal(ctype)}"
    if control.info.server_version >= 150000:
        kinds = {"i": " LOCALE_PROVIDER icu ICU_LOCALE ", "b": " LOCALE_PROVIDER builtin BUILTIN_LOCALE "}
        own = f"{kinds[provider]}{literal(locale)}" if provider in kinds else " LOCALE_PROVIDER libc"
        plain = " LOCALE_PROVIDER libc"
    else:
        own = plain = ""
    attempts = [own + libc]
    for other in _FALLBACKS:
        same = f" LC_COLLATE {literal(other)} LC_CTYPE {literal(other)}"
        attempts += [own + same] if provider != "c" else []
        attempts.append(plain + same)
    reason = ""
    for place, attempt in enumerate(attempts):
        try:
            control.execute((create + attempt).encode())
        except psycopg.Error as error:
            if control.broken or isinstance(error, psycopg.errors.DiskFull) or place == len(attempts) - 1:
                raise
            reason = reason or error.diag.message_primary or str(error)
            continue
        kept = place == 0 or (provider != "c" and attempt.startswith(own))
        return () if kept else (_other_locale(locale or collate, reason),)
    return ()


def _other_locale(locale: str, why: str) -> NotCopied:
    return NotCopied(
        f"locale {locale} of the database",
        why,
        "text sorts and compares in another order, so plans and timings of ORDER BY, ranges and LIKE differ",
    )
