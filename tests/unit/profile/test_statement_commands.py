"""Commands have a name and their tables; no text of the fixtures raises an error."""

import gzip
import re
from pathlib import Path

import pytest

from fakes.goldens import compare_answers
from uncork.profile.statement_shape import statement_shape

TABLES = {"orders": ("id", "note"), "shop.items": ("id", "sku")}
ROOT = Path(__file__).resolve().parents[3]


def test_commands_have_their_name_and_tables():
    def answer(sql):
        found = statement_shape(sql, TABLES)
        assert found.temporary == (" TEMP " in sql)
        tables = [f"{one.name}{' (changed)' * one.changed}" for one in found.tables]
        return f"{found.kind}: {', '.join(tables)}"

    compare_answers("profile/commands", answer)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        ";",
        "SELEC 1",
        "SELECT 1; SELECT 2",
        "SELECT 'cut short",
        "SELECT '\0'",
        "SELECT " + " || ".join(["note"] * 2000),
        " UNION ".join(["SELECT 1"] * 500),
    ],
    ids=lambda sql: sql[:20],
)
def test_what_the_grammar_rejects_has_no_shape(sql):
    assert statement_shape(sql, TABLES) is None
    assert statement_shape(sql, TABLES, template=True) is None


def _statements():
    """Yield the SQL in the fixtures and cases, and what is left of it in logs."""
    folders = (ROOT / "tests" / "fixtures", ROOT / "python" / "uncork" / "cases")
    for path in sorted(one for folder in folders for one in folder.rglob("*")):
        if path.suffix == ".sql":
            yield from path.read_text().split(";")
        elif path.suffix in {".log", ".gz", ".py"}:
            whole = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            found = re.findall(
                r"(?:statement|execute [^:]*|Query Text): +(.*)|\"\"\"(.*?)\"\"\"",
                whole.decode(errors="replace"),
            )
            yield from [one or other for one, other in found][:500]


def test_no_statement_of_the_fixtures_raises_an_error():
    kinds = [
        found.kind
        for sql in dict.fromkeys(one.strip() for one in _statements() if len(one) < 20_000)
        for template in (False, True)
        if (found := statement_shape(sql, TABLES, template=template)) is not None
    ]
    assert len(kinds) > 250
    assert {"select", "insert", "update", "create table", "create index"} <= set(kinds)
