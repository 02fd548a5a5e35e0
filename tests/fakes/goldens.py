"""Texts that are kept beside their tests, word for word."""

import os
from functools import partial
from pathlib import Path

import pytest

from fakes.terminals import shown
from uncork.errors import UncorkError

_GOLDENS = Path(__file__).parents[1] / "golden"


def terminal(write, width, **options):
    """Return what renders a result as `write` prints it, with these options, in so many columns."""
    write = partial(write, **options)

    def render(result):
        text = shown(write, result, width, force_terminal=False, color_system=None)
        return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"

    return render


def compare(golden, found):
    """Assert that a text is what it was; with UNCORK_BLESS=1 keep it instead."""
    if os.environ.get("UNCORK_BLESS"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8"), f"{golden.name} changed; UNCORK_BLESS=1 rewrites it"


def compare_cases(name, cases):
    """Compare the texts of each case with ``golden/<name>.txt``: a case is its name, and its texts."""
    found = [
        f"==== {case}\n" + "----\n".join(f"{text.rstrip()}\n" for text in texts) for case, *texts in cases
    ]
    compare(_GOLDENS / f"{name}.txt", "".join(found))


def spoken(document):
    """Return the reasons of a document, and its steps with their commands, a line each."""
    steps = [step.text + (f"\n  {step.command}" if step.command else "") for step in document.steps]
    return "\n".join(document.reasons), "\n".join(steps)


def compare_answers(name, answer):
    """Compare the answers to the texts of ``golden/<name>.txt`` with those beside them.

    A text follows "==== " and may have several lines; its answer follows "----".
    """
    path = _GOLDENS / f"{name}.txt"
    blocks = path.read_text(encoding="utf-8").removeprefix("==== ").split("\n==== ")
    asked = [block.split("\n----\n")[0] for block in blocks]
    found = "\n".join(f"==== {text}\n----\n{answer(text)}" for text in asked)
    compare(path, found.rstrip("\n") + "\n")


def compare_mistakes(name, text, read, count=-1):
    """Compare what is said of a text with one change with ``golden/<name>.txt``.

    A change is what the text has, and after "=> " what stands there instead; `read` refuses the result.
    """

    def answer(change):
        before, _, after = change.partition("\n=> ")
        assert before in text
        with pytest.raises(UncorkError) as refused:
            read(text.replace(before, after, count))
        return str(refused.value)

    compare_answers(name, answer)
