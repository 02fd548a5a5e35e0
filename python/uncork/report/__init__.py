"""A finished run for people and programs: terminal, Markdown, HTML, JSON.

`document` turns a `RunResult` into a neutral `Document`, `load_document` does so with a `LoadResult`,
`log_document` with a `LogResult`; each writer renders that and knows nothing of the others. JSON alone holds
the result itself. Nothing is imported here: what draws charts takes long to load, and a terminal has none.
"""
