"""Every connection that uncork opens to PostgreSQL says by its name what it is for."""

import ast
from pathlib import Path

ENGINES = Path(__file__).parents[2] / "python" / "uncork" / "engines"
BY_ADDRESS = {"postgres.py"}
"""Connects by the connection string of an `Address`, which has a name."""


def test_each_connection_names_its_application():
    nameless = []
    for path in sorted(ENGINES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "psycopg.connect":
                named = any(word.arg == "application_name" for word in node.keywords)
                if not named and path.name not in BY_ADDRESS:
                    nameless.append(f"{path.name}:{node.lineno}")
    assert nameless == []
