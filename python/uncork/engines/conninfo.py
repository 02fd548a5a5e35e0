"""Resolve a server's address as libpq does: connection string, PG* variables, service file, password file.

libpq itself does the resolving, so its rules are not repeated here. uncork asks it to connect with
one last option that is invalid: libpq reads everything, and stops before it touches the network.
libpq chooses the default socket folder and the certificate files only later, while it connects;
this module applies the same rules for these.

Two things differ from libpq on purpose. A named file that does not exist is an error in every
`sslmode`; libpq ignores it. An option that demands a protection which the load engine does not have
is an error too. Only one host can be measured, so a list of hosts is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from uncork.errors import ConnectError, UsageError
from uncork.model.extras import install_command
from uncork.model.server import LOAD_APPLICATION

CONNECT_TIMEOUT_NS = 10_000_000_000
"""The default connect timeout; libpq would wait forever."""

SOCKET_FOLDERS = ("/var/run/postgresql", "/tmp")  # noqa: S108 (where servers put their sockets)
"""The folders in which distributions and PostgreSQL's own build put the Unix socket."""

_LAST_OPTION = "load_balance_hosts"
"""This option has no effect for a single host, and is the last one that libpq checks."""

_LAST_OPTION_SINCE = 160000

_SETTINGS = {"PGTZ": "timezone", "PGDATESTYLE": "datestyle", "PGGEQO": "geqo"}
"""Environment variables that libpq sends to the server as settings; PQconninfo does not list them."""

_UNSUPPORTED: dict[str, tuple[frozenset[str], str]] = {
    "gssencmode": (frozenset({"disable", "prefer"}), "the load engine does not speak GSSAPI"),
    "min_protocol_version": (frozenset({"3.0"}), "the load engine speaks protocol 3.0"),
    "replication": (frozenset({"false", "off", "no", "0"}), "load cannot use a replication connection"),
    "require_auth": (frozenset(), "the load engine does not check the authentication method"),
    "requirepeer": (frozenset(), "the load engine does not check the owner of the socket"),
    "ssl_max_protocol_version": (frozenset({"TLSv1.3"}), "the load engine speaks TLS 1.2 and 1.3"),
    "ssl_min_protocol_version": (
        frozenset({"TLSv1", "TLSv1.1", "TLSv1.2"}),
        "the load engine speaks TLS 1.2 and 1.3",
    ),
    "sslcertmode": (
        frozenset({"allow", "disable"}),
        "the load engine does not check whether the server requests the certificate",
    ),
    "sslcrl": (frozenset(), "the load engine does not support revocation lists"),
    "sslcrldir": (frozenset(), "the load engine does not support revocation lists"),
    "target_session_attrs": (frozenset({"any"}), "uncork measures exactly the server it is given"),
}
"""Options that the load engine does not support: their values that have no effect, and the reason."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server, the user, and the encryption options, under libpq's names.

    `host` is a name, an address, or the folder of a Unix socket. `hostaddr`, if given, is the address to
    connect to instead. `connect_timeout_ns` 0 means no limit. `password` is a secret: never store or show it.
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
        """Whether the host is a Unix socket, which is never encrypted and always on this machine."""
        return self.hostaddr is None and self.host.startswith(("/", "@"))

    @property
    def place(self) -> str:
        """The server's address with user and database, as text without secrets."""
        return f"{self.user}@{self.host}:{self.port}/{self.database}"

    def conninfo(self, database: str | None = None) -> str:
        """Return the libpq connection string for this address, or for another database on the server.

        It contains the password, so do not show it.
        """
        known = asdict(self)
        name, timeout_ns = known.pop("database"), known.pop("connect_timeout_ns")
        own = {
            "dbname": name if database is None else database,
            "connect_timeout": -(-timeout_ns // 1_000_000_000),
            "options": self.options or None,
            "sslnegotiation": None if self.sslnegotiation == "postgres" else self.sslnegotiation,
            "sslsni": int(self.sslsni),
        }
        return make_conninfo(**{**known, **own})

    def uri(self, database: str) -> str:
        """Return the URI of a database on this server, for libpq and for drivers that accept its URIs.

        It contains the password, so do not show it.
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
    password: str | None = None,
) -> Address:
    """Resolve a URI or key=value string to one server. Keyword arguments override the string.

    Whatever neither gives comes from the service file, then from the PG* variables, then from
    libpq's defaults. A password that is given nowhere comes from the password file. Raises
    ConnectError if the string, a service or a file is invalid; UsageError if an option demands
    something that the load engine does not support.
    """
    known = _resolved(conninfo, host=host, port=port, user=user, dbname=dbname, password=password)
    for option in ("host", "hostaddr", "port"):
        if "," in known.get(option, ""):
            raise UsageError(
                f'{option} "{known[option]}" lists several servers, but uncork measures one; name one server'
            )
    for option, (harmless, reason) in _UNSUPPORTED.items():
        value = known.get(option, "")
        if value and value not in harmless:
            raise UsageError(f'{option} "{value}" is not supported: {reason}; remove the option')
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


def is_conninfo(text: str) -> bool:
    """Say whether a text is a URI or key=value pairs, and not only the name of a database, as libpq does."""
    return re.match(r"postgres(ql)?://|[^/]*=", text) is not None


def composed(conninfo: str = "", **words: str | int | None) -> str:
    """Return a connection string with options changed; None leaves an option as it is.

    Raises ConnectError if the string is invalid.
    """
    try:
        return make_conninfo(conninfo, **{name: value for name, value in words.items() if value is not None})
    except psycopg.ProgrammingError as error:
        message = f"the connection string is not valid: {_without_secrets(str(error))}; "
        raise ConnectError(f'{message}write postgresql://user@host/database or "host=… dbname=…"') from None


def _resolved(conninfo: str, **words: str | int | None) -> dict[str, str]:
    """Let libpq resolve the options; return the values it found, without empty ones."""
    if pq.version() < _LAST_OPTION_SINCE:
        newer = install_command("psycopg[binary]")
        raise UsageError(f"libpq {pq.version() // 10000} is too old; install a newer one: {newer}")
    text = composed(composed(conninfo, **words), **{_LAST_OPTION: "to go no further"})
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
    """Remove libpq's quotes from a connection string, which may be a password; keep options and signs."""
    if complaint.startswith(("invalid connection option", "invalid URI query parameter")):
        return complaint.strip()
    signs = r'"[=@:/\[\]]+"'
    return re.sub(rf'({signs})|"[\s\S]*"', lambda found: found[1] or '"…"', complaint.strip())


def _place(known: Mapping[str, str]) -> tuple[str, str | None, int]:
    """Return host, hostaddr and port. Without a host, use the folder that has a socket for the port."""
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
    """Add the settings that libpq sends because of environment variables."""
    words = [options] if options else []
    for variable, setting in _SETTINGS.items():
        value = environment.get(variable, "")
        if value and value.lower() != "default":
            escaped = re.sub(r"([\\\s])", r"\\\1", value)
            words.append(f"-c {setting}={escaped}")
    return " ".join(words)


def _certificates(known: Mapping[str, str]) -> dict[str, str | None]:
    """Return the certificate files: the named ones, otherwise the ones that exist in ~/.postgresql."""
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
            f"sslmode {address.sslmode} needs a root certificate, but {Path.home()}/.postgresql/root.crt "
            "does not exist; set sslrootcert to a file, or to system"
        )
    if address.sslmode == "verify-full" and not named:
        raise ConnectError("sslmode verify-full needs the server's name; set host as well as hostaddr")
