"""The dashboard: web pages of runs, reports, cases and runs in progress.

`middleware` accepts or refuses requests, and `server` routes them to `runs` and `pages`.
`report_cache` lists the stored runs and draws their reports, and `metrics` serves Prometheus. The
dashboard reads nothing from other hosts, and writes nothing but tags.
"""
