"""Types and helpers that the functions share: places, progress, messages and repeatable calls."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Final

from uncork.errors import RunError, UsageError
from uncork.model.redaction import redact_word
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.requests.experiment_options import RunOptions
from uncork.requests.guard_options import GuardOptions
from uncork.requests.http_options import HttpOptions
from uncork.requests.option import options_of
from uncork.requests.profile_options import CpuOptions, DatabaseOptions, LogOptions
from uncork.requests.sql_options import SqlOptions

Place = str | os.PathLike[str]
"""A file or folder."""
Quantity = str | timedelta
"""A length of time: ``"30s"``, ``"5min"``, or a timedelta."""
Tell = Callable[[str], None]
Progress = bool | Tell | None
"""Where progress goes: a function that takes a line, or True for standard error; None: only in a terminal."""

_LONGEST: Final = 500


def runs_folder(runs: Place | None) -> Path:
    """Return the folder of runs: `runs`, or UNCORK_RUNS, or the default of the command line.

    For an address, such as s3://BUCKET/PREFIX, return the local folder that mirrors it.

    Raises:
        UsageError: if an address is invalid.
        SetupError: if the mirror folder cannot be created.
    """
    place = str(runs if runs is not None else os.environ.get("UNCORK_RUNS") or DEFAULT_RUNS)
    if "://" not in place:
        return Path(place)
    from uncork.workbench.publishing import open_runs  # noqa: PLC0415 -- few have an address

    return open_runs(place)


def teller(progress: Progress) -> Tell:
    """Return a function that takes progress lines."""
    if callable(progress):
        return progress
    shown = sys.stderr.isatty() if progress is None else progress
    return _say if shown else lambda _: None


def call_text(verb: str, words: Mapping[str, object], positional: Sequence[object] = ()) -> str:
    """Return the Python call that repeats a request, without secrets."""
    given = [_shown(value) for value in positional]
    given += [f"{name}={_shown(value)}" for name, value in words.items() if value not in (None, False, ())]
    return f"uncork.{verb}({', '.join(given)})"


@contextmanager
def calling() -> Iterator[None]:
    """Wrap a function: messages name keywords, and runs written for an address are uploaded at the end."""
    try:
        yield
    except UsageError as error:
        if type(error) is UsageError:
            error.args = (_in_python(str(error)),)
        raise
    finally:
        _send()


def _send() -> None:
    """Upload the runs written for an address; warn about runs that remain local, which are not lost."""
    from uncork.store.remote.mirrors import opened  # noqa: PLC0415 -- as above

    if not any(mirror.wrote for mirror in opened()):
        return
    from uncork.workbench.publishing import send_written  # noqa: PLC0415 -- as above

    for sent in send_written():
        for trouble in sent.troubles:
            warnings.warn(str(trouble), RuntimeWarning, stacklevel=4)
        if sent.left:
            later = f"uncork runs push --runs {sent.shown}"
            text = f"runs not stored at {sent.shown} yet: {sent.left}; kept in {sent.root}"
            warnings.warn(f"{text}; upload them with `{later}`", RuntimeWarning, stacklevel=4)


def _in_python(message: str) -> str:
    """Replace the options that a message names by their keywords."""
    keywords = _keywords()

    def word(found: re.Match[str]) -> str:
        return keywords.get(found["name"], found["name"].replace("-", "_"))

    return re.sub(r"(?<![\w-])(?:-\w/)?--(?P<name>[a-z][a-z0-9-]+)", word, message)


@cache
def _keywords() -> dict[str, str]:
    """Return the keyword of each long option of the verbs that are also functions."""
    verbs = (SqlOptions, HttpOptions, LogOptions, DatabaseOptions, CpuOptions, RunOptions, GuardOptions)
    return {
        flag.removeprefix("--"): option.field
        for options in verbs
        for option in options_of(options)
        for flag in option.flags
        if flag.startswith("--")
    }


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(redact_word(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_secret(str(key), each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return repr(str(value)) if isinstance(value, os.PathLike) else repr(value)


def _secret(name: str, value: object) -> str:
    """Show the value of a header or variable, unless it is secret."""
    line = f"{name}: {value}"
    return _shown(value) if redact_word(line) == line else "'...'"


def _say(line: str) -> None:
    sys.stderr.write(f"uncork: {line}\n")


def end_early(status: str, trouble: str, kept: str) -> None:
    """Raise an error if a run was interrupted, or broke off with `trouble`; `kept` says what is kept."""
    if status == "interrupted":
        error = KeyboardInterrupt()
        error.add_note(kept)
        raise error
    if trouble:
        raise RunError(f"{trouble}; {kept}")
