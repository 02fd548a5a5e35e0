"""Turn the way in which a service was started into the command and the variables of an experiment. Pure.

The service gets another port and another database, so both are replaced wherever they occur.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from uncork.experiment.spec.raw_file import fill_in
from uncork.experiment.spec.services import RESERVED, text_names
from uncork.model.services.program import HIDDEN, RunningProgram

DROPPED: Final = "(not stored)"
"""The value of a secret header in the plan of a load."""

_OF_SESSION: Final = re.compile(
    r"_|SHLVL|PWD|OLDPWD|TERM|TERM_.*|USER|USERNAME|LOGNAME|SHELL|LS_COLORS|LESS.*|MAIL|DISPLAY|EDITOR|VISUAL|PAGER|"
    r"HOSTNAME|COLORTERM|COLUMNS|LINES|PS1|HIST.*|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_.*|MANAGERPID.*|"
    r"LISTEN_(?:PID|PIDFDID|FDS|FDNAMES)|NOTIFY_SOCKET|PYTEST_.*|(XDG|SSH|DBUS|LC|GPG|UNCORK|VSCODE|GIT|SUDO|TMUX)_.*|TMUX"
)
"""Variables of a shell or a service manager rather than of the program."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART: Final = re.compile(
    r"(?:PG|DB_?|POSTGRES_?|POSTGRESQL_?|DATABASE_)"
    r"(?:(HOST|HOSTNAME)|(PORT)|(DATABASE|DBNAME|DB|NAME)|(USER|USERNAME)|(PASSWORD|PASSWD|PASS))"
)
_PARTS: Final = ("host", "port", "name", "user", "password")
_URI: Final = re.compile(r"(jdbc:)?postgres(?:ql)?(\+\w+)?://[^\s\"']+")
_WORDS: Final = re.compile(r"(?=.*\bdbname\s*=)(?=.*\b(host|port|user)\s*=).*", re.DOTALL)
_LONGEST: Final = 1000
_FILE: Final = re.compile(r"(?!-)[^\s:]*[./][^\s:]*")
_UNKNOWN: Final = "DATABASE"
"""The variable that marks an unknown way to the database."""
_STARTERS: Final = ("docker-proxy", "rootlessport", "containerd-shim", "kubectl", "ssh", "sshd", "systemd")
"""Programs that listen for a service which runs elsewhere."""


