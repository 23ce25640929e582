"""`get_param`, `get_resource`, `get_attr`: values from elsewhere in the stack (spec/hot-language.md §5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.template.functions.registry import FunctionError, References, raw_function
from orchestrator.template.view import UNKNOWN, View

ALL = "*"


def walk(value: Any, path: Sequence[Any]) -> Any:
    """Return what `path` leads to inside `value`.

    Raises:
        LookupError, TypeError, ValueError: it leads nowhere.
    """
    for key in path:
        if not isinstance(value, (Mapping, Sequence)):
            raise TypeError("not a map or list")
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise TypeError("not a key")
        value = value[int(key)] if isinstance(value, Sequence) else value[key]
    return value


def _check_param(args: Any, found: References) -> None:
    if not args:
        raise ValueError('Function "get_param" must have arguments')
    if isinstance(args, str):
        found.parameters.add(args)
    elif isinstance(args, list):
        found.parameters.add(_literal(args[0], 'Parameter name in "get_param" must be string'))
    elif isinstance(args, dict):
        found.parameters.add(ALL)
    else:
        raise TypeError('Argument to "get_param" must be string or list')


@raw_function("get_param", check=_check_param)
def get_param(view: View, args: Any) -> Any:
    """``{get_param: [name, key, 0]}``: a value or a part of it; a path that leads nowhere gives ``""``."""
    if args.__class__ is not str:
        args = view.resolved(args)
        if args is UNKNOWN:
            return UNKNOWN
    if isinstance(args, str) and args:
        return view.parameter(args)
    if not args:
        raise FunctionError('Function "get_param" must have arguments')
    if not isinstance(args, list):
        raise FunctionError('Argument to "get_param" must be string or list')
    if UNKNOWN in args:
        return UNKNOWN
    if not isinstance(args[0], str):
        raise FunctionError('Parameter name in "get_param" must be string')
    value = view.parameter(args[0])
    if value is UNKNOWN:
        return value
    try:
        return walk(value, args[1:])
    except (LookupError, TypeError, ValueError):
        return ""


def _check_resource(args: Any, found: References) -> None:
    if not isinstance(args, str):
        raise TypeError('Argument to "get_resource" must be a string')
    found.requires.add(args)


@raw_function("get_resource", check=_check_resource)
def get_resource(view: View, args: Any) -> Any:
    """``{get_resource: name}``: its reference id, its name while it has none."""
    proxy = view.resource(args)
    return proxy.name if proxy.reference_id is None else proxy.reference_id


def _check_attr(args: Any, found: References) -> None:
    if not isinstance(args, list):
        raise TypeError('Argument to "get_attr" must be a list')
    if len(args) < 2:
        raise ValueError(
            'Arguments to "get_attr" must be of the form [resource_name, attribute, (path), ...]'
        )
    _note_attribute(args, found)


def _check_attr_or_all(args: Any, found: References) -> None:
    if not isinstance(args, list):
        raise TypeError('Argument to "get_attr" must be a list')
    if not args:
        raise ValueError(
            'Arguments to "get_attr" can be of the next forms: [resource_name] or '
            "[resource_name, attribute, (path), ...]"
        )
    _note_attribute(args, found)


def _note_attribute(args: list[Any], found: References) -> None:
    if not isinstance(args[0], str):
        raise TypeError('The resource name in "get_attr" must be a string')
    found.requires.add(args[0])
    attribute = (
        _literal(args[1], 'The attribute name in "get_attr" must be a string') if len(args) > 1 else ALL
    )
    found.attributes.setdefault(args[0], set()).add(attribute)


@raw_function("get_attr", check=_check_attr)
def get_attr(view: View, args: Any) -> Any:
    """``{get_attr: [name, attribute, key, 0]}``: null while it is not created or the path leads nowhere."""
    proxy = view.resource(args[0])
    if not proxy.created:
        return view.not_yet()
    path = args[1:] if all(part.__class__ is str for part in args) else view.resolved(args[1:])
    if UNKNOWN in path:
        return UNKNOWN
    try:
        return walk(proxy.attributes, path)
    except (LookupError, TypeError, ValueError):
        return None


@raw_function("get_attr", since="2014-10-16", check=_check_attr)
def get_attr_inside(view: View, args: Any) -> Any:
    """Return the same; a resource that answers paths itself has them among its attributes."""
    return get_attr(view, args)


@raw_function("get_attr", since="2015-10-15", check=_check_attr_or_all)
def get_attr_or_all(view: View, args: Any) -> Any:
    """``{get_attr: [name]}`` gives all attributes in a map, apart from ``show``."""
    if len(args) > 1:
        return get_attr(view, args)
    proxy = view.resource(args[0])
    if not proxy.created:
        return view.not_yet()
    return {name: value for name, value in proxy.attributes.items() if name != "show"}


def _literal(value: Any, otherwise: str) -> str:
    """Return a name that is written out, or "*" when a function computes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ALL
    raise TypeError(otherwise)
