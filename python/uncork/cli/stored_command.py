"""The command line that made a run, as stored with the run."""

from __future__ import annotations

from uncork.model.redaction import shell_command, variable_for, without_secrets


def redacted_command(words: list[str]) -> str:
    """Return the command that repeats a run, with environment variables in place of secrets."""
    from uncork.store.remote.mirrors import opened  # noqa: PLC0415 -- keeps `uncork --help` fast

    for mirror in opened():
        words = [_without_address(word, mirror.redacted(word)) for word in words]
    return shell_command(["uncork", *map(without_secrets, words)])


def _without_address(word: str, redacted: str) -> str:
    """Return a word with a variable in place of the address of a store, if that holds a password."""
    if redacted == word:
        return word
    option, equals, _ = word.partition("=")
    address = variable_for("UNCORK_RUNS")
    return f"{option}={address}" if equals and option.startswith("--") else address
