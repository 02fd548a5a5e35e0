"""What the documentation says is what the product does."""

from __future__ import annotations

import ast
import difflib
import importlib.metadata
import os
import random
import re
import shlex
import subprocess
import sys
from collections import Counter
from functools import cache
from hashlib import sha1
from pathlib import Path

import pytest
import typer
from tools.generate import REFERENCE, _commands

from fakes.load_results import ENVIRONMENT
from fakes.stored_loads import store_load
from uncork.cli.app import app
from uncork.engines.drivers.dbapi import DbapiEngine
from uncork.errors import UsageError
from uncork.model.engine import ENGINES, engine_kind
from uncork.model.extras import declared_requirements, install_command, install_extra, install_modules

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


PACKAGE = ROOT / "python" / "uncork"
HINTS_PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(PACKAGE.glob("cases/*/*.md"))]
HOLE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for what a message fills in."""
COMMAND = re.compile(r"\buncork ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^`\n;,)<]*)")
TITLES = re.compile(r"^uncork [a-z ]+, version " + HOLE)
DECLARED = {wanted for wanteds in declared_requirements().values() for wanted in wanteds}


def texts(path):
    """Yield every text of a source file with its line; what an f-string fills in is a HOLE."""
    tree = ast.parse(path.read_text())
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


@cache
def messages():
    """Return every text of the package with its place."""
    found = [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for path in sorted(PACKAGE.rglob("*.py"))
        if "cases" not in path.parts
        for line, text in texts(path)
    ]
    for path in sorted(PACKAGE.rglob("*.j2")):
        found.append((str(path.relative_to(ROOT)), re.sub(r"\{\{.*?\}\}", HOLE, path.read_text())))
    return found


def known_verbs():
    from tools.generate import _commands, app, typer

    command = typer.main.get_command(app)
    return {tuple(path[1:]): found for path, found in _commands(command, ["uncork"])}


def is_meant_as_command(word, rest, text, start, known):
    """Whether a word after `uncork` that is no verb is a mistyped one, and not part of a sentence."""
    verbs = sorted({verb[0] for verb in known})
    is_sentence = word.removesuffix("s") in verbs  # such as: uncork compares two runs
    is_close = bool(difflib.get_close_matches(word, verbs, cutoff=0.75)) and not is_sentence
    return is_close or text[start - 1 : start] == "`" or " --" in rest


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("see it: uncork reprot last", True),
        ("`uncork frobnicate`", True),
        ("go on: uncork resume --run x", True),
        ("uncork compares two runs", False),
        ("uncork chooses the length", False),
    ],
)
def test_a_mistyped_verb_is_told_from_a_sentence(text, wrong):
    match = COMMAND.search(text)
    assert is_meant_as_command(match[1], match[3], text, match.start(), known_verbs()) == wrong


def test_every_command_in_a_message_is_a_verb_with_its_options():
    known, wrong, seen = known_verbs(), [], 0
    groups = {verb[:-1] for verb in known if len(verb) > 1}
    for place, text in messages():
        if TITLES.match(text):
            continue
        for match in COMMAND.finditer(text):
            first, second, rest = match[1], match[2] or "", match[3]
            verb = (first, second) if (first, second) in known else (first,)
            if verb not in known:
                if verb not in groups and is_meant_as_command(first, rest, text, match.start(), known):
                    wrong.append(f"{place}: {match[0]}")
                continue
            seen += 1
            options = {option for parameter in known[verb].params for option in parameter.opts}
            used = set(re.findall(r"(?<=\s)--[a-z][a-z-]*", f" {second} {rest}".split(" --command ")[0]))
            if not used <= options:
                wrong.append(f"{place}: {match[0]}: {used - options}")
    assert not wrong, "\n".join(wrong)
    assert seen > 100


def test_only_one_place_recommends_an_installation():
    """So that each is a command for the Python that runs uncork, with a requirement that is declared."""
    found = {
        place.partition(":")[0] for place, text in messages() if re.search(r"\bpip3? install|uncork\[", text)
    }
    assert not found


def test_what_is_installed_is_declared_and_the_command_is_one():
    for extra, wanted in declared_requirements().items():
        words = shlex.split(install_extra(extra))
        assert words[1:4] == ["-m", "pip", "install"]
        assert tuple(words[4:]) == wanted
        assert set(words[4:]) <= DECLARED
    extras = set(importlib.metadata.metadata("uncork").get_all("Provides-Extra"))
    assert extras <= set(declared_requirements())


def test_the_python_of_an_installation_is_the_one_that_runs(monkeypatch, tmp_path):
    word = shlex.split(install_command("h2"))[0]
    assert subprocess.run([word, "-c", "import uncork"], check=False).returncode == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    assert install_command("h2>=4.1,<5") == ".venv/bin/python -m pip install 'h2>=4.1,<5'"
    monkeypatch.setattr(sys, "executable", "/opt/a b/python")
    assert install_command("h2") == "'/opt/a b/python' -m pip install h2"


@pytest.mark.parametrize(
    "kind", [kind for kind in ENGINES.values() if kind.extra], ids=lambda kind: kind.name
)
def test_an_engine_without_its_driver_says_what_installs_it(kind, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    reason = DbapiEngine(kind, {}).start()
    words = shlex.split(reason.rpartition(": ")[2])
    assert words[1:4] == ["-m", "pip", "install"]
    assert set(words[4:]) <= DECLARED


def test_a_driver_of_which_nothing_is_known_is_no_package_to_install():
    reason = DbapiEngine(engine_kind("dbapi:no_such_driver"), {}).start()
    assert reason == (
        "its driver no_such_driver is not installed for this Python: "
        f"install the package that provides it into {sys.executable}"
    )


def test_a_module_is_installed_by_the_requirement_that_provides_it():
    (wanted,) = [one for one in DECLARED if one.startswith("psycopg-pool")]
    assert install_modules(["psycopg_pool"]) == install_command(wanted)
    assert install_modules(["psycopg_pool", "granian"]).startswith(f"{install_command(wanted)} 'granian")
    assert install_modules(["psycopg_pool", "no_such_module"]) is None


def test_a_checkout_that_is_not_installed_names_the_target_that_installs_all(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", missing)
    assert install_extra("store", "gcsfs") == "make engines"
    assert install_modules(["h2"]) is None


def test_a_store_at_an_address_says_what_to_install(monkeypatch):
    from uncork.store.remote.address import parse_address
    from uncork.store.remote.objects import _look_for_backend

    monkeypatch.setitem(sys.modules, "fsspec.registry", None)
    with pytest.raises(UsageError) as caught:
        _look_for_backend(parse_address("gs://x/y", {}))
    assert str(caught.value) == f"gs://x/y needs fsspec: {install_extra('store', 'gcsfs')}"


def test_logs_at_an_address_say_what_to_install(monkeypatch):
    from uncork.profile.objects.address import parse_object_address
    from uncork.profile.objects.client import Client

    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UsageError) as caught:
        Client(parse_object_address("s3://x/y"))
    assert str(caught.value) == f"s3://x/y needs obstore: {install_extra('objects')}"


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(PACKAGE.glob("cases/*/*.md"))],
    ids=str,
)
def test_no_page_installs_uncork_from_a_registry(page):
    assert not re.search(r"pip install ['\"]?uncork\b", page.read_text())


USUAL = (1.01, 0.98, 1.03, 0.97, 1.0, 1.02, 0.99, 1.01)


def shown(page: str) -> list[tuple[str, str]]:
    """Return the commands of a guide with the output that it shows under them, if it shows some."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "docs" / "guides" / page).read_text(), re.DOTALL)
    return [
        (command, output)
        for block in blocks
        for command, output in re.findall(r"^\$ ([^\n]+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]


def run(folder: Path, command: str) -> str:
    words = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, "UNCORK_RUNS": ".uncork/runs", "COLUMNS": "96"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_guide_of_comparing_shows_what_is_printed(tmp_path):
    runs = tmp_path / ".uncork" / "runs"
    for number, slower in enumerate(USUAL):
        store_load(runs, number, slower, commit=f"{number:040x}")
    store_load(runs, 8, 1.35, commit="c" * 40)
    pairs = [pair for pair in shown("compare.md") if pair[1]]
    assert len(pairs) == 2
    for command, output in pairs:
        printed = run(tmp_path, command)
        wanted = output.removesuffix("...\n")
        assert "\n".join(text.rstrip() for text in printed.splitlines()).startswith(wanted.rstrip("\n"))


def test_the_guide_of_histories_shows_what_is_printed(tmp_path):
    runs = tmp_path / ".uncork" / "runs"
    draw = random.Random(4)
    newer = {**ENVIRONMENT, "server": {**ENVIRONMENT["server"], "version": "PostgreSQL 18.5"}}
    for number in range(16):
        level = (1.0 if number < 10 else 1.25) * draw.gauss(1, 0.02)
        commit = sha1(bytes([number // 5])).hexdigest()
        environment = ENVIRONMENT if number < 10 else newer
        store_load(runs, number, level, hours=24 * number, commit=commit, environment=environment)
    pairs = [pair for page in ("history.md", "import.md") for pair in shown(page) if pair[1]]
    (tmp_path / "wrk.txt").write_text((ROOT / "tests" / "fixtures" / "results" / "wrk.txt").read_text())
    assert [command.split()[1] for command, _ in pairs] == ["history", "import"]
    for command, output in pairs:
        printed = "\n".join(text.rstrip() for text in run(tmp_path, command).splitlines())
        assert printed.startswith(output.removesuffix("...\n").rstrip("\n"))


@pytest.mark.parametrize("page", ["compare.md", "history.md", "import.md"])
def test_the_guides_are_short(page):
    assert len((ROOT / "docs" / "guides" / page).read_text().splitlines()) < 140


PAGE = (ROOT / "docs" / "reference" / "peers.md").read_text()
ROWS = [
    tuple(cell.strip() for cell in found)
    for found in re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+) \|$", PAGE, re.MULTILINE)
]
ABILITIES = 87


def commands():
    """Yield each command of the page with the number of its row."""
    for number, *_, cell in ROWS:
        for command in re.findall(r"`(uncork (?:[a-z]|--)[^`]+)`", cell):
            yield number, command


def peers_known_verbs():
    return {tuple(path[1:]): found for path, found in _commands(typer.main.get_command(app), ["uncork"])}


def test_each_ability_has_one_row_in_order():
    assert [int(row[0]) for row in ROWS] == list(range(1, ABILITIES + 1))


def test_the_summary_counts_the_rows():
    counts = Counter(row[3] for row in ROWS)
    assert set(counts) <= {"yes", "in part", "no"}
    assert (
        f"Of {ABILITIES} abilities that its peers have or that people ask for, uncork has {counts['yes']}, "
        f"has {counts['in part']} in part, and lacks {counts['no']}."
    ) in PAGE


def test_a_row_with_less_than_all_says_what_is_missing():
    for number, _, _, answer, cell in ROWS:
        if answer == "yes":
            assert re.match(r"`uncork [^`]+`( \(after row \d+\))?<br>`[^`]+`", cell), number
        else:
            assert "ot yet" in cell or "../decisions/ADR-" in cell, number


def test_every_command_is_a_verb_with_its_options():
    known, seen = peers_known_verbs(), 0
    for number, command in commands():
        words = shlex.split(command)[1:]
        if words == ["--version"]:
            continue
        verb = tuple(words[:2]) if tuple(words[:2]) in known else tuple(words[:1])
        assert verb in known, f"row {number}: {command}"
        options = {option for parameter in known[verb].params for option in parameter.opts} | {"--help"}
        used = {word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z][^ ]*$", word)}
        assert used <= options, f"row {number}: {command}: {used - options}"
        seen += 1
    assert seen > ABILITIES - 5


def test_every_file_of_a_command_and_every_row_it_follows_exists():
    for number, command in commands():
        for word in shlex.split(command):
            if word.startswith(("examples/", "tests/")):
                assert (ROOT / word).exists(), f"row {number}: {word}"
    for number, *_, cell in ROWS:
        for before in re.findall(r"\(after row (\d+)\)", cell):
            assert int(before) != int(number)
            assert int(before) <= ABILITIES
