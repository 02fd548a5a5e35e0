"""The JSON Schemas of all public results, generated from their dataclasses."""

from __future__ import annotations

from typing import Any, Final

from uncork.model.results.advice import ADVICE_VERSION, AdviceResult
from uncork.model.results.cure import CURE_VERSION, CureResult
from uncork.model.results.database import DATABASE_RESULT_VERSION, DatabaseResult
from uncork.model.results.experiment import RESULT_VERSION, RunResult
from uncork.model.results.figure import RunFigures
from uncork.model.results.guard import GUARD_VERSION, GuardResult
from uncork.model.results.history import HISTORY_VERSION, History
from uncork.model.results.load import LOAD_RESULT_VERSION, TOGETHER_VERSION, LoadResult, TogetherResult
from uncork.model.results.log import LOG_RESULT_VERSION, LogResult
from uncork.model.results.log_comparison import LOG_COMPARISON_VERSION, LogComparison
from uncork.model.results.run_comparison import RUN_COMPARISON_VERSION, RunComparison
from uncork.model.results.service import SERVICE_RESULT_VERSION, ServiceResult
from uncork.model.results.stacks import STACK_RESULT_VERSION, StackResult
from uncork.model.results.sweep import SWEEP_RESULT_VERSION, SweepResult
from uncork.report.write.json_document import schema_of

RESULTS: Final[dict[str, tuple[type, str]]] = {
    "report": (RunResult, f"uncork report, version {RESULT_VERSION}"),
    "load-result": (LoadResult, f"uncork load, version {LOAD_RESULT_VERSION}"),
    "together-result": (TogetherResult, f"uncork load together, version {TOGETHER_VERSION}"),
    "sweep-result": (SweepResult, f"uncork sweep, version {SWEEP_RESULT_VERSION}"),
    "log-result": (LogResult, f"uncork log, version {LOG_RESULT_VERSION}"),
    "database-result": (DatabaseResult, f"uncork database, version {DATABASE_RESULT_VERSION}"),
    "stack-result": (StackResult, f"uncork stacks, version {STACK_RESULT_VERSION}"),
    "service-result": (ServiceResult, f"uncork service, version {SERVICE_RESULT_VERSION}"),
    "guard": (GuardResult, f"uncork guard, version {GUARD_VERSION}"),
    "run-figures": (RunFigures, "uncork figures of a run"),
    "run-comparison": (RunComparison, f"uncork comparison of runs, version {RUN_COMPARISON_VERSION}"),
    "log-comparison": (LogComparison, f"uncork log comparison, version {LOG_COMPARISON_VERSION}"),
    "advice": (AdviceResult, f"uncork advice, version {ADVICE_VERSION}"),
    "cure-result": (CureResult, f"uncork cure, version {CURE_VERSION}"),
    "history": (History, f"uncork history, version {HISTORY_VERSION}"),
}
"""Each result and the title of its schema, by the name of its file in ``schemas/``."""


def result_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a result; raises KeyError if there is none of this name."""
    return schema_of(*RESULTS[name])
