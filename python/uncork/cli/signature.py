"""Build a verb's command from its options dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from uncork.cli import places
from uncork.requests.option import Location, Option, from_words, options_of


def command_of(options: type[Any], run: str) -> Callable[..., Any]:
    """Return a function for Typer that reads `options` from the command line and passes them to `run`.

    `run` is a dotted module and a function, ``module:function``; it is imported when the verb runs.
    Values arrive as text, so that `requests` reads them and words the refusals.
    """

    def command(**words: Any) -> Any:
        read: object = from_words(options, words)
        module, _, function = run.partition(":")
        return getattr(import_module(module), function)(read)

    parameters = [_parameter(option) for option in options_of(options)]
    signature: Any = command
    signature.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = options.__doc__
    return command


def _parameter(option: Option) -> inspect.Parameter:
    opt = option.opt
    facts: dict[str, Any] = {"help": opt.help, "rich_help_panel": opt.panel, "show_default": opt.show_default}
    if opt.envvar == "UNCORK_RUNS":
        facts["parser"] = places.place_of_runs
    if option.type is Location:
        facts["click_type"] = click.Path(path_type=str)  # shells complete names of files
    kind: Any = option.type if option.type in (bool, Path) else str
    default = option.default if kind in (bool, Path) and not option.many else None
    kind = list[kind] if option.many else kind
    kind = kind if option.required or default is not None else kind | None
    declared = (
        typer.Option(*option.flags, metavar=option.metavar, envvar=opt.envvar, **facts)
        if option.flags
        else typer.Argument(metavar=option.metavar, **facts)
    )
    default = inspect.Parameter.empty if option.required else default
    return inspect.Parameter(
        option.field, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared]
    )
