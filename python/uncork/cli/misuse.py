"""What is wrong with the words of a command line, in one line."""

from __future__ import annotations

import re
from typing import Any

from typer.exceptions import TyperException

from uncork.experiment.spec.problems import hint

__all__ = ["misuse_words"]


def misuse_words(error: TyperException) -> str:
    """Say what is wrong, what was perhaps meant, and which help tells more; empty if the help is shown.

    The help is that of the verb whose words they are, as far as the verb is known.
    """
    told = error.format_message().strip().rstrip(".").replace("'", '"')
    if not str(error) or not told:
        return ""
    near = getattr(error, "possibilities", None)
    if near:
        told = f"{told.partition(' (')[0]}{hint(getattr(error, 'option_name', ''), set(near))}"
    told = told.replace(". Did you mean", "; did you mean")
    told = re.sub(r"is not a valid (?:int range|integer|int)\b", "is no whole number", told)
    end = " " if told.endswith("?") else "; "
    return f"{told[0].lower()}{told[1:]}{end}`{_verb(error)} --help` says what there is"


def _verb(error: TyperException) -> str:
    context: Any = getattr(error, "ctx", None)
    words: list[str] = []
    while context is not None and context.parent is not None:
        words.insert(0, context.info_name)
        context = context.parent
    return " ".join(["uncork", *words])
