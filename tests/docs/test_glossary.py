"""The words of the glossary are those that people read, and words that gave way to others are gone."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    ROOT / "docs" / "concepts" / "statistics.md",
]
GLOSSARY = (ROOT / "docs" / "concepts" / "glossary.md").read_text()
RETIRED = {
    r"(?<!-)like (runs?|machines?)": "comparable",
    r"runs that are alike": "comparable runs",
    r"kept from the processor": "descheduled",
    r"lookouts?": "monitor",
    r"obituar(y|ies)": "exit reason",
    r"how it bears it": "how it holds",
}


def words():
    cells = re.findall(r"^\| ([^|]+) \|", GLOSSARY, re.MULTILINE)
    found = [word.strip() for cell in cells for word in cell.split(",")]
    return [word for word in found if word not in {"word", "---"}]


@cache
def texts():
    """Return the texts in each source file, docstrings among them, as one line each."""
    return {
        path: [
            " ".join(node.value.split())
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        for path in sorted((ROOT / "python" / "uncork").rglob("*.py"))
    }


def test_every_word_of_the_glossary_is_used_where_people_read():
    text = "\n".join(path.read_text() for path in PAGES).lower()
    unused = [word for word in words() if not re.search(rf"\b{re.escape(word.lower())}", text)]
    assert unused == []


def test_no_word_has_two_meanings_in_the_glossary():
    assert len(words()) == len(set(words()))


@pytest.mark.parametrize("pattern", RETIRED)
def test_words_that_gave_way_to_others_are_gone(pattern):
    retired = re.compile(rf"(?<!\w){pattern}\b", re.IGNORECASE)
    pages = [path for path in PAGES if retired.search(" ".join(path.read_text().split()))]
    sources = [path for path, found in texts().items() if any(map(retired.search, found))]
    assert [str(path.relative_to(ROOT)) for path in (*pages, *sources)] == [], f"write: {RETIRED[pattern]}"
