"""uncork finds the bottleneck in a database-backed service, proves the fix, and keeps it fixed.

The verbs of the command line are functions here::

    import uncork

    found = uncork.run("experiment.toml", budget="5min")
    found["uuid"].faster, found.answer

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
- `uncork.api`         these functions, and pytest's fixture
- `uncork.cli`         the command line
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from uncork.api.experiments import doctor as doctor
    from uncork.api.experiments import guard as guard
    from uncork.api.experiments import plan as plan
    from uncork.api.experiments import run as run
    from uncork.api.experiments import run_case as run_case
    from uncork.api.loads import load_http as load_http
    from uncork.api.loads import load_sql as load_sql
    from uncork.api.loads import load_together as load_together
    from uncork.api.loads import merge as merge
    from uncork.api.loads import sweep_http as sweep_http
    from uncork.api.loads import sweep_sql as sweep_sql
    from uncork.api.profiles import advise as advise
    from uncork.api.profiles import cure as cure
    from uncork.api.profiles import profile_cpu as profile_cpu
    from uncork.api.profiles import profile_db as profile_db
    from uncork.api.profiles import profile_logs as profile_logs
    from uncork.api.profiles import profile_service as profile_service
    from uncork.api.stored import compare as compare
    from uncork.api.stored import history as history
    from uncork.api.stored import name as name
    from uncork.api.stored import open as open
    from uncork.api.stored import runs as runs
    from uncork.api.stored import sql as sql
    from uncork.errors import UncorkError as UncorkError

_HOMES = {
    "api.experiments": ("doctor", "guard", "plan", "run", "run_case"),
    "api.loads": ("load_http", "load_sql", "load_together", "merge", "sweep_http", "sweep_sql"),
    "api.profiles": ("advise", "cure", "profile_cpu", "profile_db", "profile_logs", "profile_service"),
    "api.stored": ("compare", "history", "name", "open", "runs", "sql"),
    "errors": ("UncorkError",),
}
"""Where each public name lives. It is loaded when it is first used: `import uncork` loads nothing."""

__all__ = [
    "UncorkError",
    "__version__",
    "advise",
    "compare",
    "cure",
    "doctor",
    "guard",
    "history",
    "load_http",
    "load_sql",
    "load_together",
    "merge",
    "name",
    "plan",
    "profile_cpu",
    "profile_db",
    "profile_logs",
    "profile_service",
    "run",
    "run_case",
    "runs",
    "sql",
    "sweep_http",
    "sweep_sql",
]
__version__ = "0.1.0"
"""Stands here too: to ask the installed package takes a sixth of the start. A test compares them."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        for home, names in _HOMES.items():
            if name in names:
                from importlib import import_module  # noqa: PLC0415 -- only when it is wanted

                found = getattr(import_module(f"uncork.{home}"), name)
                globals()[name] = found
                return found
        raise AttributeError(f"module 'uncork' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
