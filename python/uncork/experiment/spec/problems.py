"""Problems in an experiment file, as messages that help to fix them: line, key, found, expected."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from uncork.errors import SpecError
from uncork.model.units import count_words

_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?$")
_WORD = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEY = re.compile(rf"\s*({_WORD}(?:\s*\.\s*{_WORD})*)\s*=")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem at a key; the key is a path from the top of the file.

    `line` is its line, if that is not the key's; with `file`, the line is in that file instead.
    """

    key: tuple[str, ...]
    message: str
    file: str | None = None
    line: int | None = None

    def text(self, file: str, content: str) -> str:
        """Return the problem as text: ``case.toml:14: variants.uuid.value: unknown key ...``."""
        name = ".".join(self.key)
        line = line_of(content, self.key) if self.line is None else self.line
        return f"{self.file or file}:{line}: {name + ': ' if name else ''}{self.message}"


def at(key: tuple[str, ...], message: str) -> PydanticCustomError:
    """Return an error that a validator can raise to report a problem at another key."""
    return PydanticCustomError("uncork", "{message}", {"message": message, "key": list(key)})


def hint(name: str, known: Collection[str]) -> str:
    """Suggest the nearest known name, or list the known ones: ``; did you mean "warmup"?``."""
    near = difflib.get_close_matches(name, known, n=1) or sorted(
        word for word in known if word.startswith(name)
    )
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; expected one of {', '.join(sorted(known))}" if known else ""


def unknown(kind: str, name: str, known: Collection[str]) -> str:
    """Return that there is no variant, service, ... of a name."""
    return f'there is no {kind} "{name}"{hint(name, known)}'


def in_order(problems: Iterable[Problem], content: str) -> list[Problem]:
    """Sort problems by line, and drop duplicates."""
    unique = dict.fromkeys(problems)

    def order(problem: Problem) -> int:
        return line_of(content, problem.key) if problem.line is None or problem.file else problem.line

    return sorted(unique, key=order)


def refuse(found: Iterable[Problem], file: str, content: str) -> None:
    """Raise SpecError with every problem, one per line, in the order of the file, if there is any."""
    if ordered := in_order(found, content):
        raise SpecError("\n".join(problem.text(file, content) for problem in ordered))


