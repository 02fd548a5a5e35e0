"""Convert recorded traffic (HAR 1.2, as browsers and proxies save it) to a requests file. Pure.

Requests are grouped by method, path and shape of the body. Identifiers in paths, and values that differ
within a group, become variables. Secrets become environment variables, so the file contains none.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from uncork.errors import UsageError
from uncork.model.redaction import SECRET_HEADERS, is_secret
from uncork.model.units import count_words
from uncork.requests.http_files.requests_text import Group, requests_text

_STATIC_TYPES: Final = {"stylesheet", "image", "font", "script", "media", "manifest", "texttrack"}
_STATIC_NAMES: Final = re.compile(
    r"\.(css|js|mjs|map|png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|otf|eot|mp4|webm|mp3|wasm|webmanifest)$",
    re.IGNORECASE,
)
_STATIC_CONTENT: Final = re.compile(
    r"image/|font/|video/|audio/|text/css|text/javascript|application/(x-)?javascript|application/font|"
    "application/wasm"
)
_IDENTIFIER: Final = re.compile(
    r"\d+|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}|"
    r"(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{20,}"
)
_DROPPED: Final = re.compile(
    r":|sec-|if-|accept-(encoding|language)|(user-agent|referer|origin|host|connection|content-length|"
    "cache-control|pragma|dnt|priority|te|upgrade|upgrade-insecure-requests|keep-alive|transfer-encoding|"
    "proxy-connection|x-requested-with|purpose|range)$",
    re.IGNORECASE,
)
"""Headers that the browser adds, or that uncork sets itself."""
_MOST_VALUES: Final = 1000
_NOT_MODIFIED: Final = 304
_FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of a requests file, and sentences about what it leaves out."""

    text: str
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Entry:
    method: str
    url: SplitResult
    headers: list[tuple[str, str]]
    body: str | None
    kind: str
    status: int
    slots: dict[str, Any] = field(default_factory=dict)
    """Values that differ between requests of the group, by a key that the group shares."""


def is_har(content: str) -> bool:
    """Say whether a text may be a HAR file: JSON instead of TOML."""
    return content.lstrip("\ufeff \t\r\n").startswith("{")


def convert_har(file: str, content: str) -> Converted:
    """Convert the traffic in a HAR file.

    Raises UsageError if it is not a HAR file, or has no request to send.
    """
    entries = _entries(file, content)
    counts = Counter(_left_out(entry) for entry in entries)
    kept = [entry for entry in entries if _left_out(entry) == ""]
    origins = Counter(_origin(entry.url) for entry in kept)
    if not origins:
        raise UsageError(f"{file} has no request to send: {_counted(counts) or 'it has no entries'}")
    origin = origins.most_common(1)[0][0]
    kept = [entry for entry in kept if _origin(entry.url) == origin]
    groups: dict[tuple[object, ...], list[_Entry]] = {}
    for entry in kept:
        groups.setdefault(_key(entry), []).append(entry)
    notes = [f"left out {_counted(counts)}"] if _counted(counts) else []
    others = {name: number for name, number in origins.items() if name != origin}
    if others:
        names = ", ".join(sorted(others)[:3]) + (", …" if len(others) > 3 else "")
        notes.append(f"left out {count_words(sum(others.values()), 'request')} to other servers: {names}")
    described = [_group(key, members) for key, members in groups.items()]
    described.sort(key=lambda one: -one.weight)
    return Converted(requests_text(file, origin, described, notes), tuple(notes))


def _entries(file: str, content: str) -> list[_Entry]:
    try:
        found = json.loads(content.removeprefix("\ufeff"))
    except ValueError as error:
        raise UsageError(f"{file} is neither TOML nor a HAR file: {error}") from error
    log = found.get("log") if isinstance(found, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise UsageError(
            f'{file} is JSON, but not a HAR file: it has no "log" with "entries"; save the traffic as HAR in '
            "the browser's network panel, or write a requests file in TOML"
        )
    read = []
    for number, entry in enumerate(entries):
        try:
            read.append(_entry(entry))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"{file}: log.entries[{number}] is not as HAR 1.2 requires ({type(error).__name__}: {error})"
            ) from error
    return read


