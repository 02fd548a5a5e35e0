"""The table of verbs, and the command lines that option dataclasses make."""

import re
import subprocess
import sys

import pytest
import typer
from typer.exceptions import TyperException

from uncork.cli.app import app
from uncork.cli.examples import EXAMPLES
from uncork.cli.misuse import misuse_message
from uncork.cli.verbs import LazyGroup


def loaded(group, path=()):
    for name in group.commands:
        command = group.load(name) if isinstance(group, LazyGroup) else group.commands[name]
        yield (*path, name), group.commands[name], command
        if hasattr(command, "commands"):
            yield from loaded(command, (*path, name))


COMMANDS = list(loaded(typer.main.get_command(app)))


@pytest.mark.parametrize(
    ("path", "shown", "command"), COMMANDS, ids=[" ".join(path) for path, _, _ in COMMANDS]
)
def test_the_summary_of_a_verb_is_the_first_line_of_its_help(path, shown, command):
    assert shown.help.splitlines()[0] == command.help.splitlines()[0]
    if not hasattr(command, "commands"):
        assert " ".join(path) in EXAMPLES


HELP = "from uncork.cli.app import app\ntry: app({}, standalone_mode=False)\nexcept SystemExit: pass"
LOADS = """
from uncork.cli.profile.hidden import hide_pandas; hide_pandas()  # as main() does
import uncork.cli.load.sql, uncork.cli.load.http, uncork.workbench.documents.loads
import uncork.report.write.html, uncork.analysis.load.figures, uncork.analysis.runs.figures
"""
IMPORTS = {
    "a watch of a server begins without the libraries of its report":
        ("import uncork.cli.profile.database", ("pyarrow", "numpy", "duckdb", "jinja2", "vl_convert")),
    "a load is run, stored and reported without libraries of other kinds":
        (LOADS, ("duckdb", "pydantic", "vl_convert", "pandas", "uncork.experiment.spec.schema",
                 "uncork.model.results.experiment", "uncork.model.results.log")),
    "the help of the program imports no verb":
        (HELP.format(["--help"]),
         ("uncork.workbench", "uncork.requests.sql", "uncork.cli.run", "pyarrow", "numpy")),
    "the help of a verb loads no library for terminals":
        (HELP.format(["load", "sql", "--help"]), ("rich", "markdown_it", "pygments", "pydantic")),
}  # fmt: skip


@pytest.mark.parametrize(("code", "slow"), IMPORTS.values(), ids=IMPORTS)
def test_what_is_not_needed_is_not_imported(code, slow):
    code = (
        f"import sys\n{code}\nprint([one for one in sys.modules if one.startswith({slow})], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_no_command_lets_arrow_load_pandas():
    code = (
        "import sys, uncork.cli.app as app\n"
        "from pyarrow import array\n"
        "app._run = lambda: print(array([1, None]).null_count, 'pandas' in sys.modules)\n"
        "app.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "1 False", done.stderr


def test_logs_are_read_without_numpy_which_can_still_be_imported(tmp_path):
    log = tmp_path / "server.log"
    log.write_text("2026-05-31 08:00:00.001 UTC [7] LOG:  duration: 1.5 ms  statement: SELECT 1\n")
    code = (
        "import sys, atexit, uncork.cli.app as app\n"
        "slow = ('numpy', 'pandas', 'duckdb', 'pyarrow.dataset')\n"
        "def show(): print([one for one in slow if one in sys.modules]); import numpy\n"
        "atexit.register(show); app.main()"
    )
    words = ["profile", "logs", str(log), "-q", "--json", "--runs", str(tmp_path / "runs")]
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert '"entries": 1' in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("words", "message"), [
    (["profile", "database", "--for", "5s"], 'no such command "database"; did you mean "db"?'),
    (["profile", "postgress"], 'no such command "postgress"; did you mean "db"?'),
    (["load", "db"], 'no such command "db"; did you mean "sql"?'),
])  # fmt: skip
def test_other_words_for_a_verb_get_a_hint(words, message):
    with pytest.raises(TyperException, match=re.escape(message)) as caught:
        app(words, standalone_mode=False)
    assert misuse_message(caught.value) == f"{message} Try `uncork {words[0]} --help`"
