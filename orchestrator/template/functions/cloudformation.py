"""CloudFormation functions without an equivalent in HOT (docs/internals/hot-language.md §15): `Fn::Select`,
`Fn::Base64`, `Fn::MemberListToMap`. Those for joining, splitting and replacing are in `strings.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from orchestrator.template.functions.registry import References, function
from orchestrator.template.functions.resolved_argument import whole_function
from orchestrator.template.json_text import read_json

SELECT_FORM: Final = 'Arguments to "Fn::Select" must be of the form [index, collection]'
MEMBER_FORM: Final = """Wrong Arguments try: "
            {'Fn::MemberListToMap': ['Name', 'Value',
                                     ['.member.0.Name=key',
                                      '.member.0.Value=door']]}
            \""""
MEMBER: Final = re.compile(r"\.member\.([0-9]+)\.(.*)", re.DOTALL)


@function("Fn::Select", form=SELECT_FORM)
def select(index: Any, collection: Any, /) -> Any:
    """``{"Fn::Select": [1, [a, b]]}`` gives ``"b"``: an item of a list, a map or the JSON text of one.

    A missing item is ``""``.
    """
    if isinstance(collection, str) and collection:
        try:
            collection = read_json(collection)
        except ValueError as error:
            raise ValueError(f'"Fn::Select": {error}') from None
    if collection is None or collection == "":
        return ""
    if isinstance(collection, Mapping):
        if not isinstance(index, str):
            raise TypeError('Index to "Fn::Select" must be a string')
        return collection.get(index, "")
    try:
        number = int(index)
    except (ValueError, TypeError, OverflowError):
        number = None
    if not isinstance(collection, list):
        raise TypeError("Arguments to Fn::Select not fully resolved")
    if number is None:
        raise TypeError('Index to "Fn::Select" must be an integer')
    return collection[number] if -len(collection) <= number < len(collection) else ""


@whole_function("Fn::Base64")
def base64(text: object) -> str:
    """``{"Fn::Base64": text}`` gives the text unchanged: user data is encoded when it is sent."""
    if not isinstance(text, str):
        raise TypeError('"Fn::Base64" argument must be a string')
    return text


def _check_names(args: list[object], references: References) -> None:  # noqa: ARG001
    for name, label in zip(args, ("Key", "Value"), strict=False):
        if not isinstance(name, str):
            raise TypeError(f"Fn::MemberListToMap {label} Name must be a string")


@function("Fn::MemberListToMap", form=MEMBER_FORM, check=_check_names)
def member_list_to_map(key: str, value: str, members: object, /) -> dict[str, str]:
    """``[Name, Value, [.member.0.Name=k, .member.0.Value=v]]`` gives ``{k: v}``."""
    if not isinstance(members, Iterable):
        raise TypeError("Member list must be a list")
    items: dict[int, dict[str, str]] = {}
    for position, member in enumerate(members):
        if not isinstance(member, str):
            raise TypeError("Member list items must be strings")
        name, equals, text = member.partition("=")
        if not equals:
            raise ValueError(f"dictionary update sequence element #{position} has length 1; 2 is required")
        part = MEMBER.fullmatch(name)
        if part:
            items.setdefault(int(part[1]), {})[part[2]] = text
    parts = [items[number] for number in sorted(items)]
    return {part[key]: part[value] for part in parts if key in part and value in part}
