"""Display of reports in notebooks: the HTML page in a frame, or Markdown where frames are not shown."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from uncork.report.blocks import Document

_LINK: Final = re.compile(r'(<a\b[^<>]*?\bhref=")#')


class Shown(ABC):
    """An object with a report. A notebook shows the page, a pull request the Markdown, a shell one line."""

    result: Any

    @property
    def answer(self) -> str:
        """The first sentence of the report."""
        answer: str = self.result.answer
        return answer

    def json(self) -> str:
        """Return the result as JSON, as the command line prints it with --json."""
        from uncork.report.write.json_document import json_text  # noqa: PLC0415 -- as below

        return json_text(self.result)

    @abstractmethod
    def _document(self) -> Document:
        """Return the report."""

    def html(self) -> str:
        """Return the report as a self-contained HTML page."""
        from uncork.report.write.html import html_page  # noqa: PLC0415 -- charts take long to load

        return html_page(self._document())

    def markdown(self) -> str:
        """Return the report as Markdown."""
        from uncork.report.write.markdown import markdown_text  # noqa: PLC0415 -- as above

        return markdown_text(self._document())

    def _repr_html_(self) -> str:
        return framed(self.html(), self.answer)

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        makers = {
            "text/plain": lambda: repr(self),
            "text/markdown": self._repr_markdown_,
            "text/html": self._repr_html_,
        }
        wanted = [kind for kind in makers if include is None or kind in include]
        return {kind: makers[kind]() for kind in wanted if kind not in (exclude or ())}


def framed(page: str, title: str) -> str:
    """Return a frame with the page: its styles stay inside, and its script cannot reach the notebook.

    Links within the page name the frame's document; a bare ``#part`` would lead to the notebook.
    """
    inside = _LINK.sub(r"\1about:srcdoc#", page)
    return (
        f'<iframe title="{escape(title)}" srcdoc="{escape(inside)}" sandbox="allow-scripts" loading="lazy" '
        'style="width:100%;height:42rem;resize:vertical;border:1px solid #8886;border-radius:6px"></iframe>'
    )
