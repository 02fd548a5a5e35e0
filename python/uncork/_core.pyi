"""The compiled core. Only `uncork._native` imports it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, final, type_check_only

__all__ = [
    "Grammar",
    "Lease",
    "LogFollower",
    "LogPortions",
    "LogProfile",
    "Sampler",
    "add_histograms",
    "begin_of_log",
    "begin_of_object",
    "build_info",
    "check_load",
    "cut_log",
    "draw_stacks",
    "gather_logs",
    "hdr_log",
    "install_postgres",
    "is_complete_portion",
    "merge_histograms",
    "planned_operations",
    "read_logs",
    "read_stacks",
    "run_block",
    "run_load",
    "start_sampler",
    "sum_stacks",
    "summarize",
    "write_stacks",
]

@type_check_only
class _ArrowTable(Protocol):
    """Any table that speaks the Arrow C stream interface: `pyarrow.table(it)` reads it."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Grammar:
    """PostgreSQL's grammar, by libpg_query."""

    def __new__(cls, path: str) -> Grammar:
        """Load libpg_query from a file, or by its name. Raises `OSError` if it cannot be loaded."""

    def identities(self, templates: Sequence[tuple[bytes, bytes]]) -> list[str | None]:
        """Return the identity of each template, for pairs of its text and one of its statements.

        All statements of a template share it: the fingerprint, which ignores literals and digits in table
        names, and then the names with digits. None if the grammar rejects the statement, or if it has more
        than 100 000 bytes. Many are parsed by all processors.
        """

@final
class Lease:
    """Lets a load continue whose plan requires a lease: it ends a term after the last renewal."""

    def __new__(cls) -> Lease: ...
    def renew(self) -> None:
        """Begin the term anew."""

def add_histograms(histograms: Sequence[bytes], quantiles: Sequence[float]) -> tuple[bytes, list[int]]:
    """Add up serialised histograms without loss; return the sum, and its values at some quantiles.

    Raises `DataError` as `merge_histograms`.
    """

def planned_operations(plan: bytes) -> int | None:
    """Return how many operations a load plan's part is to begin; None if the server decides.

    Raises `LoadError` if the plan is wrong.
    """

def build_info() -> bytes:
    """Say, as JSON, what was built: version, plan_version, profile, postgresql_version, target."""

def install_postgres(cache_dir: str) -> str:
    """Return the folder of the pinned PostgreSQL under a cache folder, fetched if necessary.

    Raises `SetupError` when it cannot be fetched or there is none for this platform.
    """

def check_load(plan: bytes, parameters: _ArrowTable) -> None:
    """Refuse a plan that is wrong, or whose scripts are; no server is asked.

    Raises `LoadError` as `run_load` would before it connects.
    """

