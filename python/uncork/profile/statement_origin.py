"""Find out from a statement's comment which route or action of an application sent it. Pure.

Two formats are common: sqlcommenter's (https://google.github.io/sqlcommenter/spec/), which Django,
SQLAlchemy, Rails and OpenTelemetry write, with URL-encoded values in quotes:
``route='%2Forders',db_driver='psycopg'``; and Marginalia's, the older format of Rails:
``controller:orders,action:index``.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

_QUOTED: Final = re.compile(r"([A-Za-z_][\w.%-]*)\s*=\s*'((?:[^'\\]|\\.)*)'")
_PLAIN: Final = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*):([^,]*)")
_ROUTES: Final = ("http.route", "route", "endpoint")
_PATHS: Final = ("path", "url")
_MOST: Final = 120


def origin(comment: str | None, *, paths: bool = True) -> str | None:
    """Return the route that a comment names, else its controller and action; None if it names neither.

    A route is returned as ``/orders/{id}``, a controller and action as ``orders#index``. With `paths`, the
    path of a request counts as its route; it can contain values.
    """
    if not comment:
        return None
    pairs = {unquote(key): unquote(value.replace("\\'", "'")) for key, value in _QUOTED.findall(comment)}
    if not pairs:
        pairs = {key: value.strip() for key, value in _PLAIN.findall(comment)}
    for name in (*_ROUTES, *_PATHS) if paths else _ROUTES:
        if pairs.get(name):
            return pairs[name][:_MOST]
    parts = [pairs[name] for name in ("controller", "action") if pairs.get(name)]
    return "#".join(parts)[:_MOST] or None
