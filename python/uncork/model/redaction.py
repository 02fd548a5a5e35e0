"""What uncork never stores or shows: passwords, and the values of secret headers and variables. Pure."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["SECRET_HEADERS", "is_secret", "redact", "redact_word"]

SECRET_HEADERS: Final = ("authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token")
"""Request headers that are not stored, in lower case."""

_SECRET: Final = re.compile(
    "PASSWORD|PASSWD|SECRET|TOKEN|KEY|CREDENTIAL|AUTHORI[SZ]ATION|COOKIE", re.IGNORECASE
)
_HEADER: Final = re.compile(
    rf"((?:-H|--header=)?\s*(?:{'|'.join(SECRET_HEADERS)})\s*:).*", re.IGNORECASE | re.DOTALL
)
_URI: Final = re.compile(r"postgres(ql)?://")
_VALUE: Final = r"('(?:[^'\\]|\\.)*'|(?:\\.|[^\s\\])+)"
_PASSWORD: Final = re.compile(rf"(password\s*=\s*){_VALUE}", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Say whether the name of a variable or header suggests a secret value."""
    return _SECRET.search(name) is not None


def redact(conninfo: str) -> str:
    """Remove the password from a connection string."""
    if _URI.match(conninfo.lstrip()):
        without = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:***@", conninfo)
        return re.sub(r"(password=)[^\s&]+", r"\1***", without, flags=re.IGNORECASE)
    return _PASSWORD.sub(r"\1***", conninfo)


def redact_word(word: str) -> str:
    """Remove the password from a word that may be a connection string, and the value of a secret header."""
    header = _HEADER.match(word)
    if header:
        return f"{header[1]} ..."
    uri = _URI.search(word)
    start = uri.start() if uri else 0
    return word[:start] + redact(word[start:])
