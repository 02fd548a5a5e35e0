"""The command line that made a run, as stored with the run."""

from __future__ import annotations

import shlex

from uncork.model.redaction import redact_word

__all__ = ["redacted_command"]


def redacted_command(words: list[str]) -> str:
    """Return the command that repeats a run, without passwords and the values of secret headers."""
    from uncork.store.remote.mirrors import opened  # noqa: PLC0415 -- keeps `uncork --help` fast

    for mirror in opened():
        words = [mirror.redacted(word) for word in words]
    return shlex.join(["uncork", *map(redact_word, words)])
