"""Values from the rest of the stack: `get_param`, `get_resource`, `get_attr`, `get_file`, `resource_facade`
(docs/internals/hot-language.md §5.1) and their CloudFormation equivalents (§15).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.template import member_attributes
from orchestrator.template.function_view import FACADE, UNKNOWN, View
from orchestrator.template.functions.registry import ALL, FunctionError, References, raw_function
from orchestrator.template.member_attributes import attribute_at

# Parts of the parent resource that a nested template may request, by their HOT and CloudFormation names.
FACADES: Final = tuple(FACADE)
CFN_FACADES: Final[Mapping[str, str]] = {
    "Metadata": "metadata",
    "DeletionPolicy": "deletion_policy",
    "UpdatePolicy": "update_policy",
}


def walk(value: object, path: Sequence[object]) -> Any:
    """Return the value at `path` inside `value`.

    Raises:
        LookupError, TypeError, ValueError: the path does not exist.
    """
    for key in path:
        if not isinstance(value, (Mapping, Sequence)):
            raise TypeError("not a map or list")
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise TypeError("not a key")
        value = value[int(key)] if isinstance(value, Sequence) else value[key]
    return value


def _check_param(args: object, references: References) -> None:
    if not args:
        raise ValueError('Function "get_param" must have arguments')
    if isinstance(args, str):
        references.parameters.add(args)
    elif isinstance(args, list):
        references.parameters.add(_literal(args[0], 'Parameter name in "get_param" must be string'))
    elif isinstance(args, dict):
        references.parameters.add(ALL)
    else:
        raise TypeError('Argument to "get_param" must be string or list')


@raw_function("get_param", check=_check_param)
def get_param(view: View, args: object) -> Any:
    """``{get_param: [name, key, 0]}``: a value or a part of it; a path that does not exist gives ``""``."""
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


def _check_resource(args: object, references: References) -> None:
    if not isinstance(args, str):
        raise TypeError('Argument to "get_resource" must be a string')
    references.requires.add(args)


@raw_function("get_resource", check=_check_resource)
def get_resource(view: View, args: Any) -> Any:
    """``{get_resource: name}``: its reference id, or its name while it has no reference id."""
    proxy = view.resource(args)
    return view.taken(proxy, proxy.name if proxy.reference_id is None else proxy.reference_id)


def _check_attr(args: object, references: References) -> None:
    if not isinstance(args, list):
        raise TypeError('Argument to "get_attr" must be a list')
    if len(args) < 2:
        raise ValueError(
            'Arguments to "get_attr" must be of the form [resource_name, attribute, (path), ...]'
        )
    _note_attribute(args, references)


def _check_attr_or_all(args: object, references: References) -> None:
    if not isinstance(args, list):
        raise TypeError('Argument to "get_attr" must be a list')
    if not args:
        raise ValueError(
            'Arguments to "get_attr" can be of the next forms: [resource_name] or '
            "[resource_name, attribute, (path), ...]"
        )
    _note_attribute(args, references)


def _note_attribute(args: list[object], references: References) -> None:
    if not isinstance(args[0], str):
        raise TypeError('The resource name in "get_attr" must be a string')
    references.requires.add(args[0])
    attribute = (
        _literal(args[1], 'The attribute name in "get_attr" must be a string') if len(args) > 1 else ALL
    )
    references.attributes.setdefault(args[0], set()).add(attribute)


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
        return view.taken(proxy, attribute_at(proxy.attributes, path))
    except (LookupError, TypeError, ValueError):
        return None


@raw_function("get_attr", since="2014-10-16", check=_check_attr)
def get_attr_inside(view: View, args: object) -> Any:
    """Return the same; a resource that answers paths itself has them among its attributes."""
    return get_attr(view, args)


@raw_function("get_attr", since="2015-10-15", check=_check_attr_or_all)
def get_attr_or_all(view: View, args: Any) -> Any:
    """``{get_attr: [name]}`` gives all attributes in a map, except ``show``."""
    if len(args) > 1:
        return get_attr(view, args)
    proxy = view.resource(args[0])
    if not proxy.created:
        return view.not_yet()
    attributes = {
        name: member_attributes.unmarked(value) for name, value in proxy.attributes.items() if name != "show"
    }
    return view.taken(proxy, attributes)


def _literal(value: object, otherwise: str) -> str:
    """Return a name that is written out, or "*" when a function computes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ALL
    raise TypeError(otherwise)


