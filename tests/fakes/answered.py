"""Results of stored runs with their sentences, as reports show them."""

from uncork.analysis.load.result import load_result as bare_load
from uncork.analysis.load.sweep import sweep_result as bare_sweep
from uncork.analysis.log.comparison import compare_logs
from uncork.analysis.log.result import log_result as bare_log
from uncork.analysis.runs.comparison import compare_stored
from uncork.analysis.runs.history import stored_history
from uncork.analysis.stacks.result import stack_result as bare_stacks
from uncork.report.load.answer import answer_load
from uncork.report.load.sweep import answer_sweep
from uncork.report.log.answer import answer_log
from uncork.report.log.comparison import answer_log_comparison
from uncork.report.runs.comparison_answer import answer_runs
from uncork.report.runs.history import answer_history
from uncork.report.stacks.answer import answer_stacks


def _answered(answer, read):
    return lambda *args, **options: answer(read(*args, **options))


compare_runs = _answered(answer_runs, compare_stored)
compare_log_results = _answered(answer_log_comparison, compare_logs)
read_history = _answered(answer_history, stored_history)
load_result = _answered(answer_load, bare_load)
sweep_result = _answered(answer_sweep, bare_sweep)
log_result = _answered(answer_log, bare_log)
stack_result = _answered(answer_stacks, bare_stacks)
