"""Records: frozen dataclasses, and how to build one from another with some of the same fields."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """A class whose subclasses are frozen dataclasses."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


Kind = TypeVar("Kind")

_SHARED: Final[dict[tuple[type[Any], type[Any]], tuple[str, ...]]] = {}
"""Fields that a record can take from a source, by their types."""


def build_from(kind: type[Kind], source: object, /, **given: object) -> Kind:
    """Build a record from `given`, and from the attributes of `source` that have the name of a field.

    mypy checks each call as a call of the record's constructor (`tools/mypy_records.py`).
    """
    key: tuple[type[Any], type[Any]] = (kind, type(source))
    if key not in _SHARED:
        _SHARED[key] = tuple(field.name for field in fields(key[0]) if hasattr(source, field.name))
    return kind(**{name: getattr(source, name) for name in _SHARED[key] if name not in given}, **given)
