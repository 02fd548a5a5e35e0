"""Where a server is, as libpq understands it: connection string, PG* variables, service and password file.

libpq itself resolves; nothing of its rules is written down here twice. It is asked to connect with one last
option that is not valid, so that it reads everything and stops before it touches the network. What it decides
only later, while it connects, is decided here by its rules: the default socket folder and certificate files.

Two things differ on purpose. A file that is named and does not exist is an error in every `sslmode`; libpq
goes on without it. And an option that demands a protection which the load engine does not have is an error
too. Of several hosts only one can be measured, so that a list of them is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from uncork.errors import ConnectError, UsageError
from uncork.model.application import LOAD_APPLICATION
from uncork.model.extras import install_command

__all__ = ["Address", "resolve"]

CONNECT_TIMEOUT_NS = 10_000_000_000
"""The time to connect where nobody says how long; libpq would wait without end."""

SOCKET_FOLDERS = ("/var/run/postgresql", "/tmp")  # noqa: S108 (where servers put their sockets)
"""Where distributions and PostgreSQL's own build put the Unix socket."""

_LAST_OPTION = "load_balance_hosts"
"""Means nothing for a single host, and is the last option that libpq checks."""

_LAST_OPTION_SINCE = 160000

_SETTINGS = {"PGTZ": "timezone", "PGDATESTYLE": "datestyle", "PGGEQO": "geqo"}
"""Variables that libpq sends to the server as settings; PQconninfo does not list them."""

