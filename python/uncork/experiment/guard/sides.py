"""Parse the two sides of a guard: what each one sets instead of the file's or the run's own values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from uncork.errors import UsageError

SIDE_FORMS: Final = {
    "variant": "variant=NAME",
    "commit": "commit=REV",
    "dsn": "dsn=CONNINFO",
    "setting": "setting=NAME:VALUE",
    "value": "value=NAME:VALUE",
    "env": "env=SERVICE.NAME:VALUE",
    "image": "image=REF",
    "url": "url=URL",
}
"""What a side may set, and the notation."""

_ONCE: Final = ("variant", "commit", "dsn", "image", "url")
_SETTING: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Side:
    """What one side sets; empty or None leaves the value of the file or the run.

    `environment` holds (service, variable, text). `dsn` may contain a password and is never shown unchanged.
    """

    role: Literal["baseline", "candidate"]
    variant: str | None = None
    commit: str | None = None
    dsn: str | None = field(default=None, repr=False)
    settings: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str, str], ...] = ()
    image: str | None = None
    url: str | None = None

    @property
    def says(self) -> tuple[str, ...]:
        """Return the kinds of values that the side sets, in the order of `SIDE_FORMS`."""
        plain = {name: getattr(self, name) for name in _ONCE}
        plain |= {"setting": self.settings, "value": self.values, "env": self.environment}
        return tuple(kind for kind in SIDE_FORMS if plain[kind])


def parse_side(role: Literal["baseline", "candidate"], texts: Sequence[str]) -> Side:
    """Parse the values of `--baseline` or `--candidate`, each a ``KIND=...``. Raises UsageError."""
    once: dict[str, str] = {}
    pairs: dict[str, dict[str, str]] = {"setting": {}, "value": {}}
    environment: dict[tuple[str, str], str] = {}
    for text in texts:
        kind, equals, rest = text.partition("=")
        # A connection string may contain a password, so show only its kind.
        secret = kind == "dsn" or "password" in text or "://" in kind
        option = f"--{role} {'dsn=…' if kind == 'dsn' else '…' if secret else text}"
        if kind not in SIDE_FORMS:
            near = difflib.get_close_matches(kind, SIDE_FORMS, n=1)
            suggestion = f'did you mean "{near[0]}"? ' if near else ""
            raise UsageError(f"{option}: {suggestion}write one of {', '.join(SIDE_FORMS.values())}")
        if not equals or not rest:
            raise UsageError(f"{option}: has no value; write {SIDE_FORMS[kind]}")
        if kind in _ONCE:
            if kind in once:
                raise UsageError(f"{option}: {kind} is given twice for the {role}; remove one")
            once[kind] = rest
            continue
        name, colon, value = rest.partition(":")
        if not colon or not name:
            raise UsageError(f"{option}: write {SIDE_FORMS[kind]}")
        if kind == "env":
            service, dot, variable = name.partition(".")
            if not dot or not service or not _VARIABLE.fullmatch(variable):
                raise UsageError(f"{option}: write {SIDE_FORMS[kind]}")
            kept = environment.setdefault((service, variable), value)
        else:
            if kind == "setting" and not _SETTING.fullmatch(name):
                raise UsageError(f'{option}: "{name}" is not a valid name of a setting')
            kept = pairs[kind].setdefault(name, value)
        if kept != value:
            raise UsageError(f"{option}: {name} is given twice for the {role}; remove one")
    return Side(
        role,
        settings=tuple(pairs["setting"].items()),
        values=tuple(pairs["value"].items()),
        environment=tuple((*key, value) for key, value in environment.items()),
        **once,
    )
