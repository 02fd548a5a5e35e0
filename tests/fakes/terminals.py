"""What is printed in a terminal of so many columns, as text."""

import io

from rich.console import Console

from uncork.report.write.markdown import markdown_text


def shown(write, result, width=100, **options):
    """Return what `write` prints of a result; `options` are those of the terminal."""
    text = io.StringIO()
    write(result, Console(file=text, width=width, **options))
    return text.getvalue()


def markdown_of(build):
    """Return what writes a result as Markdown, by what builds its document."""
    return lambda result: markdown_text(build(result))
