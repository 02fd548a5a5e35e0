"""What uncork never stores or shows: passwords, and the values of secret headers and variables. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

NOT_STORED: Final = "(not stored)"
"""The stored value of a header, field or variable that holds a secret."""

SECRET_HEADERS: Final = ("authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token")
"""Request headers that are not stored, in lower case."""

_MARK: Final = "\0"
"""No argument of a command contains this character."""

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
_SIGNED: Final = re.compile(
    r"(https?://[^?#\s]+)\?(?=[^#\s]*(?:x-amz-signature|x-goog-signature|signature|sig|token)=)\S*",
    re.IGNORECASE,
)
"""A signed address: its query is as good as a password."""
_LOGIN: Final = re.compile(r"(https?://[^:/@\s]*):[^@/\s]*@", re.IGNORECASE)
_LITERAL: Final = re.compile(r"'(?:[^']|'')*'")
_CONNINFO: Final = re.compile(r"postgres(ql)?://|\b(host|hostaddr|dbname|user)\s*=", re.IGNORECASE)
_PASSWORD: Final = re.compile(rf"(password\s*=\s*){_VALUE}", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Say whether the name of a variable or header suggests a secret value."""
    return _SECRET.search(name) is not None


def is_secret_field(name: str) -> bool:
    """Say whether a field or variable holds a secret; unlike `is_secret`, *key* alone does not suggest it."""
    return _FIELD.search(name) is not None


def redact(conninfo: str, hidden: str = "***") -> str:
    """Replace the password in a connection string with `hidden`."""
    if _URI.match(conninfo.lstrip()):
        without = re.sub(r"(://[^:/@\s]*):[^@\s]*@", rf"\1:{hidden}@", conninfo)
        return re.sub(r"(password=)[^\s&]+", rf"\1{hidden}", without, flags=re.IGNORECASE)
    return _PASSWORD.sub(rf"\1{hidden}", conninfo)


def without_password(text: str, conninfo: str, hidden: str = "***") -> str:
    """Replace the password of a connection string wherever it stands in a text, also with its escapes."""
    for quoted in (*re.findall(r"://[^:/@\s]*:([^@\s]*)@", conninfo), *_passwords(conninfo)):
        plain = re.sub(r"\\(.)", r"\1", quoted.strip("'"))
        for written in {quoted, plain, unquote(quoted)} - {"", hidden}:
            text = text.replace(written, hidden)
    return text


def _passwords(conninfo: str) -> list[str]:
    values = (found[2] for found in _PASSWORD.finditer(conninfo))
    return [value.partition("&")[0] if _URI.match(conninfo.lstrip()) else value for value in values]


def redact_word(word: str, hidden: str = "***") -> str:
    """Remove secrets from a word of a command.

    They are the password of a connection string or a web address, the query of a signed web address, and the
    value of a secret header.
    """
    return _redacted(word, password=hidden, signature=hidden, login=hidden)


def _redacted(word: str, *, password: str, signature: str, login: str) -> str:
    header = _HEADER.match(word)
    if header:
        return f"{header[1]} ..."
    word = _LOGIN.sub(rf"\1:{login}@", _SIGNED.sub(rf"\1?{signature}", word))
    uri = _URI.search(word)
    start = uri.start() if uri else 0
    return word[:start] + redact(word[start:], password)


def variable_for(name: str) -> str:
    """Return a mark in place of a secret, which `shell_command` writes as an environment variable."""
    return f"{_MARK}{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}{_MARK}"


def without_secrets(word: str) -> str:
    """Return a word of a command line with marks in place of secrets: see `variable_for`.

    The password of a connection string becomes PGPASSWORD, a secret header the variable of its name, the
    query of a signed web address SIGNATURE, and the password of a web address HTTP_PASSWORD.
    """
    header = _HEADER.match(word)
    if header:
        name = re.sub(r"^(-H|--header=)?\s*|\s*:$", "", header[1])
        return f"{header[1]} {variable_for(name)}"
    return _redacted(
        word,
        password=variable_for("PGPASSWORD"),
        signature=variable_for("SIGNATURE"),
        login=variable_for("HTTP_PASSWORD"),
    )


def shell_command(words: Iterable[str]) -> str:
    """Return a command line for a POSIX shell.

    Marks of `variable_for` become ``${NAME:?}``: the shell refuses the command until the variable is set.
    """
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    parts = word.split(_MARK)
    if len(parts) == 1:
        return shlex.quote(word)
    texts = (re.sub(r'(["$`\\])', r"\\\1", text) for text in parts[::2])
    names = [f"${{{name}:?}}" for name in parts[1::2]] + [""]
    return '"' + "".join(text + name for text, name in zip(texts, names, strict=True)) + '"'


def without_literal_secrets(source: str) -> str:
    """Return SQL without the passwords of connection strings in its literals, such as those of dblink."""

    def redacted(literal: re.Match[str]) -> str:
        text = literal[0]
        return f"'{redact_word(text[1:-1])}'" if _CONNINFO.search(text) else text

    return _LITERAL.sub(redacted, source)


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
