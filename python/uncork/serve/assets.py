"""Style sheets and scripts, at addresses that change with their content, so that browsers may cache them."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from uncork.report.write.html import source
from uncork.serve.answers import packed

VENDORED: Final = ("htmx.min.js", "idiomorph-ext.min.js", "sse.min.js")
"""Third-party files, unchanged. `vendor/README.md` lists their origin."""


def _own(*path: str) -> bytes:
    return files("uncork.serve").joinpath("static", *path).read_bytes()


_FILES: Final = MappingProxyType(
    {
        "page.css": (source("page.css").encode(), "text/css"),
        "dashboard.css": (_own("dashboard.css"), "text/css"),
        "theme.js": (source("theme.js").encode(), "text/javascript"),
        "dashboard.js": (_own("dashboard.js"), "text/javascript"),
        **{name: (_own("vendor", name), "text/javascript") for name in VENDORED},
    }
)
ADDRESSES: Final = MappingProxyType(
    {name: f"/static/{name}?{hashlib.sha256(data).hexdigest()[:12]}" for name, (data, _) in _FILES.items()}
)
"""The address of each file, by its name."""


async def static(request: Request) -> Response:
    """Return a style sheet or script. Only the few files in memory can be requested."""
    found = _FILES.get(request.path_params["name"])
    if found is None:
        return PlainTextResponse("There is no such file.\n", 404)
    data, kind = found
    keep = "public, max-age=31536000, immutable"
    answer = Response(data, media_type=f"{kind}; charset=utf-8", headers={"cache-control": keep})
    return packed(request, answer)
