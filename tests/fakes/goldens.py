"""Texts that are kept beside their tests, word for word."""

import os
from functools import partial

from fakes.terminals import shown


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
