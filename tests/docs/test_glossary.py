"""The words of the glossary are those that people read."""

import re
from pathlib import Path

from tools.generate import REFERENCE

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *(ROOT / "docs" / "concepts" / f"{page}.md" for page in ("verdicts", "methods", "error-rates")),
]
GLOSSARY = (ROOT / "docs" / "concepts" / "glossary.md").read_text()


def words():
    cells = re.findall(r"^\| ([^|]+) \|", GLOSSARY, re.MULTILINE)
    found = [word.strip() for cell in cells for word in cell.split(",")]
    return [word for word in found if word not in {"word", "---"}]


def test_every_word_of_the_glossary_is_used_where_people_read():
    reference = (make() for make in REFERENCE.values())
    text = "\n".join([*(path.read_text() for path in PAGES), *reference]).lower()
    unused = [word for word in words() if not re.search(rf"\b{re.escape(word.lower())}", text)]
    assert unused == []


def test_no_word_has_two_meanings_in_the_glossary():
    assert len(words()) == len(set(words()))
