"""Compare answers of a service: what differs, and which line of an experiment file leaves that out. Pure.

Places in JSON are JSON pointers (RFC 6901): ``/items/3/age``. In a pattern ``*`` stands for any element of a
list and any key of an object: ``/items/*/age``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final

from uncork.model.http_trial import HttpAnswer
from uncork.model.records import Record
from uncork.model.units import count_words

_SHOWN: Final = 60
_CONTEXT: Final = 20
"""Characters beside a differing place of a text: enough to find the place, and to match nothing else."""
_ATTEMPTS: Final = 10
"""A line of text may have several differing places, and each look finds the first."""
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d(:\d\d(\.\d+)?)?\s?(Z|[+-]\d\d(:?\d\d)?)?")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)


class Change(StrEnum):
    """What differs at a place."""

    VALUE = "value"
    MISSING = "missing"
    """A key that only the first answer has."""
    ADDED = "added"
    """A key that only the second answer has."""
    LENGTH = "length"
    """A list that begins equally, and has another number of elements."""
    ORDER = "order"
    """A list with the same elements in another order."""
    TEXT = "text"
    """A body that is not JSON."""
    OTHER = "other"
    """The status, or the kind of the body: no rule allows that."""


class AnswerRules(Record):
    """What two answers may differ in.

    `ignore` are patterns of places in JSON that are left out, `order_free` patterns of lists whose order does
    not matter, `ignore_text` regular expressions whose matches are left out of other bodies.
    """

    ignore: tuple[str, ...] = ()
    order_free: tuple[str, ...] = ()
    ignore_text: tuple[str, ...] = ()

    def lines(self, wider: AnswerRules) -> str:
        """Return the lines of an experiment file that make these rules as wide as `wider`."""
        new = {name: sorted(set(texts) - set(asdict(self)[name])) for name, texts in asdict(wider).items()}
        return " and ".join(
            f"{name} = [{', '.join(map(_toml, (*asdict(self)[name], *texts)))}]"
            for name, texts in new.items()
            if texts
        )


class Difference(Record):
    """One place in which the second of two answers differs from the first.

    `place` is a pointer, "" for the whole body, and `pattern` the same with ``*`` for positions in lists. A
    line of a text is in `line`, from 1. `first` and `second` show what was found. `generated` is true if both
    values look as if they were made anew each time: moments and UUIDs.
    """

    request: str
    change: Change
    place: str
    pattern: str
    first: str
    second: str
    line: int = 0
    generated: bool = False

    def beside(self, other: str) -> str:
        """Return a sentence about the second answer; `other` is a word for who gave the first."""
        where = self._where()
        match self.change:
            case Change.ORDER:
                told = f"{where} has the elements of {other} in another order"
            case Change.MISSING:
                told = f"{where} is missing"
            case Change.ADDED:
                told = f"{where} is missing in {other}'s"
            case Change.LENGTH:
                many = count_words(int(self.second), "element")
                told = f"{where} has {many} where {other}'s has {self.first}"
            case _:
                found = self.second if self.change is Change.OTHER else f"{where} is {self.second}"
                told = f"{found} where {other} has {self.first}"
        return f"{self.request}: {told}"

    def twice(self) -> str:
        """Return a sentence about both answers of one service."""
        where = self._where()
        match self.change:
            case Change.ORDER:
                told = f"{where} has the same elements in another order the second time"
            case Change.MISSING | Change.ADDED:
                told = f"{where} is present only the {'first' if self.first else 'second'} time"
            case Change.LENGTH:
                told = f"{where} has {count_words(int(self.first), 'element')}, then {self.second}"
            case Change.OTHER:
                told = f"{self.first} first, then {self.second}"
            case _:
                told = f"{where} is {self.first}, then {self.second}"
        return f"{self.request}: {told}"

    def _where(self) -> str:
        return f"line {self.line}" if self.line else self.place or "the body"


def answer_differences(
    expected: Sequence[HttpAnswer], found: Sequence[HttpAnswer], rules: AnswerRules
) -> list[Difference]:
    """Return where the answers to the same requests differ, in order, apart from what the rules allow."""
    pairs = zip(expected, found, strict=True)
    return [told for answer, other in pairs for told in _of_answer(answer, other, rules)]


def allowing(
    expected: Sequence[HttpAnswer], found: Sequence[HttpAnswer], rules: AnswerRules
) -> AnswerRules | None:
    """Return the rules, widened until these answers are equal; None if rules cannot express that."""
    for _ in range(_ATTEMPTS):
        differences = answer_differences(expected, found, rules)
        if not differences:
            return rules
        wider = _widened(rules, differences)
        if wider is None:
            return None
        rules = wider
    return None


def _widened(rules: AnswerRules, differences: Iterable[Difference]) -> AnswerRules | None:
    ignore, order_free, texts = list(rules.ignore), list(rules.order_free), list(rules.ignore_text)
    for difference in differences:
        if difference.change == Change.OTHER or (difference.change == Change.TEXT and not difference.pattern):
            return None
        chosen = {Change.ORDER: order_free, Change.TEXT: texts}.get(difference.change, ignore)
        chosen.append(difference.pattern)
    if "" in ignore:
        return None
    found = [tuple(dict.fromkeys(each)) for each in (ignore, order_free, texts)]
    return AnswerRules(_without_inner(found[0]), found[1], found[2])


def _without_inner(patterns: Sequence[str]) -> tuple[str, ...]:
    outer = tuple(f"{pattern}/" for pattern in patterns)
    return tuple(pattern for pattern in patterns if not pattern.startswith(outer))


# ---- one answer ----


def _of_answer(answer: HttpAnswer, other: HttpAnswer, rules: AnswerRules) -> Iterator[Difference]:
    def whole(first: str, second: str) -> Difference:
        return Difference(answer.request, Change.OTHER, "", "", first, second)

    if answer.status != other.status:
        yield whole(f"status {answer.status}", f"status {other.status}")
    elif (answer.json is None) != (other.json is None):
        yield whole(*(f"a body that is {'not ' * (each.json is None)}JSON" for each in (answer, other)))
    elif answer.json is not None and other.json is not None:
        if answer.json != other.json:
            yield from _Walk(answer.request, rules).differences(answer.json, other.json)
    elif answer.digest != other.digest:
        if answer.text is None or other.text is None:
            yield whole(*(f"a body of {count_words(each.size, 'byte')}" for each in (answer, other)))
        else:
            yield from _of_text(answer.request, answer.text, other.text, rules)


# ---- JSON ----


class _Walk:
    """Compares two JSON values place by place, keys in alphabetical order."""

    def __init__(self, request: str, rules: AnswerRules) -> None:
        self._request = request
        self._ignore = [_matcher(pattern) for pattern in rules.ignore]
        self._order_free = [_matcher(pattern) for pattern in rules.order_free]

    def differences(self, first: str, second: str) -> Iterator[Difference]:
        """Yield the differences of two whole bodies."""
        yield from self._at(self._kept(json.loads(first), ""), self._kept(json.loads(second), ""), "", "")

    def _kept(self, value: Any, at: str) -> Any:
        """Return a value without what is ignored, and with lists sorted whose order does not matter."""
        if isinstance(value, dict):
            inner = ((key, f"{at}/{_escaped(key)}") for key in value)
            return {key: self._kept(value[key], place) for key, place in inner if not self._ignored(place)}
        if isinstance(value, list):
            places = ((number, f"{at}/{number}") for number in range(len(value)))
            kept = [self._kept(value[number], place) for number, place in places if not self._ignored(place)]
            return sorted(kept, key=_canonical) if any(fits(at) for fits in self._order_free) else kept
        return value

    def _ignored(self, place: str) -> bool:
        return any(fits(place) for fits in self._ignore)

    def _at(self, first: Any, second: Any, at: str, pattern: str) -> Iterator[Difference]:
        if isinstance(first, dict) and isinstance(second, dict):
            yield from self._objects(first, second, at, pattern)
        elif isinstance(first, list) and isinstance(second, list):
            yield from self._lists(first, second, at, pattern)
        elif type(first) is not type(second) or first != second:
            generated = _generated(first, second)
            yield self._difference(Change.VALUE, at, pattern, _short(first), _short(second), generated)

    def _objects(
        self, first: dict[str, Any], second: dict[str, Any], at: str, pattern: str
    ) -> Iterator[Difference]:
        only = [sorted(first.keys() - second.keys()), sorted(second.keys() - first.keys())]
        for key in sorted({*first, *second}):
            place = f"{at}/{_escaped(key)}"
            # Keys that come and go in both directions are data, such as ids: no single key can be named.
            general = f"{pattern}/*" if all(only) and key in (*only[0], *only[1]) else None
            inner = general or f"{pattern}/{_escaped(key)}"
            if key not in second:
                yield self._difference(Change.MISSING, place, inner, _short(first[key]), "")
            elif key not in first:
                yield self._difference(Change.ADDED, place, inner, "", _short(second[key]))
            else:
                yield from self._at(first[key], second[key], place, inner)

    def _lists(self, first: list[Any], second: list[Any], at: str, pattern: str) -> Iterator[Difference]:
        if len(first) == len(second):
            stable = _stable_keys(first, second)
            parts = [[_part(one, stable) for one in each] for each in (first, second)]
            if parts[0] != parts[1] and Counter(parts[0]) == Counter(parts[1]):
                yield self._difference(Change.ORDER, at, pattern, "", "")
                # Beside another order, only what no order can make equal differs.
                left: dict[str, list[Any]] = {}
                for part, value in zip(parts[1], second, strict=True):
                    left.setdefault(part, []).append(value)
                second = [left[part].pop(0) for part in parts[0]]
        found = False
        for number, (one, other) in enumerate(zip(first, second, strict=False)):
            for told in self._at(one, other, f"{at}/{number}", f"{pattern}/*"):
                found = True
                yield told
        if not found and len(first) != len(second):
            yield self._difference(Change.LENGTH, at, pattern, str(len(first)), str(len(second)))

    def _difference(
        self, change: Change, at: str, pattern: str, first: str, second: str, generated: bool = False
    ) -> Difference:
        return Difference(self._request, change, at, pattern, first, second, generated=generated)


def _stable_keys(first: Sequence[Any], second: Sequence[Any]) -> frozenset[str] | None:
    """Return the keys of a list's objects that hold the same values in both lists, in any order.

    None if the elements are not all objects, or if no key is stable; then elements are compared whole.
    """
    if not all(isinstance(one, dict) for one in (*first, *second)):
        return None
    keys = {key for one in (*first, *second) for key in one}
    values = [
        {key: Counter(_part(one[key], None) for one in sequence if key in one) for key in keys}
        for sequence in (first, second)
    ]
    return frozenset(key for key in keys if values[0][key] == values[1][key]) or None


def _part(value: Any, keys: frozenset[str] | None) -> str:
    """Return the part of an element that identifies it, as text; the order of lists inside does not count."""
    return _canonical(_sorted(value if keys is None else {key: value[key] for key in value.keys() & keys}))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(inner) for key, inner in value.items()}
    return sorted(map(_sorted, value), key=_canonical) if isinstance(value, list) else value


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _matcher(pattern: str) -> Any:
    words = ["[^/]*" if word == "*" else re.escape(word) for word in pattern.split("/")]
    return re.compile("/".join(words)).fullmatch


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


# ---- texts ----


def _of_text(request: str, first: str, second: str, rules: AnswerRules) -> Iterator[Difference]:
    for pattern in rules.ignore_text:
        first, second = (re.sub(pattern, "", text, flags=re.MULTILINE) for text in (first, second))
    lines = first.splitlines(), second.splitlines()
    paired = len(lines[0]) == len(lines[1])
    known: set[str] = set()
    for number, (line, other) in enumerate(zip(*lines, strict=False), start=1):
        if line == other:
            continue
        begin, ends = _differing(line, other)
        pattern = _expression(line, begin, ends[0]) if paired else ""
        if pattern and pattern in known:
            continue
        known.add(pattern)
        words = [text[begin:end] for text, end in zip((line, other), ends, strict=True)]
        shown = [_around(text, begin, end) for text, end in zip((line, other), ends, strict=True)]
        yield Difference(request, Change.TEXT, "", pattern, shown[0], shown[1], number, _generated(*words))
        if not paired:
            return
    if not paired and not known:
        counts = [f"a text of {count_words(len(line), 'line')}" for line in lines]
        yield Difference(request, Change.OTHER, "", "", counts[0], counts[1])
    elif paired and not known and first != second:
        yield Difference(request, Change.OTHER, "", "", "a text", "a text with other line ends")


def _differing(one: str, other: str) -> tuple[int, tuple[int, int]]:
    """Return where two lines differ: the first character, and the end in each.

    The place begins and ends with whole words, because parts of a number or a token may agree by chance.
    """
    pairs = enumerate(zip(one, other, strict=False))
    begin = next((at for at, pair in pairs if pair[0] != pair[1]), min(len(one), len(other)))
    while begin > 0 and _in_word(one[begin - 1]):
        begin -= 1
    rest = one[begin:], other[begin:]
    ends = enumerate(zip(reversed(rest[0]), reversed(rest[1]), strict=False))
    same = next((at for at, pair in ends if pair[0] != pair[1]), min(map(len, rest)))
    while same > 0 and _in_word(rest[0][len(rest[0]) - same]):
        same -= 1
    return begin, (len(one) - same, len(other) - same)


def _in_word(sign: str) -> bool:
    return sign.isalnum() or sign in "-_.:+"


def _expression(line: str, begin: int, end: int) -> str:
    """Return a regular expression for a place of a line; "" if no text stands before it."""
    before, after = line[max(0, begin - _CONTEXT) : begin], line[end : end + _CONTEXT]
    if not before.strip():
        return ""
    return f"{_plain_escape(before)}{'.*?' + _plain_escape(after) if after else '.*'}"


def _plain_escape(text: str) -> str:
    """Escape what a regular expression would read as more than a character, and nothing else."""
    return re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", text)


def _around(line: str, begin: int, end: int) -> str:
    start, stop = max(0, begin - _CONTEXT), min(len(line), max(end, begin) + _CONTEXT)
    text = line[start:stop]
    text = text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN - 3]}..."
    return f'"{"..." if start else ""}{text}{"..." if stop < len(line) else ""}"'


# ---- words ----


def _generated(first: object, second: object) -> bool:
    """Return whether both values are moments, or both are UUIDs."""
    return (
        isinstance(first, str)
        and isinstance(second, str)
        and any(kind.fullmatch(first) and kind.fullmatch(second) for kind in (_TIME, _UUID))
    )


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _toml(text: str) -> str:
    """Return a string of TOML; a literal one if it contains backslashes, so that it stays readable."""
    if ("\\" in text or '"' in text) and "'" not in text and text.isprintable():
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
