"""The verbs of the command line: one row each, and a group that imports a verb when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final

import typer
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

from uncork.cli.examples import examples_of
from uncork.cli.help.commands import HelpCommand, HelpGroup
from uncork.cli.signature import command_of


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: its line in the help of its group, and where its code is, as ``module:name``.

    `target` is a function, or a Typer with verbs of its own. With `options`, a dataclass of options, help and
    refusals need only that dataclass; `target` is imported when the verb runs, and called with the options.
    A verb with `verbs` is a group. `also` are other words by which people look for it: they get a hint.
    """

    summary: str
    target: str = ""
    options: str = ""
    verbs: Mapping[str, Verb] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()


_PROFILE: Final = {
    "service": Verb(
        "Find the bottleneck of a service: send requests, and watch service, database and machine at once.",
        "uncork.cli.profile.service:profile_service_command",
        "uncork.requests.service_options:ServiceOptions",
    ),
    "logs": Verb(
        "Report where the time went, from PostgreSQL's logs: templates, applications, errors, locks, files.",
        "uncork.cli.profile.logs:profile_logs",
        "uncork.requests.profile_options:LogOptions",
    ),
    "db": Verb(
        "Profile a running PostgreSQL server: CPU time, waits, blocking sessions and query templates.",
        "uncork.cli.profile.database:profile_db",
        "uncork.requests.profile_options:DatabaseOptions",
        also=("database", "postgres", "postgresql", "server"),
    ),
    "cpu": Verb(
        "Profile CPU time by stack: of processes, a server, a command, or another profiler's file.",
        "uncork.cli.profile.cpu:profile_cpu",
        "uncork.requests.profile_options:CpuOptions",
        settings={"allow_interspersed_args": False},  # words behind the command are its own
    ),
}
_LOAD: Final = {
    "sql": Verb(
        "Load-test a PostgreSQL server with pgbench's scripts or your own.",
        "uncork.cli.load.sql:load_sql",
        "uncork.requests.sql_options:SqlOptions",
        also=("database", "db", "pgbench", "postgres"),
    ),
    "http": Verb(
        "Load-test a service over HTTP/1.1, HTTP/2 or HTTP/3.",
        "uncork.cli.load.http:load_http",
        "uncork.requests.http_options:HttpOptions",
    ),
    "together": Verb(
        "Load-test a server and a service at once, in one run with one report and one clock.",
        "uncork.cli.load.together:load_together",
        "uncork.requests.together_options:TogetherOptions",
    ),
}
_CASE: Final = {
    "list": Verb(
        "List the cases with their questions.",
        "uncork.cli.run:list_cases",
        "uncork.requests.experiment_options:CaseListOptions",
    ),
    "run": Verb(
        "Run a case, and show its published figures beside the measured ones.",
        "uncork.cli.run:run_case",
        "uncork.requests.experiment_options:CaseOptions",
    ),
}
VERBS: Final[Mapping[str, Mapping[str, Verb]]] = {
    "Find the bottleneck": {
        "advise": Verb(
            "Name what is wrong with a database: each fault with its cost and the changes to try.",
            "uncork.cli.profile.advise:advise",
            "uncork.requests.profile_options:AdviseOptions",
        ),
        "profile": Verb("Find where a database spends its time.", verbs=_PROFILE),
        "load": Verb("Load-test a server or a service.", verbs=_LOAD),
        "capture": Verb(
            "Capture a database's workload as scripts: its statements with their rates and values.",
            "uncork.cli.profile.capture:capture",
            "uncork.requests.profile_options:CaptureOptions",
        ),
        "observe-cost": Verb(
            "Measure the overhead of each observer: off and on, side by side, under load and idle.",
            "uncork.cli.observe_cost:observe_cost",
            "uncork.requests.experiment_options:CostOptions",
        ),
    },
    "Prove the fix": {
        "cure": Verb(
            "Try the changes of a database's findings on a copy, and hand over what is proven to help.",
            "uncork.cli.profile.cure:cure_command",
            "uncork.requests.profile_options:CureOptions",
        ),
        "demo": Verb(
            "Watch a cure in two minutes: the missing indexes of a small shop, on a temporary server.",
            "uncork.cli.profile.cure:demo",
            "uncork.requests.profile_options:DemoOptions",
        ),
        "new": Verb(
            "Write a commented experiment file to start from, or one about a stored run.",
            "uncork.cli.new:new",
            "uncork.requests.experiment_options:NewOptions",
        ),
        "plan": Verb(
            "Check an experiment file; show its trials, duration and expected precision without running it.",
            "uncork.cli.run:plan",
            "uncork.requests.experiment_options:PlanOptions",
        ),
        "run": Verb(
            "Run an experiment and report which variant is better, by how much, and why.",
            "uncork.cli.run:run",
            "uncork.requests.experiment_options:RunOptions",
        ),
        "rerun": Verb(
            "Run a stored run's experiment again, as a new run with the same file, SQL, levels and seed.",
            "uncork.cli.run:rerun",
            "uncork.requests.experiment_options:RerunOptions",
        ),
        "doctor": Verb(
            "Measure in 20 s how small a difference this machine can resolve in 1, 5 and 30 minutes.",
            "uncork.cli.doctor:doctor",
            "uncork.requests.experiment_options:DoctorOptions",
        ),
        "case": Verb("Run published investigations from end to end.", verbs=_CASE),
    },
    "Keep it fixed": {
        "guard": Verb(
            "Check whether a candidate is worse than its baseline, measured side by side.",
            "uncork.cli.guard:guard",
            "uncork.requests.guard_options:GuardOptions",
        ),
        "acknowledge": Verb(
            "Acknowledge a change that broke a gate, with a reason: it no longer alarms.",
            "uncork.cli.acknowledge:acknowledge",
            "uncork.requests.stored_options:AcknowledgeOptions",
        ),
        "compare": Verb(
            "Compare stored runs: what differs, by how much, and how certain that is.",
            "uncork.cli.compare:compare",
            "uncork.requests.stored_options:CompareOptions",
        ),
        "history": Verb(
            "Show how a metric changed over comparable stored runs, and when.",
            "uncork.cli.runs.history:history",
            "uncork.requests.stored_options:HistoryOptions",
        ),
    },
    "Stored runs": {
        "runs": Verb("List the stored runs, oldest first.", "uncork.cli.runs.listing:app"),
        "report": Verb(
            "Show the report of a stored run, in the terminal and as a self-contained HTML page.",
            "uncork.cli.report:report",
            "uncork.requests.stored_options:ReportOptions",
        ),
        "merge": Verb(
            "Merge the parts of a load, or the runs of an experiment on several hosts, and show the report.",
            "uncork.cli.runs.merge:merge",
            "uncork.requests.stored_options:MergeOptions",
        ),
        "serve": Verb(
            "Serve the stored runs as web pages: list, reports, runs in progress, cases and /metrics.",
            "uncork.cli.serve:serve",
            "uncork.requests.stored_options:ServeOptions",
        ),
        "mcp": Verb(
            "Serve the stored runs to a language model's client, by the Model Context Protocol.",
            "uncork.cli.runs.mcp:mcp",
            "uncork.requests.stored_options:McpOptions",
        ),
        "sql": Verb(
            "Query a stored run, or all runs, in SQL; without a query, list the tables that have rows.",
            "uncork.cli.sql:sql",
            "uncork.requests.stored_options:QueryOptions",
        ),
        "import": Verb(
            "Store results of other tools as runs, to compare them and follow their history.",
            "uncork.cli.runs.imports:import_files",
            "uncork.requests.stored_options:ImportOptions",
        ),
        "export": Verb(
            "Export a stored run's time series to a file or an OpenTelemetry collector.",
            "uncork.cli.runs.export:export",
            "uncork.requests.stored_options:ExportOptions",
        ),
    },
}
"""The verbs in the order of the help, by panel. A test compares each summary with the verb's own help."""