_UNSUPPORTED: dict[str, tuple[frozenset[str], str]] = {
    "gssencmode": (frozenset({"disable", "prefer"}), "the load engine does not speak GSSAPI"),
    "min_protocol_version": (frozenset({"3.0"}), "the load engine speaks protocol 3.0"),
    "replication": (frozenset({"false", "off", "no", "0"}), "load is not sent over replication connections"),
    "require_auth": (frozenset(), "the load engine does not check the authentication method"),
    "requirepeer": (frozenset(), "the load engine does not check who owns the socket"),
    "ssl_max_protocol_version": (frozenset({"TLSv1.3"}), "the load engine speaks TLS 1.2 and 1.3"),
    "ssl_min_protocol_version": (
        frozenset({"TLSv1", "TLSv1.1", "TLSv1.2"}),
        "the load engine speaks TLS 1.2 and 1.3",
    ),
    "sslcertmode": (frozenset({"allow", "disable"}), "the load engine does not check who asks for it"),
    "sslcrl": (frozenset(), "the load engine does not know revocation lists"),
    "sslcrldir": (frozenset(), "the load engine does not know revocation lists"),
    "target_session_attrs": (frozenset({"any"}), "uncork measures the one server it is given"),
}
"""Options that demand what load cannot fulfil: the values that demand nothing, and why not."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, as whom to connect, and what is demanded of encryption; the words are libpq's.

    `host` is a name, an address or the folder of a Unix socket; `hostaddr`, if given, is where to connect in
    its place. `connect_timeout_ns` 0 is without a bound. `password` is a secret: it is never stored or shown.
    """

    host: str
    port: int
    user: str
    database: str
    password: str | None = field(default=None, repr=False)
    hostaddr: str | None = None
    options: str = ""
    application_name: str = LOAD_APPLICATION
    connect_timeout_ns: int = CONNECT_TIMEOUT_NS
    sslmode: str = "prefer"
    sslnegotiation: str = "postgres"
    sslrootcert: str | None = None
    sslcert: str | None = None
    sslkey: str | None = None
    sslsni: bool = True
    channel_binding: str = "prefer"

    @property
    def on_socket(self) -> bool:
        """Whether the host is a Unix socket: never encrypted, and on this machine."""
        return self.hostaddr is None and self.host.startswith(("/", "@"))

    def conninfo(self, database: str | None = None) -> str:
        """Return the connection string that leads libpq to the same place, or to another database there.

        It holds the password: it is not to be shown.
        """
        return make_conninfo(
            host=self.host,
            hostaddr=self.hostaddr,
            port=self.port,
            user=self.user,
            dbname=self.database if database is None else database,
            password=self.password,
            options=self.options or None,
            application_name=self.application_name,
            connect_timeout=-(-self.connect_timeout_ns // 1_000_000_000),
            sslmode=self.sslmode,
            sslnegotiation=None if self.sslnegotiation == "postgres" else self.sslnegotiation,
            sslrootcert=self.sslrootcert,
            sslcert=self.sslcert,
            sslkey=self.sslkey,
            sslsni=int(self.sslsni),
            channel_binding=self.channel_binding,
        )

    def uri(self, database: str) -> str:
        """Return the URI that leads libpq, and drivers that read such URIs, to a database there.

        It holds the password: it is not to be shown.
        """
        login = quote(self.user, safe="") + (
            "" if self.password is None else f":{quote(self.password, safe='')}"
        )
        words: dict[str, str] = {}
        if self.on_socket:
            place, words = "", {"host": self.host, "port": str(self.port)}
        else:
            place = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
            place = f"{place}:{self.port}"
            files = {"sslrootcert": self.sslrootcert, "sslcert": self.sslcert, "sslkey": self.sslkey}
            words = {"hostaddr": self.hostaddr or "", "sslmode": self.sslmode}
            words |= {name: path or "" for name, path in files.items()}
        words["options"] = self.options
        query = urlencode({name: word for name, word in words.items() if word}, quote_via=quote)
        return f"postgresql://{login}@{place}/{quote(database, safe='')}{'?' if query else ''}{query}"


def resolve(
    conninfo: str = "",
    *,
    host: str | None = None,
    port: int | None = None,
    user: str | None = None,
    dbname: str | None = None,
) -> Address:
    """Resolve a URI or key=value string, with words that come before it, to one server.

    What neither names comes from the service file, then from the PG* variables, then from libpq's defaults;
    the password, if nothing names it, from the password file.

    Raises:
        ConnectError: if the string, a service or a file is wrong.
        UsageError: if an option demands what load cannot fulfil.
    """
    known = _resolved(conninfo, host=host, port=port, user=user, dbname=dbname)
    for option in ("host", "hostaddr", "port"):
        if "," in known.get(option, ""):
            raise UsageError(
                f'{option} "{known[option]}" names several servers, and uncork measures one; name only that'
            )
    for option, (harmless, reason) in _UNSUPPORTED.items():
        value = known.get(option, "")
        if value and value not in harmless:
            raise UsageError(f'{option} "{value}" is not supported: {reason}; leave it out')
    place, hostaddr, number = _place(known)
    address = Address(
        host=place,
        hostaddr=hostaddr,
        port=number,
        user=known["user"],
        database=known["dbname"],
        password=known.get("password"),
        options=_options(known.get("options", ""), os.environ),
        application_name=(
            known.get("application_name") or known.get("fallback_application_name") or LOAD_APPLICATION
        ),
        connect_timeout_ns=_timeout_ns(known.get("connect_timeout", "")),
        sslmode=known["sslmode"],
        sslnegotiation=known.get("sslnegotiation", "postgres"),
        sslsni=known.get("sslsni", "1") == "1",
        channel_binding=known["channel_binding"],
        **_certificates(known),
    )
    _check_verification(address, named=bool(known.get("host")))
    return address


def _resolved(conninfo: str, **words: str | int | None) -> dict[str, str]:
    """Let libpq resolve; return what it found, without what it left empty."""
    if pq.version() < _LAST_OPTION_SINCE:
        newer = install_command("psycopg[binary]")
        raise UsageError(f"libpq {pq.version() // 10000} is too old; install a newer one: {newer}")
    try:
        wanted = make_conninfo(
            conninfo, **{name: value for name, value in words.items() if value is not None}
        )
        text = make_conninfo(wanted, **{_LAST_OPTION: "to go no further"})
    except psycopg.ProgrammingError as error:
        message = f"the connection string is not valid: {_without_secrets(str(error))}; "
        raise ConnectError(f'{message}write postgresql://user@host/database or "host=… dbname=…"') from None
    connection = pq.PGconn.connect_start(text.encode())
    try:
        complaint = " ".join(connection.error_message.decode(errors="replace").split())
        if _LAST_OPTION not in complaint:
            raise ConnectError(f"the connection options are not valid: {complaint}; correct them")
        found = {
            option.keyword.decode(): option.val.decode(errors="surrogateescape")
            for option in connection.info
            if option.val
        }
        found["dbname"] = connection.db.decode()
        found["password"] = connection.password.decode()
        found.setdefault("host", "")
        if not found["host"] and not found.get("hostaddr"):
            found["default host"] = connection.host.decode()
    finally:
        connection.finish()
    return {name: value for name, value in found.items() if value}


def _without_secrets(complaint: str) -> str:
    """Drop what libpq quotes from a connection string, which may be a password; keep options and signs."""
    if complaint.startswith(("invalid connection option", "invalid URI query parameter")):
        return complaint.strip()
    signs = r'"[=@:/\[\]]+"'
    return re.sub(rf'({signs})|"[\s\S]*"', lambda found: found[1] or '"…"', complaint.strip())


def _place(known: Mapping[str, str]) -> tuple[str, str | None, int]:
    """Choose host, address in its place, and port; without a host, the folder with the port's socket."""
    try:
        port = int(known["port"])
    except ValueError:
        port = 0
    if not 0 < port <= 65535:
        raise ConnectError(f'port "{known["port"]}" is not a number from 1 to 65535; correct it')
    host, hostaddr = known.get("host"), known.get("hostaddr")
    if host or hostaddr:
        return host or str(hostaddr), hostaddr, port
    default = known["default host"]
    folders = dict.fromkeys((*SOCKET_FOLDERS, default))
    chosen = (folder for folder in folders if (Path(folder) / f".s.PGSQL.{port}").exists())
    return next(chosen, default), None, port


def _timeout_ns(text: str) -> int:
    if not text:
        return CONNECT_TIMEOUT_NS
    try:
        return max(int(text), 0) * 1_000_000_000
    except ValueError:
        raise ConnectError(f'connect_timeout "{text}" is not a number of seconds; correct it') from None


def _options(options: str, environment: Mapping[str, str]) -> str:
    """Add the settings that libpq sends because of variables."""
    words = [options] if options else []
    for variable, setting in _SETTINGS.items():
        value = environment.get(variable, "")
        if value and value.lower() != "default":
            escaped = re.sub(r"([\\\s])", r"\\\1", value)
            words.append(f"-c {setting}={escaped}")
    return " ".join(words)


def _certificates(known: Mapping[str, str]) -> dict[str, str | None]:
    """Choose the certificate files: those named, else those in ~/.postgresql that exist."""
    folder = Path.home() / ".postgresql"

    def default(name: str) -> str | None:
        path = folder / name
        return str(path) if path.exists() else None

    certificate = known.get("sslcert") or default("postgresql.crt")
    if known.get("sslcertmode") == "disable":
        certificate = None
    key = None
    if certificate is not None:
        key = known.get("sslkey") or str(folder / "postgresql.key")
    return {
        "sslrootcert": known.get("sslrootcert") or default("root.crt"),
        "sslcert": certificate,
        "sslkey": key,
    }


def _check_verification(address: Address, *, named: bool) -> None:
    if address.on_socket or address.sslmode not in {"verify-ca", "verify-full"}:
        return
    if address.sslrootcert is None:
        raise ConnectError(
            f"sslmode {address.sslmode} needs to know whom to trust, and {Path.home()}/.postgresql/root.crt "
            "does not exist; give sslrootcert (a file, or system)"
        )
    if address.sslmode == "verify-full" and not named:
        raise ConnectError("sslmode verify-full needs the server's name; give host besides hostaddr")
