"""Declare an option of a verb once: its flags, help, panel, and how a text or a Python value is read.

A verb's options are a dataclass whose fields are declared with `opt`; an option of several verbs is
a type annotated with `Opt`. The command line builds its parser from the dataclass, Python its
signature and documentation, and refusals take the option's name from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from operator import index
from os import fspath
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from uncork.errors import UsageError
from uncork.model.units import parse_bytes, parse_duration

MOST: Final = 2**31 - 1
"""The default upper bound of a whole number."""

Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class Kind:
    """How an option gets its value: `read` takes a text, `take` a Python value; both also take its name.

    Both raise UsageError if the value is refused.
    """

    read: Callable[[str, str], Any]
    take: Callable[[Any, str], Any]


class Location(str):
    """A file, a folder, a glob or an address, as it was written: a path would shorten ``s3://``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Opt:
    """Declare an option or an argument.

    `spec` is written as help shows it: ``-c, --client NUM``, or ``[DBNAME]`` for an argument. `python`
    replaces `help` in the documentation of the Python function. `kind` is derived from the type if None.
    """

    spec: str
    help: str
    kind: Kind | None = None
    panel: str | None = None
    python: str | None = None
    envvar: str | None = None
    show_default: bool = False


def opt(
    spec: str,
    help: str,
    kind: Kind | None = None,
    *,
    default: object = None,
    required: bool = False,
    panel: str | None = None,
    python: str | None = None,
    show_default: bool = False,
) -> Any:
    """Return a dataclass field that is an option: see `Opt`."""
    declared = Opt(spec, help, kind, panel, python, None, show_default)
    return field(default=MISSING if required else default, metadata={Opt: declared})


@dataclass(frozen=True, slots=True)
class Option:
    """One declared option: its field, flags (none for an argument), metavar, type and default."""

    field: str
    flags: tuple[str, ...]
    metavar: str | None
    type: Any
    many: bool
    kind: Kind
    default: Any
    required: bool
    opt: Opt

    @property
    def name(self) -> str:
        """How messages name the option: ``-c/--client``, or DBNAME for an argument."""
        return "/".join(self.flags[:2]) or (self.metavar or self.field).strip("[].")


def options_of(options: type[Any]) -> tuple[Option, ...]:
    """Return the options that a dataclass declares, in its order."""
    hints = get_type_hints(options, include_extras=True)
    found = []
    for field_ in fields(options):
        hint = hints[field_.name]
        opt = field_.metadata.get(Opt) or next(each for each in hint.__metadata__ if isinstance(each, Opt))
        plain, many = _plain(hint)
        words = opt.spec.split(" ")
        flags = tuple(word.rstrip(",") for word in words if word.startswith("-"))
        required = field_.default is MISSING
        found.append(
            Option(
                field=field_.name,
                flags=flags,
                metavar=" ".join(words[len(flags) :]) or None,
                type=plain,
                many=many,
                kind=opt.kind or _kind(plain),
                default=None if required else field_.default,
                required=required,
                opt=opt,
            )
        )
    return tuple(found)


def _plain(hint: Any) -> tuple[Any, bool]:
    """Return the type of one value, and whether the option may be repeated."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        hint = next(arg for arg in get_args(hint) if arg is not type(None))
    return (get_args(hint)[0], True) if get_origin(hint) is list else (hint, False)


def _kind(plain: Any) -> Kind:
    if get_origin(plain) is Literal:
        return choice(*get_args(plain))
    if plain is Location:
        return Kind(lambda text, _: Location(text), lambda value, _: Location(fspath(value)))
    if plain is Path:
        return Kind(lambda text, _: Path(text), lambda value, _: Path(value))
    return {int: whole(), float: number()}.get(plain, Kind(lambda text, _: text, lambda value, _: value))


# ---- from words, from values ----


def from_words(options: type[Options], words: Mapping[str, Any]) -> Options:
    """Return the options that a command line gives: texts and lists of texts by field.

    Raises UsageError if a text cannot be read, or its value is out of range.
    """
    return _filled(
        options, words, lambda kind, text, name: kind.read(text, name) if isinstance(text, str) else text
    )


def from_values(options: type[Options], values: Mapping[str, Any]) -> Options:
    """Return the options that a Python call gives; refusals name the keyword.

    Raises UsageError if a value has the wrong type, or is out of range.
    """
    return _filled(options, values, lambda kind, value, name: kind.take(value, name), keywords=True)


def _filled(
    options: type[Options],
    given: Mapping[str, Any],
    value_of: Callable[[Kind, Any, str], Any],
    *,
    keywords: bool = False,
) -> Options:
    filled: dict[str, Any] = {}
    for option in options_of(options):
        value, name = given.get(option.field), option.field if keywords else option.name
        if value is None:
            continue
        if option.many:
            many = (
                value.items() if isinstance(value, Mapping) else [value] if isinstance(value, str) else value
            )
            filled[option.field] = [value_of(option.kind, each, name) for each in many] or None
        else:
            filled[option.field] = value_of(option.kind, value, name)
    return options(**{name: value for name, value in filled.items() if value is not None})


def names_given(options: object, panels: tuple[str, ...], leave_out: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the names of the options of some panels that are given."""
    for option in options_of(type(options)):
        given = getattr(options, option.field) != option.default
        if given and option.opt.panel in panels and option.field not in leave_out:
            yield option.name


# ---- kinds ----