def run_load(
    plan: bytes,
    parameters: _ArrowTable,
    progress: Callable[[bytes, _ArrowTable | None], object] | None = None,
    lease: Lease | None = None,
    messages: Callable[[list[str], int], object] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> tuple[bytes, _ArrowTable, _ArrowTable, _ArrowTable, tuple[bytes, dict[str, _ArrowTable]] | None]:
    """Carry out one trial; return totals as JSON, three tables, and what was sampled.

    The tables are of statements, of intervals, and of answers by status and interval. In come a plan as JSON
    and a table of nullable texts. `progress` is called, at most a few times a second and never by the threads
    that send, with JSON that says how the trial goes, and with a
    table of the intervals since the last call if the plan's part has reservations. A plan with a lease ends
    unless `lease` is renewed. `messages` is called, four times a second at most, with lines about single
    errors and statements as the plan's verbosity requires, and with the number of lines left out. `stopped`
    is called several times a second; once it returns true, the trial ends as by Ctrl-C.

    Raises `ConnectError` when the server cannot be reached or refuses us, and `LoadError` when the plan is
    wrong or a statement cannot be prepared. Errors of statements are results.
    """

def run_block(
    plan: bytes, parameters: Sequence[_ArrowTable]
) -> tuple[list[tuple[bytes, _ArrowTable]], _ArrowTable, tuple[bytes, dict[str, _ArrowTable]] | None]:
    """Carry out one block: slices of several arms in turn, over connections that stay open.

    In come a plan as JSON and, for each arm, a table of nullable texts. Return for each arm totals as JSON
    and a table of statements, as `run_load` does; a table of slices in the order of time; and what was
    sampled. An arm that is cut short has no further slices; a server that is gone ends the block.

    Raises `ConnectError` and `LoadError` as `run_load` does.
    """

def start_sampler(plan: bytes) -> Sampler:
    """Begin to sample machine and processes: a plan as JSON in.

    Raises `LoadError` when the plan is wrong and `SetupError` when the system gives no thread.
    """

def summarize(name: str, latencies_ns: bytes) -> _ArrowTable:
    """Count latencies measured elsewhere: nanoseconds as little-endian numbers of 64 bits.

    Returns a table of one row, as `run_load` gives it for a statement.
    """

def merge_histograms(histograms: Sequence[bytes]) -> _ArrowTable:
    """Add up HDR histograms and return the sum's quantiles: quantile, value_ns, cumulative_count.

    Raises `LoadError` for bytes that are no histogram.
    """

def hdr_log(start_unix_s: float, intervals: Sequence[tuple[str, float, float, bytes]]) -> bytes:
    """Write histograms as a log that HdrHistogram's tools read.

    Each interval is a tag, its start and length in seconds, and an HDR histogram (V2). Raises `LoadError` for
    bytes that are no histogram.
    """

@type_check_only
class EventFile(Protocol):
    """The file that the entries of one scanning thread go to. It is not used again after it raised."""

    def write(self, table: _ArrowTable, /) -> object:
        """Write a table."""

    def close(self) -> object:
        """Complete the file."""

@type_check_only
class _EventFiles(Protocol):
    """Begins a file for each part. `empty` has the columns of all its tables. Any thread may call it."""

    def create(self, part: int, empty: _ArrowTable, /) -> EventFile: ...

@type_check_only
class _Objects(Protocol):
    """Fetches the objects among the paths, one after the other."""

    def written_s(self, name: str, /) -> int | None: ...
    def read(self, name: str, most: int, /) -> Any: ...

def gather_logs(request: bytes, objects: _Objects | None = None) -> bytes:
    """Read logs as `read_logs` does, and return what was gathered as bytes, for `LogPortions`.

    Raises `SetupError` when a file cannot be opened, and `ValueError` when the prefix is none.
    """

def begin_of_log(path: str, prefix: str | None) -> int | None:
    """Return when the first entry of a log was logged, in microseconds since 1970 in UTC; None if unknown.

    Of an archive, the first log counts. Raises `OSError` when the log cannot be read, and `ValueError` when
    the prefix is none.
    """

def begin_of_object(beginning: bytes, written_s: int, prefix: str | None) -> int | None:
    """Return the same of a log that is no file, from its first bytes; it was last written at `written_s`.

    Raises `ValueError` when the prefix is none.
    """

def is_complete_portion(stored: bytes) -> bool:
    """Return whether the logs of what `gather_logs` has returned were read to their ends."""

def cut_log(path: str, prefix: str | None, size: int) -> tuple[list[int], str | None]:
    """Return where a log can be cut into parts of about `size` bytes, and the prefix of its lines.

    No place if the log must be read as a whole: it is small, compressed, wrapped, or a damaged CSV file.
    Raises `OSError` when it cannot be read, and `ValueError` when the prefix is none.
    """

def read_logs(
    request: bytes,
    progress: Callable[[int, int], object] | None = None,
    events: _EventFiles | None = None,
    objects: _Objects | None = None,
) -> LogProfile:
    """Read logs: a request as JSON in, what they show out. On a signal, what has been read until then.

    `progress` is called several times a second with bytes read and entries gathered. `events` receives all
    entries; what it raises passes unchanged. `objects` says when an object was written (None for a file),
    and returns its next bytes, at most `most`, as a buffer: an empty one at its end, None if they have not
    arrived. The message of what it raises becomes the trouble of the object.

    Raises `SetupError` when a file cannot be opened, and `ValueError` when the prefix is none.
    """

def read_stacks(data: bytes, format: str | None = None, times: bool = False) -> tuple[bytes, _ArrowTable]:
    """Read a profile; return what it is as JSON and its folded stacks.

    The JSON has format, measures (name, unit) and default, the place of the measure it puts first. The table
    has measure, pid, process, time_ns, stack and value; pid and time_ns may be null. `times` keeps samples
    of `perf script` apart. Raises `ValueError`, with line or byte, for bytes that are no profile.
    """

def sum_stacks(stacks: _ArrowTable) -> tuple[bytes, _ArrowTable, _ArrowTable]:
    """Add up frames of stacks: columns stack, value and, for a comparison, before.

    Returns JSON with total and kernel (what was spent with the kernel at the leaf), each now and before; a
    table of frames (name, kernel, own, total, own_before, total_before); and one of ways into the kernel
    (user, caller, kernel, value). Raises `LoadError` for a table without these columns.
    """

def draw_stacks(stacks: _ArrowTable, options: bytes) -> bytes:
    """Draw a flame graph as SVG: stacks as `sum_stacks` takes them, and options as JSON.

    Options are title, subtitle, unit, least (a share), difference, width (pixels or null) and alone (with its
    own script). Raises `ValueError` if there is nothing to draw.
    """

def write_stacks(stacks: _ArrowTable, format: str, name: str, measure: str, unit: str) -> bytes:
    """Write stacks as `folded`, `speedscope` or `pprof`. Raises `ValueError` for another format."""

@final
class LogFollower:
    """Logs that are followed.

    `events` receives all entries; what it raises passes unchanged.

    Raises `ValueError` when the prefix is none.
    """

    def __new__(cls, request: bytes, events: _EventFiles | None = None) -> LogFollower: ...
    def add(self, path: str, server: str) -> None:
        """Follow another path too, which a server writes; its name may be empty."""

    def poll(self) -> bool:
        """Read what has been written since, up to some amount. Return whether there may be more."""

    def progress(self) -> tuple[int, int]:
        """Return bytes read and entries gathered so far."""

    def profile(self) -> LogProfile:
        """Return what the logs have told so far."""

    def finish(self) -> LogProfile:
        """End: return what the logs have shown. Raises what `events` raised."""

@final
class Sampler:
    """A sampler at work. It ends when it is stopped or forgotten."""

    def rest(self, resting: bool) -> None:
        """Rest, or go on: the time of a rest is none to it. One that was stopped stays so."""

    def stop(self) -> tuple[bytes, dict[str, _ArrowTable]] | None:
        """End: return facts as JSON, and tables by name; None of one that was stopped before."""

@final
class LogPortions:
    """Portions of logs that are joined in their order."""

    def __new__(cls, request: bytes) -> LogPortions: ...
    def add(self, stored: bytes) -> None:
        """Add the portion that follows. Raises `ValueError`, and adds nothing, when it is none."""

    def servers(self) -> list[str]:
        """Return the names of the servers, by number."""

    def store(self) -> bytes:
        """Return all that was added as one portion, whose size does not grow with the logs."""

    def profile(self) -> LogProfile:
        """Return what the logs have shown, and begin with nothing again."""

@final
class LogProfile:
    """What logs tell."""

    def facts(self) -> bytes:
        """Return, as JSON, what was read: files, counts, the time spanned."""

    def statements(self) -> list[tuple[bytes, bytes]]:
        """Return for each template, by number, its text and that of one statement of it."""

    def statement_ids(self) -> list[int]:
        """Return for each template, by number, what stands for it in events."""

    def join(self, groups: Sequence[int]) -> None:
        """Put templates together: for each by number the number of the one that it becomes part of.

        Raises `ValueError` unless there is one for each.
        """

    def tables(self) -> dict[str, _ArrowTable]:
        """Return all tables by name: see `uncork.model.tables.register`."""
