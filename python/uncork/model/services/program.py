"""A program that runs: how it was started, without secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from uncork.model.records import Record
from uncork.model.redaction import is_secret, redact

HIDDEN: Final = "***"
"""Stands for a secret."""

_SECRET_NAMES: Final = re.compile(r"PASS|PWD|PRIVATE|SALT|SIGNING|SESSION|WEBHOOK", re.IGNORECASE)
_PLACES: Final = re.compile(r".*_(FILE|PATH|DIR|CERTS?|BUNDLE)", re.IGNORECASE)
"""Variables that say where a secret is, rather than the secret."""
_LOGIN: Final = re.compile(r"(://[^:/@\s]*):[^@\s]*@")
_TOKEN: Final = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9+=_-]{20,}")
"""Letters and digits without a break: a key rather than a name, a path or a number."""
_OPTION: Final = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)


class RunningProgram(Record):
    """How a program was started.

    `command` is its program, with an absolute path, and its arguments; empty if it is unknown, for example
    because the process has changed its title, which is then in `title`. `environment` has its variables; the
    value is None if it may be a secret. The environment is None if it cannot be read. Passwords in
    connection strings, and the values of arguments that may be secrets, are `HIDDEN`.
    """

    command: tuple[str, ...]
    folder: str
    environment: Mapping[str, str | None] | None
    title: str = ""


def stored_program(
    command: Sequence[str], folder: str, environment: Mapping[str, str] | None, title: str = ""
) -> RunningProgram:
    """Return a program without the values that may be secrets."""
    words: list[str] = []
    secret = False
    for word in command:
        option = _OPTION.fullmatch(word)
        if secret and option is None:
            words.append(HIDDEN)
        elif option is not None and option[2] is not None and _is_secret(option[1]):
            words.append(f"{option[1]}={HIDDEN}")
        else:
            words.append(_redacted(word))
        secret = option is not None and option[2] is None and _is_secret(option[1])
    own = None
    if environment is not None:
        own = {name: _harmless(name, value) for name, value in sorted(environment.items())}
    return RunningProgram(tuple(words), folder, own, _redacted(title))


def _harmless(name: str, value: str) -> str | None:
    """Return a variable's value, without the password of a connection string; None if it may be a secret."""
    shown = _redacted(value)
    if "://" in value and shown != value:
        return shown
    return None if _is_secret(name) or _TOKEN.fullmatch(value) else shown


def _is_secret(name: str) -> bool:
    if _PLACES.fullmatch(name):
        return False
    return is_secret(name) or _SECRET_NAMES.search(name) is not None


def _redacted(text: str) -> str:
    return redact(_LOGIN.sub(rf"\1:{HIDDEN}@", text))
