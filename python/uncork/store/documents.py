"""Read JSON documents of a run as the dataclasses that they were written from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from uncork.store.layout import unreadable

T = TypeVar("T")

_hints = cache(get_type_hints)


def read_document(path: Path, build: Callable[[Any], T]) -> T | None:
    """Return what `build` makes of a JSON file; None if there is no such file.

    Raises StoreError if the file is damaged: it cannot be read, or `build` fails.
    """
    try:
        return build(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(path, error) from error


def decoded(
    kind: type[T], data: Mapping[str, Any], prepare: Mapping[type[Any], Callable[[Any], Any]] | None = None
) -> T:
    """Build a dataclass from its JSON, at any depth; `prepare` changes the JSON of a dataclass beforehand.

    Raises KeyError, TypeError, ValueError, AttributeError if the JSON does not fit.
    """
    found: T = _decoded(kind, data, prepare or {})
    return found


def _decoded(kind: Any, data: Any, prepare: Mapping[type[Any], Callable[[Any], Any]]) -> Any:
    if data is None:
        return None
    arguments = [argument for argument in get_args(kind) if argument is not NoneType]
    if get_origin(kind) is tuple:
        if arguments[-1] is Ellipsis:
            arguments = arguments[:1] * len(data)
        return tuple(_decoded(inner, value, prepare) for inner, value in zip(arguments, data, strict=True))
    if NoneType in get_args(kind) and len(arguments) == 1:
        return _decoded(arguments[0], data, prepare)
    if is_dataclass(kind):
        record: Any = kind
        values = prepare[record](data) if record in prepare else data
        hints = _hints(record)
        return record(**{name: _decoded(hints[name], value, prepare) for name, value in values.items()})
    return kind(data) if isinstance(kind, type) and issubclass(kind, Enum) else data