class LazyGroup(HelpGroup):
    """A group that imports a verb when it is asked for; its own help needs only the summaries."""

    def __init__(
        self, *, panels: Mapping[str, Mapping[str, Verb]] = VERBS, path: tuple[str, ...] = (), **facts: Any
    ) -> None:
        super().__init__(**facts)
        self.path = path
        self.verbs = {name: verb for verbs in panels.values() for name, verb in verbs.items()}
        for panel, verbs in panels.items():
            for name, verb in verbs.items():
                self.commands[name] = HelpCommand(name, help=verb.summary, rich_help_panel=panel or None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the verb that the words name, and return it."""
        if args and args[0] in self.verbs:
            self.commands[args[0]] = self.load(args[0])
        elif near := self._named_otherwise(args[0] if args else ""):
            ctx.fail(f'no such command "{args[0]}"; did you mean "{near}"?')
        return super().resolve_command(ctx, args)

    def _named_otherwise(self, word: str) -> str:
        """Return the verb that another word means, as in `Verb.also`; empty if none does."""
        others = {other: name for name, verb in self.verbs.items() for other in verb.also}
        near = [] if get_close_matches(word, self.verbs) else get_close_matches(word, others, n=1)
        return others[near[0]] if near else ""

    def load(self, name: str) -> Any:
        """Return the command or group of a verb."""
        verb, path = self.verbs[name], (*self.path, name)
        if verb.verbs:
            return LazyGroup(
                panels={"": verb.verbs},
                path=path,
                name=name,
                help=verb.summary,
                no_args_is_help=True,
            )
        found = command_of(_imported(verb.options), verb.target) if verb.options else _imported(verb.target)
        if isinstance(found, typer.Typer):
            return get_group_from_info(
                TyperInfo(found, name=name),
                pretty_exceptions_short=True,
                suggest_commands=True,
                rich_markup_mode=None,
            )
        info = CommandInfo(
            name=name,
            cls=HelpCommand,
            callback=found,
            epilog=examples_of(" ".join(path)),
            context_settings=dict(verb.settings) or None,
        )
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
