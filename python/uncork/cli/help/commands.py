"""Commands and groups whose help is laid out by `help.page`."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from uncork.cli.help.page import Panel, Row, Style, page_text

_FORCED: Final = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")
"""Environment variables that ask for colours where the output is not a terminal."""


class HelpCommand(TyperCommand):
    """A command that shows its help as a page."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        _show(self, ctx)


class HelpGroup(TyperGroup):
    """A group that shows its help as a page."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        _show(self, ctx)


def _show(command: HelpCommand | HelpGroup, ctx: Any) -> None:
    style = _style()
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    panels = [*_parameter_panels(command, ctx)]
    if isinstance(command, HelpGroup):
        panels += _verb_panels(command, ctx)
    text, end = (inspect.cleandoc(text or "") for text in (command.help, command.epilog))
    typer.echo(page_text(usage, text, panels, end, style), nl=False, color=style.coloured)


def _style() -> Style:
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return Style(
        shutil.get_terminal_size().columns, _coloured(os.environ), ascii=not encoding.startswith("utf")
    )


def _coloured(environment: Mapping[str, str]) -> bool:
    if environment.get("NO_COLOR") or environment.get("TERM") in ("dumb", "unknown"):
        return False
    return sys.stdout.isatty() or any(environment.get(name) for name in _FORCED)


def _parameter_panels(command: HelpCommand | HelpGroup, ctx: Any) -> Iterator[Panel]:
    """Yield the arguments, the options that belong to no panel, and the other panels, in this order."""
    panels: dict[str, list[Row]] = {"Arguments": [], "Options": []}
    for param in command.get_params(ctx):
        if isinstance(param, TyperArgument) and not param.hidden:
            panels.setdefault(param.rich_help_panel or "Arguments", []).append(_argument(param, ctx))
        elif isinstance(param, TyperOption) and not param.hidden:
            panels.setdefault(param.rich_help_panel or "Options", []).append(_option(param, ctx))
    return (Panel(title, rows) for title, rows in panels.items() if rows)


def _argument(argument: TyperArgument, ctx: Any) -> Row:
    return Row(argument.make_metavar(ctx), text=argument.help or "", notes=_notes(argument, ctx))


def _option(option: TyperOption, ctx: Any) -> Row:
    names = [*option.opts, *option.secondary_opts]
    return Row(
        "/".join(name for name in names if name.startswith("--")),
        "/".join(name for name in names if not name.startswith("--")),
        "" if option.is_flag else option.make_metavar(ctx),
        option.help or "",
        _notes(option, ctx),
    )


def _notes(one: TyperArgument | TyperOption, ctx: Any) -> tuple[str, ...]:
    found = [f"[env var: {one.envvar}]"] if one.envvar and one.show_envvar else []
    default = one._extract_default_help_str(ctx=ctx)
    if default is not None and one.show_default:
        words = one._get_default_string(ctx=ctx, show_default_is_str=False, default_value=default)
        found += [f"[default: {words}]"] if words else []
    return (*found, *(["[required]"] if one.required else []))


def _verb_panels(group: HelpGroup, ctx: Any) -> Iterator[Panel]:
    panels: dict[str, list[Row]] = {}
    for name in group.list_commands(ctx):
        verb = group.get_command(ctx, name)
        if verb is not None and not verb.hidden:
            title = getattr(verb, "rich_help_panel", None) or "Commands"
            text = inspect.cleandoc(verb.short_help or verb.help or "").split("\n\n")[0]
            panels.setdefault(title, []).append(Row(name, text=text))
    widest = max((len(row.name) for rows in panels.values() for row in rows), default=0)
    return (Panel(title, rows, name_width=widest) for title, rows in panels.items())