def from_validation(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Convert pydantic's errors to problems, in our words.

    If a value may have several types, pydantic reports one error per type. They become one problem. They are
    dropped if the value has one of these types and the error is further inside.
    """
    found: list[Problem] = []
    types: dict[tuple[str, ...], tuple[list[str], object]] = {}
    for detail in error.errors(include_url=False):
        location = _location(detail["loc"], model)
        if detail["type"] in _TYPES:
            types.setdefault(location, ([], detail["input"]))[0].append(_TYPES[detail["type"]])
        else:
            found.append(_problem(detail, location, model))
    wrong = [*types, *(problem.key for problem in found)]
    for location, (expected, value) in types.items():
        further_in = any(key != location and key[: len(location)] == location for key in wrong)
        if not further_in and not any(problem.key == location for problem in found):
            found.append(Problem(location, f"expected {_either(expected)}; found {_short(value)}"))
    return found


_TYPES = {
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    **dict.fromkeys(("int_from_float", "int_parsing", "int_type"), "a whole number"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    "dict_type": "a table",
    "model_type": "a section",
    "string_type": "text in quotes",
}
_LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _problem(detail: Any, location: tuple[str, ...], model: type[BaseModel]) -> Problem:
    kind, found = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    if kind == "uncork":
        return Problem((*location, *context["key"]), context["message"])
    if kind == "extra_forbidden":
        known = _known_keys(model, location[:-1])
        return Problem(location, f'unknown key "{location[-1]}"{hint(location[-1], known)}')
    if kind == "missing":
        return Problem(location, f"is required but missing; add {_addition(location, model)}")
    if kind == "value_error":
        return Problem(location, str(context["error"]))
    if kind == "too_short":
        names = f" ({', '.join(map(str, found))})" if found else ""
        least = count_words(context["min_length"], "item")
        return Problem(location, f"expected at least {least}; found {len(found)}{names}")
    if kind in _LIMITS:
        word, key = _LIMITS[kind]
        expected = f"{word} {_limit(context[key], found)}"
    elif kind == "literal_error":
        expected = context["expected"].replace("'", '"')
    elif kind in {"string_too_short", "string_too_long"}:
        limit = context.get("max_length", context.get("min_length"))
        word = "at most" if "max_length" in context else "at least"
        expected = f"{word} {limit} character{'s' * (limit != 1)}"
    else:
        expected = detail["msg"].removeprefix("Input should be ")
    return Problem(location, f"expected {expected}; found {_short(found)}")


def _addition(location: tuple[str, ...], model: type[BaseModel]) -> str:
    current: Any = model
    for part in location:
        current = _below(current, part)
    many = get_origin(current) is dict and _inner_model(current) is not None
    if many or (isinstance(current, type) and issubclass(current, BaseModel)):
        return f"[{'.'.join(location)}{'.NAME' if many else ''}]"
    return "it"


def _limit(limit: float, found: object) -> str:
    return f"{limit:.0%}" if isinstance(found, str) and found.rstrip().endswith("%") else str(limit)


def _either(expected: list[str]) -> str:
    *others, last = dict.fromkeys(expected)
    return f"{', '.join(others)} or {last}" if others else last


def _short(found: object) -> str:
    if isinstance(found, bool):
        return str(found).lower()
    text = repr(found) if not isinstance(found, str) else f'"{found}"'
    return text if len(text) <= 60 else f"{text[:57]}..."


def _location(parts: Iterable[str | int], model: type[BaseModel]) -> tuple[str, ...]:
    """Remove pydantic's own names of union branches: `list[...]`, or `str` where no key can be."""
    path: list[str] = []
    current: Any = model
    for part in parts:
        name = str(part)
        if re.search(r"[\[(]", name):
            continue
        below = _below(current, name)
        if below is None and name in {"str", "int", "float", "bool", "tuple", "list", "dict"}:
            continue
        path.append(name)
        current = below
    return tuple(path)


def _known_keys(model: type[BaseModel], path: tuple[str, ...]) -> set[str]:
    current: Any = model
    for part in path:
        current = _below(current, part)
    inner = _inner_model(current)
    return set() if inner is None else {found.alias or name for name, found in inner.model_fields.items()}


def _below(annotation: Any, part: str) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        field = fields.get(part) or next((found for found in fields.values() if found.alias == part), None)
        return None if field is None else field.annotation
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    if get_origin(annotation) is list and part.isdigit():
        return get_args(annotation)[0]
    inner = (_below(argument, part) for argument in get_args(annotation))
    return next((found for found in inner if found is not None), None)


def _inner_model(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_inner_model(argument) for argument in get_args(annotation))
    return next((found for found in inner if found is not None), None)


def line_of(content: str, key: tuple[str, ...]) -> int:
    """Return the line (from 1) of a key, or of its nearest ancestor, in TOML text."""
    best, best_depth = 1, 0
    header: tuple[str, ...] = ()
    items: Counter[tuple[str, ...]] = Counter()
    closing: str | None = None
    for number, line in enumerate(content.splitlines(), start=1):
        if closing is not None:
            if closing in line:
                closing = None
            continue
        if match := _HEADER.match(line):
            header = _parts(match[1])
            if line.lstrip().startswith("[["):
                items[header] += 1
                header = (*header, str(items[header] - 1))
            path = header
        elif match := _KEY.match(line):
            path = (*header, *_parts(match[1]))
            closing = _opens_multiline(line[match.end() :])
        else:
            continue
        depth = _common(path, key)
        if (depth == len(path) and depth > best_depth) or (
            depth > best_depth and depth >= 1 and len(path) > depth and best_depth == 0
        ):
            best, best_depth = number, depth
    return best


def toml_data(file: str, content: str) -> dict[str, Any]:
    """Return the data of a TOML text. Raises SpecError if it is not valid TOML."""
    try:
        return tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(toml_message(file, content, error)) from error


def toml_message(file: str, content: str, error: tomllib.TOMLDecodeError) -> str:
    """Return the message for a syntax error; it names the variant if a name occurs twice."""
    text = str(error)
    match = re.search(r"\(at line (\d+), column (\d+)\)", text)
    place = f"{file}:{match[1]}" if match else f"{file}:{len(content.splitlines())}"
    message = re.sub(r"\s*\(at .*\)", "", text)
    if match and ("twice" in text or "overwrite" in text):
        line = content.splitlines()[int(match[1]) - 1].strip()
        return f"{place}: {line}: this name is already used above; give each a different name"
    return f"{place}: not valid TOML: {message[0].lower()}{message[1:]}"


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _opens_multiline(rest: str) -> str | None:
    for quotes in ('"""', "'''"):
        if rest.count(quotes) == 1:
            return quotes
    return None


def _common(path: tuple[str, ...], key: tuple[str, ...]) -> int:
    depth = 0
    for left, right in zip(path, key, strict=False):
        if left != right:
            break
        depth += 1
    return depth
