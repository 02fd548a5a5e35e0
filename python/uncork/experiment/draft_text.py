"""Write comments and strings of a generated experiment file. Pure."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from typing import Final

_WIDTH: Final = 100


def comment(*sentences: str) -> str:
    """Return sentences as lines of a comment, each sentence on lines of its own."""
    return "".join(
        f"# {line}\n" for sentence in sentences for line in textwrap.wrap(" ".join(sentence.split()), _WIDTH)
    )


def toml(value: object) -> str:
    """Return a text, a number or a list as TOML: as JSON, with one more character escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def multiline(text: str) -> str:
    """Return TOML text over several lines; escapes only what must be escaped, so that it stays readable."""
    safe = text.replace("\\", "\\\\").replace('"""', '""\\"')
    safe = re.sub(
        r"[\x00-\x08\x0b-\x1f\x7f]", lambda sign: f"\\u{ord(sign[0]):04x}", safe.replace("\r\n", "\n")
    )
    return f'"""\n{safe}\n"""'


def settings_lines(settings: Mapping[str, str]) -> list[str]:
    """Return a line for each setting; the name of an extension's setting contains a dot."""
    return [
        f"settings.{toml(name) if '.' in name else name} = {toml(value)}" for name, value in settings.items()
    ]
