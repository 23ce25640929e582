"""The short forms of functions in CloudFormation's YAML: ``!Ref name`` is ``{Ref: name}``.

A template is stored with the functions in their place, so that the rest of the language knows no tags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from orchestrator.json_types import JsonObject
from orchestrator.template import versions

VERSION_KEYS: Final = ("AWSTemplateFormatVersion", "HeatTemplateFormatVersion")  # of formats with short tags
MAX_ADDED_LEVELS: Final = 3  # of nesting, by a tag
GET_ATT: Final = "Fn::GetAtt"
REPLACE: Final = "Fn::Replace"  # the function that `!Sub` stands for
CONDITION: Final = "!Condition"

_NAMES: Final = {*versions.CFN_FUNCTIONS, *versions.CFN_CONDITIONS, "Fn::If"}
FUNCTIONS: Final[Mapping[str, str]] = {
    **{f"!{name.removeprefix('Fn::')}": name for name in _NAMES},
    "!Sub": REPLACE,
}
HOT_FORMS: Final[Mapping[str, str]] = {
    "!Ref": "{get_param: NAME} or {get_resource: NAME}",
    "!GetAtt": "{get_attr: [NAME, ATTRIBUTE]}",
    "!Sub": "{str_replace: {template: TEXT, params: {…}}}",
    "!Join": '{list_join: ["", […]]}',
    "!If": "{if: [CONDITION, …, …]}",
}
_PLACEHOLDER: Final = re.compile(r"\$\{(!?)([^}]*)\}")


def is_short_tag(tag: str | None) -> bool:
    """Whether a tag is written like that of a function: an exclamation mark and a name."""
    return tag is not None and len(tag) > 1 and tag[0] == "!" and tag[1] != "!"


def is_known(tag: str) -> bool:
    """Whether a short tag stands for a function of the CloudFormation formats."""
    return tag in FUNCTIONS or tag == CONDITION


def value_of(tag: str, value: Any) -> Any:
    """Return the call that a tagged value stands for.

    Raises:
        ValueError: its value does not have the form of the function.
    """
    if tag == CONDITION:
        return _name(tag, value)
    name = FUNCTIONS[tag]
    if tag == "!Sub":
        return _substitution(value)
    if name == GET_ATT and isinstance(value, str):
        resource, dot, attribute = value.partition(".")
        if not (resource and dot and attribute):
            raise ValueError('the value of the tag !GetAtt must be "RESOURCE.ATTRIBUTE" or a list')
        value = [resource, attribute]
    return {name: _name(tag, value) if name == "Ref" else value}


def hint_of(tag: str) -> str:
    """Return a hint for a tag in another format."""
    form = HOT_FORMS.get(tag)
    if not is_known(tag):
        return ""
    instead = f": write {form}" if form else ""
    return f"short tags are for CloudFormation templates (AWSTemplateFormatVersion){instead}"


def _name(tag: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"the value of the tag {tag} must be a name")
    return value


def _substitution(value: object) -> Any:
    """Return ``!Sub text`` and ``!Sub [text, {name: value}]`` as a replacement of the placeholders
    ``${name}`` and ``${resource.attribute}``; ``${!name}`` stands for ``${name}`` itself.
    """
    text, given = value, {}
    if isinstance(value, list):
        if len(value) != 2 or not isinstance(value[1], dict):
            raise ValueError("the value of the tag !Sub must be a text, or a list of a text and a map")
        text, given = value
    if not isinstance(text, str):
        raise ValueError("the value of the tag !Sub must be a text, or a list of a text and a map")
    params: JsonObject = {}
    for literal, name in _PLACEHOLDER.findall(text):
        if literal:
            params[f"${{!{name}}}"] = f"${{{name}}}"
        elif name in given:
            params[f"${{{name}}}"] = given[name]
        elif not name.strip():
            raise ValueError("a placeholder of the tag !Sub has no name")
        else:
            resource, dot, attribute = name.partition(".")
            params[f"${{{name}}}"] = {GET_ATT: [resource, attribute]} if dot else {"Ref": name}
    return {REPLACE: [params, text]} if params else text
