"""Commands that are refused: one message, exit status 1, and nothing is stored or left behind.

The files in golden/refusals hold the commands and their messages; UNCORK_BLESS=1 rewrites the messages.
"""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from e2e.conftest import Uncork
from fakes.experiments import QUICK
from fakes.goldens import compare
from fakes.logs import line
from fakes.stored_loads import store_load

TESTS = Path(__file__).parents[1]
FILES = sorted((TESTS / "golden" / "refusals").glob("*.txt"))
PROMPT = "$ uncork "
CHANGES = {
    "operatons": ("operations = 40", "operatons = 40"),
    "twice": ("[variants.key]", "[variants.scan]"),
    "no-baseline": ("baseline = true", ""),
    "slow": ("operations = 40", 'duration = "100ms"'),
    "no-toml": ("[setup]", "[setup"),
    "no-settings": ('[server.settings]\nshared_buffers = "32MB"\n', ""),
}
"""Files that the commands name: an experiment in which the first text is replaced by the second."""
TABLE = "time,metric,value\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands name: experiments, nightly loads, logs and results of other tools."""
    found = tmp_path_factory.mktemp("refused")
    for night in range(12):
        store_load(found / "runs", night, hours=24 * night, commit=f"{night:x}" * 12)
    files = {
        "quick.toml": QUICK,
        **{f"{name}.toml": QUICK.replace(*change, 1) for name, change in CHANGES.items()},
        "one.sql": "SELECT 1;\n",
        "broken.sql": "SELECT 1;\n\\set x random(1,\n",
        "some.log": line("SELECT 1", at_ms=0, ms=1.5),
        "empty.log": "",
        "letter.txt": "Dear Sir or Madam,\nno log is this.\n",
        "letters/letter.txt": "Dear Sir or Madam,\nno log is this.\n",
        "timeless.log": "[7] LOG:  duration: 1 ms  statement: SELECT 1\n",
        **{f"fleet/db{number}/a.log": line("SELECT 1", at_ms=0, ms=number) for number in (1, 2)},
        "newest.log": "".join(line("SELECT 1", at_ms=ms, ms=1.5) for ms in range(9000, 0, -1000)),
        "own.txt": "hello\n",
        "table.csv": f"{TABLE}2026-05-01,p99,1\n2026-05-02,p99,slow\n",
        "two.csv": f"{TABLE}2026-05-01,p99,1\n2026-05-02,p99,2\n",
        "late.csv": f"{TABLE}0001-01-01T00:00+14:00,p99,1\n",
        "wrk.txt": (TESTS / "fixtures" / "results" / "wrk.txt").read_text(),
    }
    for name, text in files.items():
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text(text)
    (found / "nofiles").mkdir()
    (found / "logs.7z").write_bytes(b"7z\xbc\xaf\x27\x1c\x00\x04")
    (found / "cut.log.gz").write_bytes(gzip.compress(files["some.log"].encode())[:12])
    return found


def names(folder):
    """Return what lies in the folder and in that of its runs, in which figures are cached."""
    return sorted([*folder.iterdir(), *(folder / "runs").iterdir()])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_asked_wrongly_is_one_message_and_leaves_nothing(path, folder, commands):
    uncork = Uncork(folder, commands)
    before = names(folder)
    answers = []
    for asked in path.read_text(encoding="utf-8").splitlines():
        if asked.startswith(PROMPT):
            done = uncork(*shlex.split(asked.removeprefix(PROMPT)))
            assert (done.returncode, done.stdout) == (1, ""), (asked, done.stdout, done.stderr)
            assert "Traceback" not in done.stderr
            message = done.stderr.splitlines()[-1]
            answers.append(f"{asked}\n{message}\n".replace(str(folder), "FOLDER"))
    assert names(folder) == before
    compare(path, "\n".join(answers))
