"""The layout of help: it fits the terminal, and colours add nothing that is needed."""

import re
from pathlib import Path

import pytest
import typer

from fakes.goldens import compare
from uncork.cli.app import app
from uncork.cli.help.commands import HelpCommand, HelpGroup, _coloured
from uncork.cli.help.page import Panel, Row, Style, page_text
from uncork.cli.verbs import LazyGroup

OPTIONS = Panel(
    "Output",
    (
        Row("--json", "", "", "Print JSON."),
        Row("--protocol", "-M", "simple|extended|prepared", "Protocol for statements; `uncork sql` asks."),
        Row("--runs", "", "DIR", "Where runs are stored.", ("[default: .uncork/runs]",)),
    ),
)
END = (
    "Examples:\n\n- `uncork run question.toml`\n- `uncork run question.toml --set rows=10000 --budget 10min`"
)


def page(width, *, coloured=False, ascii=False):
    style = Style(width, coloured, ascii)
    return page_text("uncork run [OPTIONS]", "Run it.\n\nAnd more\nof it.", [OPTIONS], END, style)


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_the_layout_of_help_word_for_word():
    """UNCORK_BLESS=1 rewrites it; read the difference first. A wide terminal does not make long lines."""
    pages = [f"in {width} columns:\n{page(width)}" for width in (40, 50, 80, 300)]
    compare(Path(__file__).parents[2] / "golden" / "cli" / "help.txt", "\n".join(pages))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100])
def test_no_line_is_wider_than_the_terminal_and_frames_are_straight(width):
    for line in page(width).splitlines():
        assert len(line) <= width
        if line.startswith(("│", "╭", "╰")):
            assert len(line) == width and line.endswith(("│", "╮", "╯"))


def test_colours_only_add_to_the_same_words():
    assert "\x1b" not in page(60)
    assert "\x1b[1;36m--json\x1b[0m" in page(60, coloured=True)
    assert plain(page(60, coloured=True)) == page(60)


def test_a_stream_without_line_drawing_gets_ascii():
    page(60, ascii=True).encode("ascii")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
     ({"FORCE_COLOR": "1", "TERM": "dumb"}, False)],
)  # fmt: skip
def test_colours_are_for_terminals_and_those_who_ask(environment, expected):
    assert _coloured(environment) is expected


def commands(group, context):
    for name in group.commands:
        command = group.load(name) if isinstance(group, LazyGroup) else group.commands[name]
        inner = command.context_class(command, info_name=name, parent=context)
        yield command, inner
        if hasattr(command, "commands"):
            yield from commands(command, inner)


@pytest.mark.parametrize("width", [60, 80])
def test_the_help_of_every_verb_names_every_option_and_fits(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    root = typer.main.get_command(app)
    for command, context in commands(root, root.context_class(root, info_name="uncork")):
        assert isinstance(command, HelpCommand | HelpGroup), context.command_path
        command.format_help(context, None)
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= width
        assert f"Usage: {context.command_path}" in " ".join(shown.split())
        names = {name for one in command.params for name in one.opts if name.startswith("-")}
        assert all(re.search(rf"{name}(?![\w-])", shown) for name in names), context.command_path
