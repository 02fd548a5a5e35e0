"""uncork finds the bottleneck in a database-backed service, proves the fix, and keeps it fixed.

The map, from the words on the inside to the hands on the outside:

- `uncork.errors`      every exception raised on purpose
- `uncork.model`       the words: units, cells, arms, trials, verdicts, results, tables
- `uncork.stats`       the judge: from trials to effects, intervals and verdicts; pure
- `uncork.experiment`  from a question in a file to trials: spec, plan, runner
- `uncork.load`        sends the work and times it (the Rust core)
- `uncork.engines`     the database servers under test
- `uncork.store`       runs on disk
- `uncork.report`      a result for people: terminal, Markdown, HTML, JSON
- `uncork.cases`       published investigations, as data
- `uncork.workbench`   joins the parts
- `uncork.cli`         the command line
"""

__all__ = ["__version__"]
__version__ = "0.1.0"
"""Stands here too: to ask the installed package takes a sixth of the start. A test compares them."""
