"""The parts of JUnit XML, with everything that XML cannot represent replaced. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from xml.sax.saxutils import quoteattr

HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>'
_INVALID: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot represent, even escaped."""


def suite_xml(
    outer: Mapping[str, str],
    suite: Mapping[str, str],
    facts: Iterable[tuple[str, str]],
    cases: Iterable[str],
    output: str,
) -> str:
    """Return a suite with `facts` as its properties; `outer` are the attributes around all suites."""
    lines = [
        HEAD,
        f"<testsuites{attributes(outer)}>",
        f"<testsuite{attributes(suite)}>",
        "<properties>",
        *(f"<property{attributes({'name': name, 'value': value})}/>" for name, value in facts),
        "</properties>",
        *cases,
        element("system-out", output),
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def attributes(values: Mapping[str, str]) -> str:
    """Return attributes as they stand in a tag, each after a space."""
    return "".join(f" {name}={quoteattr(_clean(value))}" for name, value in values.items())


def element(tag: str, text: str, values: Mapping[str, str] | None = None) -> str:
    """Return an element that holds plain text."""
    opened = f"{tag}{attributes(values or {})}"
    if not text:
        return f"<{opened}/>"
    # CDATA keeps diffs readable in the file. It cannot contain its own end marker, so split the marker.
    whole = _clean(text).replace("]]>", "]]]]><![CDATA[>")
    return f"<{opened}><![CDATA[{whole}]]></{tag}>"


def _clean(text: str) -> str:
    return _INVALID.sub("\N{REPLACEMENT CHARACTER}", text)
