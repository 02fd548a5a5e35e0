"""What uncork never stores or shows: passwords, and the values of secret headers and variables. Pure."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "NOT_STORED",
    "SECRET_HEADERS",
    "is_secret",
    "is_secret_field",
    "redact",
    "redact_word",
    "without_body_secrets",
    "without_header_secret",
]

NOT_STORED: Final = "(not stored)"
"""The stored value of a header, field or variable that holds a secret."""

SECRET_HEADERS: Final = ("authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token")
"""Request headers that are not stored, in lower case."""

_SECRET: Final = re.compile(
    "PASSWORD|PASSWD|SECRET|TOKEN|KEY|CREDENTIAL|AUTHORI[SZ]ATION|COOKIE", re.IGNORECASE
)
_HEADER: Final = re.compile(
    rf"((?:-H|--header=)?\s*(?:{'|'.join(SECRET_HEADERS)})\s*:).*", re.IGNORECASE | re.DOTALL
)
_FIELD: Final = re.compile(
    "PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL|API_?-?KEY|PRIVATE_?-?KEY", re.IGNORECASE
)
_PLACEHOLDER: Final = re.compile(r"\$?\{[A-Za-z_][A-Za-z0-9_.]*\}")
_SCHEME: Final = re.compile(r"(Bearer|Basic|Digest|Token|ApiKey)\s", re.IGNORECASE)
_JSON_FIELD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:\s*)("(?:[^"\\]|\\.)*"|[^\s,}\]]+)')
_URI: Final = re.compile(r"postgres(ql)?://")
_VALUE: Final = r"('(?:[^'\\]|\\.)*'|(?:\\.|[^\s\\])+)"
_PASSWORD: Final = re.compile(rf"(password\s*=\s*){_VALUE}", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Say whether the name of a variable or header suggests a secret value."""
    return _SECRET.search(name) is not None


def is_secret_field(name: str) -> bool:
    """Say whether a field or variable holds a secret; unlike `is_secret`, *key* alone does not suggest it."""
    return _FIELD.search(name) is not None


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


def without_header_secret(name: str, value: str) -> str:
    """Return a header's value as it may be stored."""
    secret = name.lower() in SECRET_HEADERS and not _names_only(value)
    return NOT_STORED if secret else value


def without_body_secrets(body: str, kind: str) -> str:
    """Return a body, of JSON or of a form, without the values of secret fields."""
    if kind == "form":
        pairs = (pair.partition("=") for pair in body.split("&"))
        return "&".join(
            f"{name}{equals}{NOT_STORED if _holds_secret(name, value) else value}"
            for name, equals, value in pairs
        )

    def hidden(match: re.Match[str]) -> str:
        name, colon, value = match.groups()
        return f'"{name}"{colon}"{NOT_STORED}"' if _holds_secret(name, value.strip('"')) else match[0]

    return _JSON_FIELD.sub(hidden, body)


def _holds_secret(name: str, value: str) -> bool:
    return is_secret_field(name) and value not in ("", "null") and not _names_only(value)


def _names_only(value: str) -> bool:
    """Whether a value consists of ``{name}`` and ``${NAME}``, after the scheme of a credential."""
    rest = _PLACEHOLDER.sub("", value)
    return rest != value and not re.search(r"\w", _SCHEME.sub("", rest))