def _entry(entry: Mapping[str, Any]) -> _Entry:
    request, response = entry["request"], entry.get("response") or {}
    posted = request.get("postData") or {}
    mime = str(posted.get("mimeType") or "").partition(";")[0].strip().lower()
    body = posted.get("text")
    if not body and posted.get("params"):
        pairs = [(str(param["name"]), str(param.get("value", ""))) for param in posted["params"]]
        body = "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs)
    kind = "form" if mime == _FORM else "json" if mime.endswith("json") else mime
    content = str((response.get("content") or {}).get("mimeType") or "")
    url = urlsplit(str(request["url"]))
    resource = str(entry.get("_resourceType") or "").lower()
    static = (
        resource in _STATIC_TYPES
        or _STATIC_NAMES.search(url.path) is not None
        or (resource not in ("xhr", "fetch") and _STATIC_CONTENT.match(content) is not None)
    )
    return _Entry(
        method=str(request["method"]).upper(),
        url=url,
        headers=[(str(header["name"]), str(header["value"])) for header in request.get("headers") or ()],
        body=str(body) if body else None,
        kind="static" if static else kind,
        status=int(response.get("status") or 0),
    )


def _left_out(entry: _Entry) -> str:
    """Return the kind of an entry that is not sent; empty if it is."""
    if entry.url.scheme not in ("http", "https"):
        return "request that is not HTTP"
    if entry.kind == "static":
        return "static file"
    if entry.method in ("OPTIONS", "CONNECT"):
        return "preflight request"
    if entry.status == 0:
        return "request without an answer"
    return "upload of files" if entry.kind == "multipart/form-data" else ""


def _counted(counts: Mapping[str, int]) -> str:
    words = {
        "request that is not HTTP": "requests that are not HTTP",
        "request without an answer": "requests without an answer",
        "upload of files": "uploads of files",
    }
    texts = (
        f"{number} {word if number == 1 else words.get(word, word + 's')}"
        for word, number in counts.items()
        if word
    )
    return ", ".join(texts)


def _origin(url: SplitResult) -> str:
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}"


# ---- groups ----


def _key(entry: _Entry) -> tuple[object, ...]:
    """Return what requests of one group share; its values are kept in the entry."""
    path = tuple(_segments(entry))
    query = tuple(name for name, _ in parse_qsl(entry.url.query, keep_blank_values=True))
    return entry.method, path, query, entry.kind if entry.body else "", _shape(entry)


def _segments(entry: _Entry) -> Iterator[str]:
    """Yield the path's segments; an identifier becomes its name in braces."""
    before = ""
    for number, segment in enumerate(entry.url.path.split("/")):
        if _IDENTIFIER.fullmatch(unquote(segment)):
            name = f"{_singular(before)}_id" if before else "id"
            entry.slots[f"path {number}"] = (name, unquote(segment))
            yield f"{{{name}}}"
            before = ""
        else:
            yield segment
            before = re.sub(r"\W+", "_", segment).strip("_").lower()


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _shape(entry: _Entry) -> object:
    """Return the shape of the body: names of fields, and types of values."""
    if entry.body is None:
        return None
    if entry.kind == "form":
        return tuple(name for name, _ in parse_qsl(entry.body, keep_blank_values=True))
    if entry.kind == "json":
        try:
            return _json_shape(json.loads(entry.body))
        except ValueError:
            return "text"
    return "text"


def _json_shape(value: object) -> object:
    if isinstance(value, dict):
        return tuple((key, _json_shape(one)) for key, one in value.items())
    if isinstance(value, list):
        return ("list", *(_json_shape(item) for item in value))
    return (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    )


def _group(key: tuple[object, ...], members: list[_Entry]) -> Group:
    first = members[0]
    columns: dict[str, list[str]] = {}
    path = []
    for number, segment in enumerate(first.url.path.split("/")):
        slot = f"path {number}"
        if slot in first.slots:
            path.append(_column(columns, first.slots[slot][0], [member.slots[slot][1] for member in members]))
        else:
            path.append(_literal(segment))
    queries = [parse_qsl(member.url.query, keep_blank_values=True) for member in members]
    pairs = []
    for number, (name, value) in enumerate(queries[0]):
        text = _varying(columns, name, [query[number][1] for query in queries])
        pairs.append(f"{_literal(quote(name))}={_literal(quote(value)) if text is None else text}")
    url = "/".join(path) or "/"
    body, kind = _body(columns, first, members)
    rows = list(dict.fromkeys(zip(*columns.values(), strict=True)))[:_MOST_VALUES] if columns else []
    statuses = {member.status for member in members}
    return Group(
        method=first.method,
        url=url + ("?" + "&".join(pairs) if pairs else ""),
        weight=len(members),
        headers=_headers(members),
        body=body,
        kind=kind,
        columns=tuple(columns),
        rows=tuple(rows),
        status=statuses.pop() if len(statuses) == 1 and _NOT_MODIFIED not in statuses else None,
    )


