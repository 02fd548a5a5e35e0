"""Answers that are no page of the dashboard's own: reports with their script, and files."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response

from uncork.report.html import policy_of

__all__ = ["MEDIA", "file_of", "page_of"]

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
"""What each form of an export is."""


def page_of(html: str) -> Response:
    """Answer with a page of the report's: its own script runs, by its hash, and no other."""
    return HTMLResponse(
        html, headers={"content-security-policy": f"{policy_of(html)}; frame-ancestors 'none'"}
    )


def file_of(data: bytes, name: str, media: str) -> Response:
    """Answer with a file to be saved."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    headers = {"content-disposition": f'attachment; filename="{quote(name)}"'}
    if media == _SVG:  # opened by itself it must not run what it may hold
        headers["content-security-policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return Response(data, media_type=media, headers=headers)
