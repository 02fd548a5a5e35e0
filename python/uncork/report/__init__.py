"""Reports on finished runs: terminal, Markdown, HTML and JSON.

Each kind of result has a subpackage that turns it into a neutral `Document` (`blocks`): `experiment`, `load`,
`log`, `database`, `stacks`, `guard`, `runs`. The writers in `write` render documents and know nothing of each
other. Only the JSON report holds the result itself. This module imports nothing, because the writer of pages
loads slowly and the terminal does not need it.
"""
