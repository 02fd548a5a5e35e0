"""The dashboard: runs, reports, cases and runs in progress as pages, for a browser and nothing else.

`guard` lets requests in or refuses them; `app` knows the addresses; `runs`, `series`, `pages` and `forms`
answer them; `cache` knows the stored runs, `drawing` draws their reports, `metrics` tells Prometheus. Nothing
is read from the network, and nothing is written but tags.
"""
