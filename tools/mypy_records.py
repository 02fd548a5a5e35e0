"""Teach mypy to check `uncork.model.records.build_from`.

It checks each call like a call of the record's constructor, to which the source gives the fields that it has
too, if their types fit.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.nodes import ARG_NAMED, ARG_NAMED_OPT
from mypy.plugin import FunctionSigContext, Plugin
from mypy.subtypes import find_member, is_subtype
from mypy.types import CallableType, FunctionLike, Instance, get_proper_type


class RecordsPlugin(Plugin):
    """The plugin, as mypy loads it."""

    def get_function_signature_hook(
        self, fullname: str
    ) -> Callable[[FunctionSigContext], FunctionLike] | None:
        """Return what gives `build_from` the signature of a call."""
        return _signature if fullname == "uncork.model.records.build_from" else None


def _signature(context: FunctionSigContext) -> FunctionLike:
    default = context.default_signature
    given = [get_proper_type(context.api.get_expression_type(argument)) for (argument,) in context.args[:2]]
    kind, source = given
    if not isinstance(kind, CallableType) or not isinstance(source, Instance):
        return default
    modes = []
    for name, wanted, mode in zip(kind.arg_names, kind.arg_types, kind.arg_kinds, strict=True):
        found = find_member(name or "", source, source)
        optional = mode.is_optional() if found is None else is_subtype(found, wanted)
        modes.append(ARG_NAMED_OPT if optional else ARG_NAMED)
    return default.copy_modified(
        arg_kinds=[*default.arg_kinds[:2], *modes],
        arg_names=[*default.arg_names[:2], *kind.arg_names],
        arg_types=[kind, source, *kind.arg_types],
        ret_type=kind.ret_type,
        variables=[],
    )


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin."""
    return RecordsPlugin
