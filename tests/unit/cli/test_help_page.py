"""The layout of help: it fits the terminal, and colours add nothing that is needed."""

import re

import pytest
import typer

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


def test_names_values_and_texts_are_columns():
    lines = page(80).splitlines()
    assert lines[1] == " Usage: uncork run [OPTIONS]"
    assert lines[5] == " And more of it."
    places = [lines[n].index(word) for n, word in ((8, "Print"), (9, "Protocol"), (11, "Where"))]
    assert len(set(places)) == 1
    assert lines[9].split()[1:4] == ["--protocol", "-M", "simple|extended"]
    assert lines[10].split()[1] == "|prepared"
    assert "[default: .uncork/runs]" in lines[12]


def test_in_a_narrow_terminal_texts_are_below_their_names_and_nothing_is_cut():
    lines = page(50).splitlines()
    assert f"│ {'--protocol -M simple|extended|prepared':46} │" in lines
    assert any(line.startswith("│     Protocol for statements; uncork sql asks.") for line in lines)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100])
def test_no_line_is_wider_than_the_terminal_and_frames_are_straight(width):
    for line in page(width).splitlines():
        assert len(line) <= width
        if line.startswith(("│", "╭", "╰")):
            assert len(line) == width and line.endswith(("│", "╮", "╯"))


def test_a_wide_terminal_does_not_make_long_lines():
    assert max(map(len, page(300).splitlines())) == 100


def test_examples_are_a_list_whose_lines_hang():
    lines = page(40).splitlines()
    assert lines[-3:] == [
        "  • uncork run question.toml",
        "  • uncork run question.toml --set",
        "    rows=10000 --budget 10min",
    ]


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