def _column(columns: dict[str, list[str]], name: str, values: Sequence[str]) -> str:
    """Add a column of values; return the text that stands for it."""
    name = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower() or "value"
    name = name if name[0].isalpha() else f"v_{name}"
    unique, number = name, 2
    while unique in columns:
        unique, number = f"{name}_{number}", number + 1
    columns[unique] = list(values)
    return f"{{{unique}}}"


def _varying(columns: dict[str, list[str]], name: str, values: Sequence[str]) -> str | None:
    """Return what stands for a field: an environment variable, or a column; None if it never differs."""
    if _is_secret_field(name) and any(values):
        return f"${{{_environment(name)}}}"
    return _column(columns, name, values) if len(set(values)) > 1 else None


def _is_secret_field(name: str) -> bool:
    return is_secret(name) and not re.search(r"(?i)(^|_)(sort|order|primary|foreign|public)_?key", name)


def _environment(name: str) -> str:
    word = re.sub(r"([a-z])([A-Z])", r"\1_\2", name)
    word = re.sub(r"\W+", "_", word, flags=re.ASCII).strip("_").upper()
    return word if word and word[0].isalpha() else f"SECRET_{word}"


def _literal(text: str) -> str:
    """Return a text in which nothing is a variable."""
    return re.sub(r"\{(?=[A-Za-z_][A-Za-z0-9_.]*\})", "{{", text)


# ---- bodies and headers ----


def _body(columns: dict[str, list[str]], first: _Entry, members: list[_Entry]) -> tuple[Any, str]:
    if first.body is None:
        return None, "text"
    bodies = [member.body or "" for member in members]
    if first.kind == "form":
        forms = [parse_qsl(body, keep_blank_values=True) for body in bodies]
        found = {}
        for number, (name, value) in enumerate(forms[0]):
            text = _varying(columns, name, [form[number][1] for form in forms])
            found[name] = _literal(value) if text is None else text
        return found, "form"
    if first.kind == "json":
        try:
            values = [json.loads(body) for body in bodies]
        except ValueError:
            return _literal(bodies[0]), "text"
        return _json_text(columns, "", values), "json"
    return _literal(bodies[0]), "text"


def _json_text(columns: dict[str, list[str]], name: str, values: list[Any]) -> str:
    """Return JSON with the values that differ, or are secret, replaced."""
    first = values[0]
    if isinstance(first, dict):
        parts = (
            f"{json.dumps(key, ensure_ascii=False)}: "
            f"{_json_text(columns, key, [value[key] for value in values])}"
            for key in first
        )
        return f"{{{', '.join(parts)}}}"
    if isinstance(first, list):
        items = (_json_text(columns, name, [value[n] for value in values]) for n in range(len(first)))
        return f"[{', '.join(items)}]"
    if isinstance(first, str):
        text = _varying(columns, name, values)
        return json.dumps(_literal(first) if text is None else text, ensure_ascii=False)
    words = [json.dumps(value) for value in values]
    text = None if len(set(words)) == 1 else _column(columns, name, words)
    return words[0] if text is None else text


def _headers(members: Iterable[_Entry]) -> dict[str, str]:
    """Return the headers that all requests of a group share, without secrets."""
    shared: dict[str, str] | None = None
    for member in members:
        found = {}
        for name, value in member.headers:
            if _DROPPED.match(name):
                continue
            lower = name.lower()
            if lower == "content-type" and member.kind in ("json", "form"):
                continue
            if lower in SECRET_HEADERS or is_secret(lower):
                found[name] = _secret_header(lower, value)
            elif value and value != "*/*":
                found[name] = _literal(value)
        shared = (
            found
            if shared is None
            else {name: text for name, text in shared.items() if found.get(name) == text}
        )
    return shared or {}


def _secret_header(name: str, value: str) -> str:
    if name in ("authorization", "proxy-authorization"):
        scheme, space, _ = value.partition(" ")
        word = "TOKEN" if name == "authorization" else "PROXY_TOKEN"
        return f"{scheme} ${{{word}}}" if space else f"${{{word}}}"
    return f"${{{_environment(name)}}}"
