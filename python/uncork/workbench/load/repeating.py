"""Repeat a stored load, on the same target or on another.

A stored load holds its whole request except secrets. Passwords and the values of secret headers are never
stored: they come from environment variables or the password file, or are given again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from uncork.engines.conninfo import Address
from uncork.errors import UsageError
from uncork.load.again import http_spec_of, sql_spec_of
from uncork.model.http import HttpServer
from uncork.model.load import LoadOutcome
from uncork.requests.jobs import AnyLoad, HttpJob, LoadJob, ServerOptions, TablesOptions
from uncork.store.loads import LoadReader
from uncork.workbench.load.sessions import Notify, new_load


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a load: a PostgreSQL server (`dsn`), a service (`url`), or the original if neither."""

    dsn: str | None = None
    url: str | None = None


AS_THEN = Target()


def repeated_job(
    folder: Path, target: Target = AS_THEN, *, headers: Sequence[tuple[str, str]] = (), command: str = ""
) -> AnyLoad:
    """Return the job of a stored load, for another target if given; `command` then repeats it.

    `headers` holds the names and values of secret headers, which are not stored.

    Raises:
        UsageError: if the run is not a load, the target is of the wrong kind, or a secret is missing.
        ConnectError: if the connection string of another server is wrong.
        StoreError: if the run is damaged.
    """
    with closing(LoadReader(folder)) as reader:
        manifest = reader.manifest
        if manifest.kind != "load":
            raise UsageError(f"{manifest.id} is a run of kind {manifest.kind}, not a load")
        plan = reader.plan()
    if "merged" in manifest.options or "part" in manifest.options:
        raise UsageError(
            f"{manifest.id} came from several processes (--shard), and cannot be repeated by one; send "
            "its parts again and compare the merged runs"
        )
    again = manifest.options.get("again")
    before = str(manifest.options.get("command", ""))
    if again is None:
        raise UsageError(
            f"{manifest.id} does not store its whole request and cannot be repeated; run it again: {before}"
        )
    if plan.get("http") is not None:
        return _http_job(manifest.id, plan, again, target, headers, command or before)
    return _sql_job(manifest.id, plan, again, target, command or before)


def carried_out(root: Path, job: AnyLoad, notify: Notify) -> tuple[Path, LoadOutcome]:
    """Carry out a job as a new load stored in `root`; return its folder and outcome.

    Raises UncorkError if the load cannot start, or its result cannot be stored.
    """
    session = new_load(root, job)
    return session.folder, session.run(None, notify)


def _sql_job(id: str, plan: dict[str, Any], again: dict[str, Any], target: Target, command: str) -> LoadJob:
    if target.url is not None:
        raise UsageError(
            f"{id} is a load by SQL: name its server with dsn=postgresql://..., not url={target.url}"
        )
    server = _server(id, plan, again, target)
    return LoadJob(
        spec=replace(sql_spec_of(plan), variables=dict(again["variables"])),
        server=server,
        tables=TablesOptions(**again["tables"]) if server.embedded and again["tables"] else None,
        needs_tables=again["needs_tables"],
        scale=again["scale"],
        vacuum=again["vacuum"],
        command=command,
    )


def _server(id: str, plan: dict[str, Any], again: dict[str, Any], target: Target) -> ServerOptions:
    if target.dsn is not None:
        wanted = ServerOptions(dsn=target.dsn)
        wanted.address()  # reports a wrong connection string before anything is measured
        return wanted
    if again["embedded"]:
        return ServerOptions(
            embedded=True, binaries=None if again["binaries"] is None else Path(again["binaries"])
        )
    wanted = ServerOptions(dsn=Address(**plan["connection"]).conninfo())
    if again["password"] and wanted.address().password is None:
        raise UsageError(
            f"{id} used a password, which is never stored: set PGPASSWORD, add it to ~/.pgpass, or name the "
            "server again with its password"
        )
    return wanted


def _http_job(
    id: str,
    plan: dict[str, Any],
    again: dict[str, Any],
    target: Target,
    headers: Sequence[tuple[str, str]],
    command: str,
) -> HttpJob:
    if target.dsn is not None:
        raise UsageError(f"{id} is a load by HTTP: name its service with url=http://HOST:PORT, not dsn")
    spec = http_spec_of(plan, headers, os.environ)
    if spec.trace is not None:
        spec = replace(spec, trace=secrets.token_hex(3))  # traces of both runs can be in one log
    if target.url is not None:
        spec = replace(spec, server=_service(target.url, spec.server))
        if spec.version == "3" and not spec.server.tls:
            raise UsageError(
                f"url={target.url}: {id} is a load by HTTP/3, which is always encrypted: write https://"
            )
    return HttpJob(spec, command, postgres=again["postgres"])


def _service(url: str, before: HttpServer) -> HttpServer:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise UsageError(f"url={url}: write http://HOST:PORT or https://HOST:PORT")
    if parts.path not in ("", "/") or parts.query:
        raise UsageError(
            f"url={url}: requests keep their own paths, so write only {parts.scheme}://HOST:PORT"
        )
    tls = parts.scheme == "https"
    return replace(before, host=parts.hostname, port=port or (443 if tls else 80), tls=tls)
