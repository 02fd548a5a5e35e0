"""The first sentence of an answer: short enough to be read at a glance. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from uncork.model.template_words import short_template

MOST_WORDS: Final = 20
"""Most words of a headline. A number and its unit are one word."""
MOST_NUMBERS: Final = 3
"""Most numbers of a headline, besides those in quoted text."""

_TERM: Final = re.compile(r"\d+ % interval")
"""A term that begins with a number: the level of an interval is part of its name, as in p99."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?")
_UNIT: Final = r"(?: ?(?:[nµm]?s|min \d\d s|min|h|[kMGT]?i?B|%)(?!\w))?"
_NUMBER: Final = re.compile(rf"(?<![\w.$])(?<!\w-)[+−±×÷-]?\d+(?: \d{{3}}(?!\d))*(?:[.,]\d+)*{_UNIT}(?![\w])")
_QUOTED: Final = re.compile(r'"[^"]*"')
_END: Final = re.compile(r'"[^"]*"|\.(?= )')
_TEMPLATE_WORDS: Final = 8
_TEMPLATE_WIDTH: Final = 64
_LOOSE_ENDS: Final = " ,…(=?"


def numbers_in(text: str) -> int:
    """Return how many numbers a sentence states; quoted text, names and terms such as p99 do not count."""
    return len(_NUMBER.findall(_TIME.sub("0", _TERM.sub("interval", _QUOTED.sub('""', text)))))


def words_in(text: str) -> int:
    """Return how many words a sentence has, with quoted text; a number and its unit are one word."""
    joined = _NUMBER.sub(" 0 ", _TIME.sub("0", _TERM.sub("interval", text)))
    return sum(any(sign.isalnum() for sign in word) for word in joined.split())


def fits(text: str) -> bool:
    """Return whether a sentence is short enough for a headline."""
    return words_in(text) <= MOST_WORDS and numbers_in(text) <= MOST_NUMBERS


def fitting(candidates: Iterable[tuple[str, str]]) -> str:
    """Return the first headline that fits, or else the last one, with its sentences after it."""
    found = list(candidates)
    return join_sentences(next((one for one in found if fits(one[0])), found[-1]))


def join_sentences(sentences: Iterable[str]) -> str:
    """Return a paragraph of sentences, each with a full stop or a question mark; empty ones are left out."""
    found = (text.rstrip(". ") for text in sentences)
    return " ".join(text if text.endswith("?") else f"{text}." for text in found if text)


def capital(text: str) -> str:
    """Return the text with its first letter in upper case, unless it begins with a name such as p99."""
    first = text.partition(" ")[0]
    return text if any(map(str.isdigit, first)) else text[:1].upper() + text[1:]


def uncapital(text: str) -> str:
    """Return the text with its first letter in lower case, unless it begins with a name such as CPU."""
    word = text.partition(" ")[0]
    is_name = any(letter.isupper() or letter.isdigit() for letter in word[1:])
    return text if is_name else text[:1].lower() + text[1:]


def split_answer(answer: str) -> tuple[str, str]:
    """Return the first sentence of an answer, and the sentences after it."""
    for match in _END.finditer(answer):
        if match[0] == ".":
            return answer[: match.end()], answer[match.end() + 1 :]
    return answer, ""


def headline_template(text: str) -> str:
    """Return a template as a headline quotes it: its beginning, up to a few words, in quotation marks."""
    plain = short_template(text.replace('"', ""), _TEMPLATE_WIDTH)
    words = plain.split(" ")
    if plain.endswith("…") and len(words) > 1:
        words.pop()  # it was cut within a word
    while len(words) > 1 and words_in(" ".join(words)) > _TEMPLATE_WORDS:
        words.pop()
    shown = " ".join(words)
    return f'"{plain}"' if shown == plain else f'"{shown.rstrip(_LOOSE_ENDS)} …"'
