"""What callers write in Python, turned into what the workbench reads; and its messages, turned back."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from uncork.errors import UsageError
from uncork.model.redaction import redact_word
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.model.units import parse_duration

__all__ = [
    "Place",
    "Progress",
    "Quantity",
    "Tell",
    "call_text",
    "calling",
    "duration_text",
    "level_texts",
    "runs_folder",
    "seconds_text",
    "teller",
]

Place = str | os.PathLike[str]
"""A file or folder."""
Quantity = str | timedelta
"""A length of time: ``"30s"``, ``"5min"``, or a timedelta."""
Tell = Callable[[str], None]
Progress = bool | Tell | None
"""What hears how it goes: a function that takes a line, True for standard error; None: only in a terminal."""

_KEYWORDS: Final = {
    "client": "clients",
    "connect": "connect_each",
    "for": "lasting",
    "import": "imports",
    "max_concurrent_streams": "streams",
    "pid": "pids",
    "set": "sets",
    "warm_up_time": "warm_up",
}
"""Options whose keyword is another word than the option's own."""
_LONGEST: Final = 500


def runs_folder(runs: Place | None) -> Path:
    """Return where runs are stored: as given, else UNCORK_RUNS, else the folder of the command line.

    For an address, such as s3://BUCKET/PREFIX, it is the folder that mirrors it here.

    Raises:
        UsageError: if an address can be no store.
        SetupError: if the folder that mirrors it cannot be made.
    """
    place = str(runs if runs is not None else os.environ.get("UNCORK_RUNS") or DEFAULT_RUNS)
    if "://" not in place:
        return Path(place)
    from uncork.workbench.publishing import open_runs  # noqa: PLC0415 -- few have an address

    return open_runs(place)


def teller(progress: Progress) -> Tell:
    """Return what hears how it goes."""
    if progress is None:
        progress = sys.stderr.isatty()
    if callable(progress):
        return progress
    return _say if progress else _keep_quiet


def duration_text(quantity: Quantity | None, word: str) -> str | None:
    """Return a length of time as text with its unit; `word` is the keyword that gave it.

    Raises:
        UsageError: if it is a bare number.
    """
    if isinstance(quantity, timedelta):
        return f"{quantity.total_seconds():.9f}s"
    if quantity is None or isinstance(quantity, str):
        return quantity
    raise UsageError(f'{word}={quantity!r}: write a time with its unit, such as "10s"')


def seconds_text(quantity: Quantity | None, word: str, per_second: float = 1.0) -> str | None:
    """Return a length of time as a number of seconds, or with `per_second` 1000 of milliseconds.

    Raises:
        UsageError: if it cannot be understood.
    """
    text = duration_text(quantity, word)
    if text is None:
        return None
    try:
        return repr(parse_duration(text) / 1e9 * per_second)
    except ValueError as error:
        raise UsageError(f"{word}: {error}") from error


def level_texts(sets: Mapping[str, object] | None) -> dict[str, list[str]]:
    """Return the levels to keep of each factor, as an experiment file writes them.

    Raises:
        UsageError: if of a factor no level is named.
    """
    chosen: dict[str, list[str]] = {}
    for factor, levels in (sets or {}).items():
        many = [levels] if isinstance(levels, str) or not isinstance(levels, Iterable) else levels
        chosen[factor] = [str(level) for level in many]
        if not chosen[factor]:
            raise UsageError(f'sets: no level is left of "{factor}"; name one, or leave the factor out')
    return chosen


def call_text(verb: str, words: Mapping[str, object], positional: Sequence[object] = ()) -> str:
    """Return the call that repeats a request, without secrets."""
    given = [_shown(value) for value in positional]
    given += [f"{name}={_shown(value)}" for name, value in words.items() if value not in (None, False, ())]
    return f"uncork.{verb}({', '.join(given)})"


@contextmanager
def calling() -> Iterator[None]:
    """Surround a verb: its messages speak of keywords, and what it wrote for an address is sent there."""
    try:
        yield
    except UsageError as error:
        if type(error) is UsageError:
            error.args = (_in_python(str(error)),)
        raise
    finally:
        _send()


def _send() -> None:
    """Send what was written for an address; warn of what stays here, for nothing of it is lost."""
    from uncork.store.remote.mirrors import opened  # noqa: PLC0415 -- as above

    if not any(mirror.wrote for mirror in opened()):
        return
    from uncork.workbench.publishing import send_written  # noqa: PLC0415 -- as above

    for sent in send_written():
        for trouble in sent.troubles:
            warnings.warn(str(trouble), RuntimeWarning, stacklevel=4)
        if sent.left:
            later = f"uncork runs push --runs {sent.shown}"
            text = f"runs not stored at {sent.shown} yet: {sent.left}; kept in {sent.root}, sent by `{later}`"
            warnings.warn(text, RuntimeWarning, stacklevel=4)


def _in_python(message: str) -> str:
    def word(found: re.Match[str]) -> str:
        name = found["name"].replace("-", "_")
        return _KEYWORDS.get(name, name)

    return re.sub(r"(?<![\w-])(?:-\w/)?--(?P<name>[a-z][a-z0-9-]+)", word, message)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(redact_word(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_secret(str(key), each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return repr(str(value)) if isinstance(value, os.PathLike) else repr(value)


def _secret(name: str, value: object) -> str:
    """Show the value of a header or variable, unless it is one that must stay secret."""
    line = f"{name}: {value}"
    return _shown(value) if redact_word(line) == line else "'...'"


def _say(line: str) -> None:
    sys.stderr.write(f"uncork: {line}\n")


def _keep_quiet(_: str) -> None:
    pass
