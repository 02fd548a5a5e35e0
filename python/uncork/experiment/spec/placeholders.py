"""Places of a generated experiment file that a person has to fill in."""

from __future__ import annotations

import re
from typing import Final

from uncork.experiment.spec.problems import Problem

_MARK: Final = "FILL IN: "
_PLACE: Final = re.compile(rf'{_MARK}([^"\n]+)')


def fill_in(what: str) -> str:
    """Return the mark of a place that a person has to fill in with `what`."""
    return _MARK + what.replace('"', "'").replace("\n", " ")


def places_to_fill(text: str) -> list[Problem]:
    """Return a problem for each place that is not filled in yet."""
    return [
        Problem((), f"fill in {found[1].strip()}", line=number)
        for number, line in enumerate(text.splitlines(), start=1)
        if (found := _PLACE.search(line))
    ]
