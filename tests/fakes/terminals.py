"""What is printed in a terminal of so many columns, as text."""

import io

from rich.console import Console


def shown(write, result, width=100, **options):
    """Return what `write` prints of a result; `options` are those of the terminal."""
    text = io.StringIO()
    write(result, Console(file=text, width=width, **options))
    return text.getvalue()
