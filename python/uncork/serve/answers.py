"""Responses other than template pages: reports with their script, files to download, and compression."""

from __future__ import annotations

import gzip
import hashlib
import re
from importlib.resources import files
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from uncork.report.write.html import policy_of, source
from uncork.serve import access

_SVG: Final = "image/svg+xml"
MEDIA: Final = MappingProxyType(
    {
        "svg": _SVG,
        "dark.svg": _SVG,
        "png": "image/png",
        "dark.png": "image/png",
        "csv": "text/csv; charset=utf-8",
    }
)
"""The media type of each export format."""
_EFFORT: Final = 5
"""Gzip level. It compresses a list of a hundred runs to a tenth in 0.2 ms; a higher level gains 2 %."""


def page_of(html: str) -> Response:
    """Return a report as a page. Only its own script may run, allowed by its hash."""
    return HTMLResponse(
        html, headers={"content-security-policy": f"{policy_of(html)}; frame-ancestors 'none'"}
    )


def file_of(data: bytes, name: str, media: str) -> Response:
    """Return a file to download."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    headers = {"content-disposition": f'attachment; filename="{quote(name)}"'}
    if media == _SVG:  # opened directly, it must not run scripts that it may contain
        headers["content-security-policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return Response(data, media_type=media, headers=headers)


def packed(request: Request, answer: Response) -> Response:
    """Compress a response if the browser accepts that and no other site sent the request.

    A site that can put its own text into a page could guess the rest of the page from its compressed size.
    """
    answer.headers.add_vary_header("accept-encoding")
    if "gzip" in request.headers.get("accept-encoding", "") and not access.is_cross_site(request.headers):
        answer.body = gzip.compress(bytes(answer.body), _EFFORT, mtime=0)
        answer.headers["content-encoding"] = "gzip"
        answer.headers["content-length"] = str(len(answer.body))
    return answer


# ---- style sheets and scripts, at addresses that change with their content ----


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
