"""The command line in processes of its own, as a person runs it; pages in a browser without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from fakes.claims import broken_rules
from fakes.forked_commands import ForkedCommands
from uncork.engines.places import servers_folder
from uncork.errors import UncorkError
from uncork.store.layout import read_manifest
from uncork.workbench.documents.kinds import kind_of

BRIEF_EVIDENCE = """
from uncork.cli.app import main
from uncork.experiment.plan import evidence_time as evidence
evidence.WATCH_NS = evidence.SYSCALLS_NS = {nanoseconds}
evidence._LEAST = 1.0
main()
"""
"""A program: the command line, but evidence is sampled shortly instead of for eight seconds per variant."""


class Uncork:
    """Runs the command in a folder of its own."""

    def __init__(self, folder: Path, commands: ForkedCommands) -> None:
        self.folder = folder
        self._commands = commands
        self.environment = {**os.environ, "UNCORK_RUNS": str(folder / "runs"), "COLUMNS": "120"}
        for name in ("CI", "FORCE_COLOR"):
            self.environment.pop(name, None)

    def write(self, text: str, name: str = "experiment.toml") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def __call__(self, *arguments: object, env: Mapping[str, str] | None = None, timeout: float = 360):
        words = tuple(map(str, arguments))
        environment = {**self.environment, **(env or {})}
        changed = {name for name, value in environment.items() if os.environ.get(name) != value}
        if any(name.startswith("PYTHON") for name in changed):  # what the interpreter reads at its start
            return self._run((sys.executable, "-m", "uncork", *words), environment, timeout)
        return self._commands.run(words, self.folder, environment, timeout)

    def briefly(self, *arguments: object, seconds: float = 0.5, timeout: float = 360):
        """Run the command, but sample evidence only for so long."""
        program = BRIEF_EVIDENCE.format(nanoseconds=round(seconds * 1e9))
        words = (sys.executable, "-c", program, *map(str, arguments))
        return self._run(words, self.environment, timeout)

    def _run(self, words: tuple[str, ...], environment: Mapping[str, str], timeout: float):
        return subprocess.run(
            words,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "uncork", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, process: subprocess.Popen[str], text: str) -> list[str]:
        """Read standard error until a line holds the text."""
        seen = []
        assert process.stderr is not None
        deadline = time.monotonic() + 150
        while time.monotonic() < deadline:
            line = process.stderr.readline()
            assert line or process.poll() is None, f"it ended without saying {text!r}: {seen}"
            seen.append(line)
            if text in line:
                return seen
        raise AssertionError(f"it did not say {text!r}: {seen}")

    @property
    def runs(self) -> list[Path]:
        return sorted((self.folder / "runs").glob("*"))


@pytest.fixture
def uncork(tmp_path, commands):
    before = set(servers_folder().glob("pg-*"))
    command = Uncork(tmp_path, commands)
    yield command
    left = set(servers_folder().glob("pg-*")) - before
    assert not left, f"servers were left behind: {left}"
    assert {folder.name: broken for folder in command.runs if (broken := _broken_rules(folder))} == {}


def _broken_rules(folder: Path) -> list[str]:
    """Return what the report of a stored run claims against the rules; nothing of a damaged run."""
    try:
        if read_manifest(folder).kind not in {"database", "service", "cure", "log"}:
            return []
        kind = kind_of(folder)
        stored = kind.read(folder)
    except UncorkError:
        return []
    return broken_rules(kind.brief(stored), kind.result(stored))


# ---- pages ----

_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium")
    if path is None:
        message = "no chromium on the PATH; install your system's package"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Open pages from disk; whatever the console says or the network is asked for fails the test."""
    contexts, complaints = [], []

    def opened(address, width=1280, scheme="light", **options):
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            offline=True,
            reduced_motion="reduce",
            **options,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:")) else complaints.append(request.url)
            ),
        )
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
