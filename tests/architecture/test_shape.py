"""The tree is what ARCHITECTURE.md and pyproject.toml say it is."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
from tools.generate import REFERENCE

from uncork import __version__
from uncork.model.tables.register import TABLES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "uncork"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXPERIMENTS = sorted([*PACKAGE.glob("experiment/starters/*.toml"), *PACKAGE.glob("cases/*/case.toml")])
LINES = 800
LONGER_WITH_A_REASON: dict[str, str] = {}


def sources(*suffixes, under=("python", "crates", "tools")):
    found = [
        path
        for folder in under
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and "target" not in path.parts and "__pycache__" not in path.parts
    ]
    assert found
    return found


def first_cells(heading):
    """Return the first column of the table under a heading of ARCHITECTURE.md."""
    section = ARCHITECTURE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def names(requirements):
    lines = (line.split("#")[0].strip() for line in requirements)
    return sorted(re.split(r"[<>=!~;]", line)[0].strip().lower() for line in lines if line)


def test_the_version_is_told_alike_everywhere():
    core = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert __version__ == PYPROJECT["project"]["version"] == core


def test_the_table_of_rooms_names_exactly_the_rooms_that_exist():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    rooms |= {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert sorted(first_cells("The rooms")) == sorted(f"uncork.{room}" for room in rooms)


def test_the_table_of_crates_names_exactly_the_crates_that_exist():
    crates = [path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")]
    assert sorted(first_cells("The Rust core")) == sorted(crates)


def test_every_room_has_its_place_among_the_layers():
    layers = PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    placed = {room.strip() for layer in layers for room in layer.split("|")}
    assert placed == {room.removeprefix("uncork.") for room in first_cells("The rooms")}


def test_the_map_names_what_a_room_may_import_as_the_layers_allow():
    layers = [
        {room.strip() for room in layer.split("|")}
        for layer in PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    ]
    depth = {room: number for number, layer in enumerate(layers) for room in layer}
    for line in ARCHITECTURE.splitlines():
        match = re.match(r"\| `uncork\.(\w+)` \|.*\| ([^|]+) \|$", line)
        for below in re.findall(r"`(\w+)`", match[2]) if match else ():
            assert depth[match[1]] < depth[below], f"{match[1]} imports {below}"


def test_every_module_that_the_map_names_exists():
    rooms = "|".join(room.removeprefix("uncork.") for room in first_cells("The rooms"))
    dotted = set(re.findall(rf"(?<![\w.])(?:{rooms})(?:\.\w+)+", ARCHITECTURE))
    paths = {name: PACKAGE.joinpath(*name.split(".")) for name in dotted}
    missing = {
        name
        for name, path in paths.items()
        if not path.is_dir() and not path.with_suffix(".py").is_file() and not defines(path)
    }
    assert len(dotted) > 30 and not missing


def defines(path):
    """Whether a module defines the name that follows it: `model.results.figure` may name a class."""
    module = path.parent.with_suffix(".py")
    return module.is_file() and re.search(rf"^(?:class|def) {path.name}\b", module.read_text(), re.MULTILINE)


def test_the_map_names_every_folder_within_a_room():
    section = ARCHITECTURE.split("\nFolders within the rooms:\n", 1)[1].split("\n## ", 1)[0]
    named = set(re.findall(r"`(\w+)`", section))
    folders = {path.parent for path in PACKAGE.glob("*/*/__init__.py")}
    assert {f"{path.parent.name}/{path.name}" for path in folders if path.name not in named} == set()


def test_source_files_are_short_enough_to_read():
    tests = ("python", "crates", "tools", "tests")
    long = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in sources(".py", ".rs", under=tests)
    }
    assert {name for name, lines in long.items() if lines > LINES} == set(LONGER_WITH_A_REASON)


def test_what_is_installed_is_what_is_declared():
    declared = names(PYPROJECT["project"]["dependencies"])
    building = names(PYPROJECT["build-system"]["requires"])
    pinned = names((ROOT / "requirements" / "run.in").read_text().splitlines())
    assert pinned == sorted([*declared, *building])


def test_the_optional_engines_are_installed_for_the_tests():
    extras = PYPROJECT["project"]["optional-dependencies"].values()
    lines = (ROOT / "requirements" / "engines.in").read_text().splitlines()
    asked = names(line for line in lines if not line.startswith("-"))
    assert asked == names(wanted for extra in extras for wanted in extra)


@pytest.mark.parametrize("kind", ["run", "dev", "engines"])
def test_everything_asked_for_is_pinned_with_a_hash(kind):
    asked = names((ROOT / "requirements" / f"{kind}.in").read_text().splitlines())
    text = (ROOT / "requirements" / f"{kind}.txt").read_text()
    pinned = set(re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==\S+ \\\n +--hash=", text, re.MULTILINE))
    for name in asked:
        if not name.startswith("-"):
            assert name.split("[")[0] in {pin.lower() for pin in pinned}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_reference_lists_every_stored_column(table):
    section = REFERENCE["docs/reference/tables.md"]().split(f"## {table.name}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]+) \|$", section, re.MULTILINE)
    assert [(name, kind, unit.strip(), meaning) for name, kind, unit, meaning in rows] == [
        (column.name, column.type, column.unit, column.meaning) for column in table.columns
    ]


def test_nothing_is_left_to_be_done_in_the_code():
    marks = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XXX|HACK)\b")
    marked = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources(".py", ".pyi", ".rs", ".toml", ".sql", ".css", ".js", ".j2")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if marks.search(line)
    ]
    assert marked == []


@pytest.mark.parametrize("path", sorted((ROOT / "schemas").glob("*.schema.json")), ids=lambda path: path.name)
def test_schemas_are_schemas(path):
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_experiment_files_keep_to_the_schema(path):
    schema = json.loads((ROOT / "schemas" / "experiment.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("experiment", "titel", "x"),
        ("experiment", "seed", -1),
        ("stop", "precision", 3),
        ("stop", "budget", "3"),
        ("stop", "blocks", 1),
    ],
)
def test_the_schema_refuses_what_uncork_refuses(section, key, value):
    schema = json.loads((ROOT / "schemas" / "experiment.schema.json").read_text())
    data = tomllib.loads((PACKAGE / "experiment" / "starters" / "experiment.toml").read_text())
    data[section][key] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(data)


def test_generated_files_are_fresh():
    command = [sys.executable, str(ROOT / "tools" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_of_tests_bear_names_of_their_own_where_their_folder_is_no_package():
    """Two of one name are one module to pytest, which then runs neither."""
    files = [
        path for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()
    ]
    twice = {path.name for path in files if sum(other.name == path.name for other in files) > 1}
    assert len(files) > 50 and not twice


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


FILES = ("tests/unit/stats/test_load.py", "tests/unit/stats/test_student.py")


def test_the_tests_of_a_file_run_in_one_worker():
    how = ("-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "-v", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *how, *FILES], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    ran = re.findall(r"\[(gw\d)\] .*PASSED (tests/\S+\.py)::", done.stdout)
    assert len(ran) > 20
    assert sorted({file for _, file in ran}) == sorted(FILES)
    assert len(set(ran)) == len(FILES)
