"""Write a requests file of `uncork load http`. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Group:
    """One kind of request. `rows` are the values of `columns`, which its texts name in braces.

    `body` is a text, or the fields of a form, as `kind` says. `status` is None if it is not checked.
    """

    method: str
    url: str
    weight: int
    headers: dict[str, str]
    body: Any
    kind: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    status: int | None


def requests_text(source: str, base_url: str, groups: Sequence[Group], notes: Sequence[str]) -> str:
    """Return the text of a requests file."""
    shared = _shared_headers(groups)
    variables, renamed = _variables(groups)
    lines = [f"# Requests of {source}, for: uncork load http -f FILE", *(f"# {note}" for note in notes)]
    secrets = sorted({name for group in groups for name in re.findall(r"\$\{(\w+)\}", repr(group))})
    if secrets:
        lines.append(f"# Set these environment variables first: {', '.join(secrets)}")
    lines += ["", f"base_url = {_string(base_url)}"]
    if shared:
        lines.append(f"headers = {_table(shared)}")
    if variables:
        lines += ["", "[variables]", *(f"{name} = {text}" for name, text in variables.items())]
    for group, names in zip(groups, renamed, strict=True):
        lines += ["", "[[requests]]", *_request(group, names, shared)]
    return "\n".join(lines) + "\n"


def _shared_headers(groups: Sequence[Group]) -> dict[str, str]:
    first, *others = (group.headers for group in groups)
    return {name: text for name, text in first.items() if all(other.get(name) == text for other in others)}


def _variables(groups: Sequence[Group]) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return the variables as TOML, and for each group the full names of its columns.

    Groups with one column share a list with others of the same name; several columns keep their rows.
    """
    lists: dict[str, dict[str, None]] = {}
    tables: dict[str, str] = {}
    renamed = []
    for group in groups:
        if len(group.columns) == 1:
            name = group.columns[0]
            lists.setdefault(name, {}).update(dict.fromkeys(row[0] for row in group.rows))
            renamed.append({name: name})
        elif group.columns:
            name = _unique(_slug(group), {*tables, *(column for other in groups for column in other.columns)})
            rows = ",\n".join(f"  {_table(dict(zip(group.columns, row, strict=True)))}" for row in group.rows)
            tables[name] = f"{{ rows = [\n{rows},\n] }}"
            renamed.append({column: f"{name}.{column}" for column in group.columns})
        else:
            renamed.append({})
    return {**{name: _list(values) for name, values in lists.items()}, **tables}, renamed


def _slug(group: Group) -> str:
    words = re.findall(r"[A-Za-z]\w*", re.sub(r"\{[^}]*\}|\?.*", "", group.url), re.ASCII)
    return "_".join([group.method.lower(), *(word.lower() for word in words)])[:50]


def _unique(name: str, taken: set[str]) -> str:
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    return unique


def _request(group: Group, names: dict[str, str], shared: dict[str, str]) -> Iterator[str]:
    def named(text: str) -> str:
        return re.sub(
            r"\{\{|(?<!\$)\{(\w+)\}",
            lambda match: f"{{{names[match[1]]}}}" if match[1] in names else match[0],
            text,
        )

    yield f"name = {_string(f'{group.method} {_plain(group.url)}')}"
    yield f"method = {_string(group.method)}"
    yield f"url = {_string(named(group.url))}"
    yield f"weight = {group.weight}"
    headers = {name: text for name, text in group.headers.items() if name not in shared}
    if headers:
        yield f"headers = {_table(headers)}"
    if group.kind == "form":
        yield f"form = {_table({name: named(text) for name, text in group.body.items()})}"
    elif group.body is not None:
        yield f"{'json' if group.kind == 'json' else 'body'} = {_text(named(group.body))}"
    if group.status is not None:
        yield f"checks = {{ status = {group.status} }}"


def _plain(url: str) -> str:
    return url.partition("?")[0]


def _list(values: dict[str, None]) -> str:
    return f"[{', '.join(_string(value) for value in values)}]"


def _table(values: dict[str, str]) -> str:
    return f"{{ {', '.join(f'{_key(name)} = {_string(value)}' for name, value in values.items())} }}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _text(text: str) -> str:
    """Return a string of TOML, between single quotes if that needs no escaping."""
    plain = "'" not in text and all(letter >= " " and letter != "\x7f" for letter in text)
    return f"'{text}'" if plain else _string(text)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
