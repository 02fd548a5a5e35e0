"""What must not be stored or shown: passwords, and the values of secret headers and variables. Pure."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["SECRET_HEADERS", "is_secret", "redact", "redact_word"]

SECRET_HEADERS: Final = ("authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token")
"""Headers of requests that are not stored, in lower case."""

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
    """Say whether a variable or a header holds a secret, going by its name."""
    return _SECRET.search(name) is not None


def redact(conninfo: str) -> str:
    """Take the password out of a connection string."""
    if _URI.match(conninfo.lstrip()):
        without = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:***@", conninfo)
        return re.sub(r"(password=)[^\s&]+", r"\1***", without, flags=re.IGNORECASE)
    return _PASSWORD.sub(r"\1***", conninfo)


def redact_word(word: str) -> str:
    """Take the password out of a word that may hold a connection string, and a secret header's value."""
    header = _HEADER.match(word)
    if header:
        return f"{header[1]} ..."
    uri = _URI.search(word)
    start = uri.start() if uri else 0
    return word[:start] + redact(word[start:])