@dataclass(frozen=True, slots=True)
class ServiceStart:
    """How an experiment starts a service. `notes` are sentences about what was replaced or left out."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    notes: tuple[str, ...] = ()


def service_start(
    program: RunningProgram,
    port: int,
    database: str | None,
    files: Mapping[str, str] = MappingProxyType({}),
) -> ServiceStart | str:
    """Return how to start a service that ran like this, or a sentence about why that is unknown.

    `port` is where it listened; `database` is the connection string of its database, if known. `files` are
    the texts of files that its arguments and variables name. If one of them has the connection string, or
    nothing has it, the place becomes a mark to fill in: otherwise every variant would use the service's own
    database.
    """
    if not program.command:
        shown = f' ("{program.title}")' if program.title else ""
        return f"its process shows a title instead of its command{shown}"
    first = program.command[0].rpartition("/")[2]
    if first in _STARTERS:
        return f"{first} listens on the port and passes connections on, so the service runs elsewhere"
    name = None if database is None else _database_of(database)
    filled = _Filled(port, name, frozenset(path for path, text in files.items() if _connects(text, name)))
    words = [filled.word(word) for word in program.command]
    before, environment = filled.variables(program.environment or {})
    notes = [
        "The service as it ran during the load. Its port and its database are replaced by the variant's."
    ]
    if filled.left_out:
        notes.append(f"Left out, because an experiment cannot pass them on: {', '.join(filled.left_out)}.")
    if program.environment is None:
        notes.append("Its environment could not be read; add the variables that it needs.")
    hidden = [name for name, value in environment.items() if value == f"${{{name}}}"]
    if hidden:
        notes.append(f"Not stored, because they may be secrets: export {', '.join(hidden)} before the run.")
    if not filled.port_seen:
        notes.append(
            f"Port {port} occurs neither in its command nor in its variables; it must listen at PORT."
        )
    if database is not None and not filled.database_seen:
        notes.append("Its database occurs in neither; it must connect to DATABASE_URL.")
        environment[_UNKNOWN] = fill_in(
            "how the service finds its database, such as a variable with the value {database_url}; remove "
            "this line if it connects to DATABASE_URL"
        )
    # env is a program: it changes the folder and sets variables without a shell.
    command = ("env", f"--chdir={program.folder}", *before, *words)
    return ServiceStart(command, environment, tuple(notes))


class _Filled:
    """Replaces the port and the database in words and variables, and notes what it met."""

    def __init__(self, port: int, database: str | None, files: frozenset[str]) -> None:
        self._files = files
        self._port = re.compile(rf"(?<![\d.]){port}(?![\d.])")
        self._database = database
        self.port_seen = False
        self.database_seen = False
        self.left_out: list[str] = []

    def word(self, word: str) -> str:
        """Return a word of the command."""
        path = _path_in(word)
        if path in self._files:
            return self._copied(path)
        found = self._replaced(word)
        return fill_in(f"the secret in {word}") if HIDDEN in found else found

    def variables(self, environment: Mapping[str, str | None]) -> tuple[list[str], dict[str, str]]:
        """Return assignments for the command, of names that are reserved, and the other variables."""
        before: list[str] = []
        found: dict[str, str] = {}
        for name, value in environment.items():
            if _OF_SESSION.fullmatch(name) or name in ("PATH", "HOME", "LANG", "FOLDER"):
                continue
            if name in RESERVED:
                self._replaced(value or "")
                continue
            text = self._variable(name, value)
            if _NAME.fullmatch(name) is None or len(text) > _LONGEST or text_names(text):
                self.left_out.append(name)
            elif not name.startswith(("SERVICE_", "DATABASE_URL_")):
                found[name] = text
            elif text.startswith("${"):
                self.left_out.append(name)
            else:
                before.append(f"{name}={text}")
        return before, found

    def _variable(self, name: str, value: str | None) -> str:
        if value in self._files:
            return self._copied(value)
        part = _PART.fullmatch(name)
        if part is not None and self._database is not None and part.lastindex is not None:
            self.database_seen = True
            return f"{{database_{_PARTS[part.lastindex - 1]}}}"
        text = f"${{{name}}}" if value is None else self._replaced(value)
        return f"${{{name}}}" if HIDDEN in text else text

    def _copied(self, path: str) -> str:
        self.database_seen = True
        return fill_in(
            f"the path of a copy of {path} that connects to DATABASE_URL; that file names the service's own "
            "database, which no variant must use"
        )

    def _replaced(self, text: str) -> str:
        text = _URI.sub(self._uri, text)
        option = re.match(r"--?[A-Za-z][\w-]*=", text)
        rest = text[option.end() :] if option else text
        if _WORDS.fullmatch(rest) and self._is_ours(_database_of(rest)):
            self.database_seen = True
            return f"{option[0] if option else ''}{{database_url}}"
        found = self._port.sub("{port}", text)
        self.port_seen = self.port_seen or found != text
        return found

    def _uri(self, found: re.Match[str]) -> str:
        if not self._is_ours(_database_of(found[0])):
            return found[0]
        self.database_seen = True
        if found[1]:
            login = "user={database_user}&password={database_password}"
            return f"jdbc:postgresql://{{database_host}}:{{database_port}}/{{database_name}}?{login}"
        if found[2]:  # a driver of SQLAlchemy; a host in the query may also be a socket's folder
            place = "host={database_host}&port={database_port}&password={database_password}"
            return f"postgresql{found[2]}://{{database_user}}@/{{database_name}}?{place}"
        return "{database_url}"

    def _is_ours(self, name: str) -> bool:
        return not self._database or not name or name == self._database


def file_paths(program: RunningProgram) -> tuple[str, ...]:
    """Return what may be paths of files among the arguments and variables of a program."""
    words = [_path_in(word) for word in program.command[1:]]
    values = [value for value in (program.environment or {}).values() if value]
    return tuple(dict.fromkeys(word for word in (*words, *values) if _FILE.fullmatch(word)))


def _path_in(word: str) -> str:
    """Return an argument without its option: ``--config=/etc/app.ini`` gives ``/etc/app.ini``."""
    return word.partition("=")[2] if word.startswith("-") and "=" in word else word


def _connects(text: str, name: str | None) -> bool:
    found = [_database_of(match[0]) for match in _URI.finditer(text)]
    return any(not name or owner == name for owner in found)


def _database_of(conninfo: str) -> str:
    if "://" in conninfo:
        try:
            return urlsplit(conninfo.removeprefix("jdbc:")).path.strip("/")
        except ValueError:
            return ""
    named = re.search(r"\bdbname\s*=\s*'?([^\s']+)", conninfo)
    return named[1] if named else ""
