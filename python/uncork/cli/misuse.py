"""Describe an error in a command line in one line."""

from __future__ import annotations

import re
from typing import Any

from typer.exceptions import TyperException

from uncork.experiment.spec.problems import hint

_DURATION = ("-D", "-T", "--for", "--budget", "--duration", "--time")
"""Names of the option for how long a verb measures; the one that the verb has is suggested."""
_TIMES = ("TIME", "SECONDS")


def misuse_message(error: TyperException) -> str:
    """Return what is wrong, a suggestion, and the help command; empty if the help is shown anyway.

    The help is that of the verb, as far as the verb is known.
    """
    message = error.format_message().strip().rstrip(".").replace("'", '"')
    if not str(error) or not message:
        return ""
    near = getattr(error, "possibilities", None)
    if own := _own_name(error):
        message = f'{message.partition(" (")[0]}; did you mean "{own}"?'
    elif near:
        message = f"{message.partition(' (')[0]}{hint(getattr(error, 'option_name', ''), set(near))}"
    message = message.replace(". Did you mean", "; did you mean")
    message = re.sub(r"is not a valid (?:int range|integer|int)\b", "is not a whole number", message)
    remedy = " Try" if message.endswith("?") else "; try"
    return f"{message[0].lower()}{message[1:]}{remedy} `{_verb(error)} --help`"


def _own_name(error: TyperException) -> str:
    """Return the verb's own name of an unknown option that other verbs have; empty if there is none."""
    if getattr(error, "option_name", "") not in _DURATION:
        return ""
    context: Any = getattr(error, "ctx", None)
    options = context.command.params if context is not None else ()
    known = {name for option in options if option.metavar in _TIMES for name in option.opts}
    return next((name for name in _DURATION if name in known), "")


def _verb(error: TyperException) -> str:
    context: Any = getattr(error, "ctx", None)
    words: list[str] = []
    while context is not None and context.parent is not None:
        words.insert(0, context.info_name)
        context = context.parent
    return " ".join(["uncork", *words])
