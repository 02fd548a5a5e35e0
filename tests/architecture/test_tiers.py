"""`make test` protects each command, although it leaves the thorough tests to `make test-all`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tools import reached

from uncork.cli.verbs import VERBS, Verb

TESTS = Path(__file__).parents[1]


def verbs(found: Mapping[str, Verb], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that does something."""
    for name, verb in found.items():
        if verb.target:
            yield (*before, name)
        yield from verbs(verb.verbs or {}, (*before, name))


def is_thorough(nodes: list[ast.expr]) -> bool:
    return any(
        isinstance(part, ast.Attribute) and part.attr == "thorough"
        for node in nodes
        for part in ast.walk(node)
    )


def sources() -> Iterator[str]:
    """Yield the source of each function of an end-to-end test file that `make test` runs."""
    for path in sorted((TESTS / "e2e").glob("test_*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        marks = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)
        ]
        if is_thorough(marks):
            continue
        thorough = [
            node
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and is_thorough(node.decorator_list)
        ]
        for node in tree.body:
            if node not in thorough:
                yield ast.unparse(node)


def words(source: str) -> set[str]:
    """Return the words of all texts in a source."""
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return {word for text in texts if isinstance(text, str) for word in text.split()}


def test_each_command_has_an_end_to_end_test_that_make_test_runs():
    tested = list(map(words, sources()))
    commands = [command for panel in VERBS.values() for command in verbs(panel)]
    assert [
        " ".join(command) for command in commands if not any(set(command) <= found for found in tested)
    ] == []


@pytest.mark.parametrize(
    ("changed", "reaches"),
    [
        ("python/uncork/workbench/guard/guards.py", {"test_guard.py", "test_readme.py"}),
        ("python/uncork/report/experiment/effects.py", {"test_case.py", "test_services.py"}),
        ("python/uncork/mcp/server.py", {"test_mcp.py"}),
        ("python/uncork/serve/runs.py", {"test_serve_following_browser.py"}),
        ("docs/guides/cure.md", {"test_examples.py"}),
    ],
)
def test_a_change_reaches_the_tests_of_what_imports_it_and_not_all(changed, reaches):
    thorough = reached.thorough_tests()
    found = {path.name for path in reached.reached([changed], thorough)}
    assert reaches <= found < {path.name for path in thorough}


@pytest.mark.parametrize(
    "changed",
    ["python/uncork/cases/clair/case.toml", "crates/uncork-log/src/lib.rs", "tests/fakes/claims.py"],
)
def test_what_no_import_shows_reaches_every_test(changed):
    thorough = reached.thorough_tests()
    assert reached.reached([changed], thorough) == thorough


def test_a_test_reaches_itself():
    thorough = reached.thorough_tests()
    assert reached.reached(["tests/e2e/test_case.py"], thorough) == [TESTS / "e2e" / "test_case.py"]