def _check_file(args: object, references: References) -> None:
    if not isinstance(args, str | dict):
        raise TypeError('Argument to "get_file" must be a string')
    references.files.add(args if isinstance(args, str) else ALL)


@raw_function("get_file", check=_check_file)
def get_file(view: View, args: object) -> Any:
    """``{get_file: name}``: the text sent along under that name."""
    name = args if args.__class__ is str else view.resolved(args)
    if name is UNKNOWN:
        return UNKNOWN
    if not isinstance(name, str):
        raise FunctionError('Argument to "get_file" must be a string')
    text = view.file(name)
    if text is None:
        raise FunctionError(f'No content found in the "files" section for get_file path: {name}')
    return text


def _check_facade(args: object, references: References) -> None:
    if not isinstance(args, str) or args not in FACADES:
        raise ValueError(f'Incorrect arguments to "resource_facade" should be one of: {", ".join(FACADES)}')
    references.facades.add(FACADE[args])


@raw_function("resource_facade", check=_check_facade)
def resource_facade(view: View, args: Any) -> Any:
    """``{resource_facade: metadata}``: a part of the parent resource of a nested stack."""
    return view.facade(args)


def _check_cfn_facade(args: object, references: References) -> None:
    if not isinstance(args, str) or args not in CFN_FACADES:
        allowed = ", ".join(CFN_FACADES)
        raise ValueError(f'Incorrect arguments to "Fn::ResourceFacade" should be one of: {allowed}')
    references.facades.add(FACADE[CFN_FACADES[args]])


@raw_function("Fn::ResourceFacade", check=_check_cfn_facade)
def cfn_resource_facade(view: View, args: Any) -> Any:
    """``{"Fn::ResourceFacade": "Metadata"}``: `resource_facade` with CloudFormation's names."""
    return view.facade(CFN_FACADES[args])


def _check_ref(args: object, references: References) -> None:
    if not isinstance(args, str):
        raise TypeError('Argument to "Ref" must be a string')
    references.either.add(args)


@raw_function("Ref", check=_check_ref)
def ref(view: View, args: Any) -> Any:
    """``{Ref: name}``: the reference id of a resource, else the value of a parameter."""
    return view.reference(args)


def _check_get_att(args: object, references: References) -> None:
    if not isinstance(args, list) or len(args) != 2:
        raise ValueError('Arguments to "Fn::GetAtt" must be of the form [resource_name, attribute]')
    _note_attribute(args, references)


@raw_function("Fn::GetAtt", check=_check_get_att)
def get_att(view: View, args: object) -> Any:
    """``{"Fn::GetAtt": [name, attribute]}``: null while the resource is not created."""
    return get_attr(view, args)


def _check_find_in_map(args: object, references: References) -> None:
    if not isinstance(args, list) or len(args) != 3:
        raise ValueError('Arguments to "Fn::FindInMap" must be of the form [mapping, key, value]')
    references.mappings.add(args[0] if isinstance(args[0], str) else ALL)


@raw_function("Fn::FindInMap", check=_check_find_in_map)
def find_in_map(view: View, args: object) -> Any:
    """``{"Fn::FindInMap": [mapping, key, value]}``: a value from a mapping of the template."""
    names = view.resolved(args)
    if UNKNOWN in names:
        return UNKNOWN
    entry: Any = view.mapping(_key(names[0]))
    for name in names[1:]:
        entry = entry.get(_key(name)) if isinstance(entry, Mapping) else None
        if entry is None:
            raise FunctionError(f'"Fn::FindInMap" found no "{name}" in the mapping "{names[0]}"')
    return entry


def _key(value: object) -> str:
    """Return a key as templates write it, numbers as their text."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    raise FunctionError('Arguments to "Fn::FindInMap" must be names')


def _check_zones(args: object, references: References) -> None:
    pass


@raw_function("Fn::GetAZs", check=_check_zones)
def get_zones(view: View, args: object) -> Any:  # noqa: ARG001 - a single region
    """``{"Fn::GetAZs": region}``: the names of the compute zones."""
    return view.zones()
