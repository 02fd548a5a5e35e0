"""Advice from Python: what is wrong with a database, and which changes to try."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from uncork.api.display import Shown
from uncork.api.profiles import profile_db, profile_logs
from uncork.api.runs import Run
from uncork.api.signature import documented
from uncork.api.words import Place, Progress, Quantity, call_text, calling, runs_folder
from uncork.requests.option import from_values
from uncork.requests.profile_options import AdviseOptions

if TYPE_CHECKING:
    from uncork.model.database.finding import Finding
    from uncork.model.results.advice import AdviceResult
    from uncork.report.blocks import Document

__all__ = ["Advice", "AdviseKeywords", "advise"]


class AdviseKeywords(TypedDict, total=False):
    """Keywords of `advise`, declared in `AdviseOptions`."""

    lasting: Quantity
    rate: float


class Advice(Shown):
    """What is wrong with a database; `result` holds the findings, and how much evidence they rest on.

    `folder` is the folder of the first run that it rests on: the watch, if a server was watched.
    """

    def __init__(self, result: AdviceResult, folder: Path, database: str | None = None) -> None:
        self.result = result
        self.folder, self._database = folder, database

    @property
    def answer(self) -> str:
        """The first sentence of the report."""
        return self.result.answer

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, the costliest first: cause, cost, evidence, and the changes to try."""
        return self.result.findings

    def experiment(self, number: int, database: str | None = None) -> str:
        """Return the text of the experiment file that would prove the changes of finding `number`, from 1.

        `database` is the connection string of a database whose tables the experiment copies the
        definitions of. Default: the database that was watched, if this call watched one.

        Raises:
            UsageError: if there is no such finding, or its change is no SQL that a copy can try.
        """
        from uncork.workbench.advice.experiment import experiment_of  # noqa: PLC0415 -- only here

        with calling():
            return experiment_of(self.result, number, self.folder, database or self._database)

    def _document(self) -> Document:
        from uncork.report.advice.document import build_advice_document  # noqa: PLC0415 -- only here

        return build_advice_document(self.result)

    def json(self) -> str:
        """Return the advice as JSON."""
        from uncork.report.write.json_document import json_text  # noqa: PLC0415 -- only here

        return json_text(self.result)

    def __repr__(self) -> str:
        return f"<advice: {self.answer}>"


@documented(AdviseOptions, AdviseKeywords)
def advise(
    *sources: str | Place | Run,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[AdviseKeywords],
) -> Advice:
    """Name what is wrong with a database: each fault with its cost and the changes to try.

    It only reads. What it reads is stored as runs of `profile_db` and `profile_logs`.

    Args:
        sources: A connection string to watch, log files, and stored runs, in any combination.
            Default: watch the server of the PG* variables.
        options: see below.
        progress: Function that takes a line now and then, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, ConnectError: if an option is invalid, or the server cannot be reached or is too old.
        RunError: if the server goes away, or a log cannot be read to its end; what was recorded is kept.
        KeyboardInterrupt: on Ctrl-C; what was recorded is kept.
    """
    from uncork import __version__  # noqa: PLC0415 -- each function loads what it needs
    from uncork.analysis.advice.result import advice_of  # noqa: PLC0415
    from uncork.report.advice.document import answer_advice  # noqa: PLC0415
    from uncork.workbench.advice.sources import AdviceSources, tell_apart  # noqa: PLC0415

    with calling():
        from_values(AdviseOptions, options)  # refuses wrong values before anything is read
        opened = [source.folder for source in sources if isinstance(source, Run)]
        words = [str(source) for source in sources if not isinstance(source, Run)]
        named = tell_apart(runs_folder(runs), words) if words or not opened else AdviceSources((), (), None)
        folders = [*opened, *named.folders]
        if named.logs:
            folders.append(profile_logs(*named.logs, progress=progress, runs=runs).folder)
        if named.server is not None:
            watched = profile_db(named.server or None, progress=progress, runs=runs, **options)
            folders.insert(0, watched.folder)
        command = call_text(
            "advise", options, [source.id if isinstance(source, Run) else source for source in sources]
        )
        found = answer_advice(advice_of(folders, command, __version__))
    return Advice(found, folders[0], named.server or None)
