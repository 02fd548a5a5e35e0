"""Reports on finished runs: terminal, Markdown, HTML and JSON.

A subpackage for each kind of result turns it into a neutral `Document` (`blocks`), which the writers in
`write` render. This module imports nothing, because the writer of pages loads slowly, and the terminal does
not need it.
"""