def whole(least: int = 1, most: int = MOST, *, refusal: str = "", words: tuple[str, ...] = ()) -> Kind:
    """Take a whole number from `least` to `most`, or one of `words`.

    `refusal` is the message for everything else; it may hold ``{value}`` and ``{option}``.
    """

    def check(value: int, option: str) -> int:
        if not least <= value <= most:
            problem = f"{option} must be in range {least}..{most}; found {value}"
            raise UsageError(refusal.format(value=value, option=option) or problem)
        return value

    def read(text: str, option: str) -> int | str:
        if text in words:
            return text
        if not re.fullmatch(r"\s*[-+]?\d+\s*", text):
            problem = f'invalid value "{text}" for option {option}; expecting a whole number'
            raise UsageError(refusal.format(value=text, option=option) or problem)
        return check(int(text), option)

    def take(value: Any, option: str) -> int | str:
        if isinstance(value, str | float):
            return read(str(value), option)
        return check(index(value), option)

    return Kind(read, take)


def number(
    above: float = -math.inf, most: float = math.inf, *, refusal: str = "", scale: float | None = None
) -> Kind:
    """Take a finite number above `above` and at most `most`.

    With `scale` it is a time. A bare number is multiplied by that many nanoseconds; a unit may follow it.
    """

    def check(value: float, option: str) -> float | int:
        if not above < value <= most:
            problem = f"{option} must be above {above:g}; found {value:g}"
            raise UsageError(refusal.format(value=value, option=option) or problem)
        return value if scale is None else max(1, round(value * scale))

    def read(text: str, option: str) -> float | int:
        try:
            value = float(text)
        except ValueError:
            if scale is not None and re.match(r"\s*\d", text):
                return check(quantity_ns(with_unit(text, ""), option) / scale, option)
            raise UsageError(f'invalid value "{text}" for option {option}; expecting a number') from None
        if not math.isfinite(value):
            raise UsageError(f'invalid value "{text}" for option {option}; expecting a finite number')
        return check(value, option)

    def take(value: Any, option: str) -> float | int:
        if scale is not None:
            return check(quantity_ns(value, option) / scale, option)
        return read(value, option) if isinstance(value, str) else check(float(value), option)

    return Kind(read, take)


def with_unit(text: str, unit: str) -> str:
    """Return a time with `unit` if it is a bare number. ``1m`` is a minute, as in h2load."""
    minutes = re.fullmatch(r"\s*(\d+)m\s*", text)
    bare = re.fullmatch(r"\s*\d+(\.\d+)?\s*", text)
    return f"{minutes[1]}min" if minutes else f"{text.strip()}{unit}" if bare else text


def duration(unit: str = "s", *, zero: bool = False) -> Kind:
    """Take a time and return nanoseconds. On the command line, a bare number has the unit `unit`.

    `zero` allows 0, without a unit too.
    """

    def check(value: int, option: str, found: object) -> int:
        if not (0 if zero else 1) <= value <= MOST * 10**9:
            raise UsageError(f"{option} must be above 0; found {found}")
        return value

    def read(text: str, option: str) -> int:
        if zero and re.fullmatch(r"0+\s*[a-z]*", text):
            return 0
        text = with_unit(text, unit)
        return check(quantity_ns(text, option), option, text)

    return Kind(read, lambda value, option: check(quantity_ns(value, option), option, value))


def size() -> Kind:
    """Take a size such as ``20GB`` and return bytes; a Python value may be a number of bytes."""

    def check(value: int, option: str) -> int:
        if value < 1:
            raise UsageError(f"{option} must be above 0")
        return value

    def read(text: str, option: str) -> int:
        try:
            return check(parse_bytes(text.removesuffix("/s")), option)
        except ValueError as error:
            raise UsageError(f"{option}: {error}") from error

    return Kind(
        read,
        lambda value, option: check(value, option) if isinstance(value, int) else read(str(value), option),
    )


def choice(*known: str, refusal: str = "") -> Kind:
    """Take one of the known words."""

    def check(value: str, option: str) -> str:
        if value not in known:
            listed = f"{', '.join(known[:-1])} or {known[-1]}"
            raise UsageError(refusal.format(value=value) or f'{option} "{value}": expecting {listed}')
        return value

    return Kind(check, check)


def name_pattern() -> Kind:
    """Take a name, or a pattern with `*`; `!` before it excludes names."""

    def check(value: Any, option: str) -> str:
        if not isinstance(value, str) or not value.removeprefix("!"):
            raise UsageError(f'{option} "{value}": expecting a name, such as shop, shop_* or "!shop"')
        return value

    return Kind(check, check)


def pair(separator: str, refusal: str, name: str = r".*\S.*", value: str = ".*") -> Kind:
    """Take a name and a value around a separator; `name` and `value` are patterns that they must match.

    A Python value is an entry of a mapping.
    """

    def read(text: str, option: str) -> tuple[str, str]:
        left, found, right = text.partition(separator)
        if not found:
            raise UsageError(refusal.format(value=text, name=left))
        return take((left, right), option)

    def take(entry: tuple[str, object], _: str) -> tuple[str, str]:
        left, right = entry[0].strip(), str(entry[1]).strip() if separator == ":" else str(entry[1])
        if not re.fullmatch(name, left) or not re.fullmatch(value, right, re.DOTALL):
            raise UsageError(refusal.format(value=f"{left}{separator}{right}", name=left))
        return left, right

    return Kind(read, take)


def quantity_ns(value: object, option: str) -> int:
    """Return the nanoseconds of a time with a unit, or of a timedelta.

    Raises UsageError if it is neither.
    """
    if isinstance(value, timedelta):
        return ((value.days * 86_400 + value.seconds) * 10**6 + value.microseconds) * 1000
    if not isinstance(value, str):
        raise UsageError(f'{option}={value!r}: write a time with its unit, such as "10s"')
    try:
        return parse_duration(value)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
