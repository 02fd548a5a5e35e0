"""Results of stored runs with their sentences, as reports show them."""

from uncork.analysis.load.result import load_result as bare_load
from uncork.analysis.load.sweep import sweep_result as bare_sweep
from uncork.analysis.log.comparison import compare_logs
from uncork.analysis.log.result import log_result as bare_log
from uncork.analysis.runs.comparison import compare_stored
from uncork.analysis.runs.history import stored_history
from uncork.analysis.stacks.result import stack_result as bare_stacks
from uncork.report.load.answer import answer_load
from uncork.report.load.sweep_answer import answer_sweep
from uncork.report.log.answer import answer_log
from uncork.report.log.comparison import answer_log_comparison
from uncork.report.runs.comparison_answer import answer_runs
from uncork.report.runs.history_answer import answer_history
from uncork.report.stacks.answer import answer_stacks


def compare_runs(*args, **options):
    return answer_runs(compare_stored(*args, **options))


def compare_log_results(before, after):
    return answer_log_comparison(compare_logs(before, after))


def read_history(*args, **options):
    return answer_history(stored_history(*args, **options))


def load_result(*args, **options):
    return answer_load(bare_load(*args, **options))


def sweep_result(*args, **options):
    return answer_sweep(bare_sweep(*args, **options))


def log_result(*args, **options):
    return answer_log(bare_log(*args, **options))


def stack_result(*args, **options):
    return answer_stacks(bare_stacks(*args, **options))
