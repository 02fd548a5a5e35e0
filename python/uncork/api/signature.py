"""Give a Python function the signature and documentation of a verb's options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from uncork.requests.option import options_of

Function = TypeVar("Function", bound=Callable[..., Any])


def documented(options: type, keywords: type) -> Callable[[Function], Function]:
    """Return a decorator that shows the keywords of a function in its signature and documentation.

    The function takes them as ``**options: Unpack[keywords]``; unknown ones raise TypeError. Types
    come from the TypedDict `keywords`, defaults and help from the dataclass `options`. The
    docstring's line ``options:`` is replaced by one line for each keyword.
    """
    declared = {option.field: option for option in options_of(options)}
    types: Mapping[str, Any] = keywords.__annotations__

    def decorate(function: Function) -> Function:
        found = inspect.signature(function)
        names = {*found.parameters, *types}
        own = [each for each in found.parameters.values() if each.kind is not each.VAR_KEYWORD]
        added, lines = [], []
        for name, hint in types.items():
            one = declared[name]
            annotation, default = getattr(hint, "__forward_arg__", hint), one.default
            if annotation == "Quantity":  # the default is in nanoseconds
                default = f"{default // 10**9}s"
            added.append(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
                )
            )
            lines.append(f"    {name}: {one.opt.python or one.opt.help}\n")

        @wraps(function)
        def checked(*values: Any, **given: Any) -> Any:
            for name in given.keys() - names:
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*values, **given)

        shown: Any = checked
        # The sort is stable: the options come before the function's own keywords.
        shown.__signature__ = found.replace(parameters=sorted((*added, *own), key=lambda each: each.kind))
        # Python 3.13 and later store docstrings without their common indentation.
        text = inspect.cleandoc(function.__doc__ or "")
        shown.__doc__ = text.replace("    options: see below.\n", "".join(lines))
        return cast("Function", checked)

    return decorate
