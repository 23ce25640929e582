"""One-line descriptions of the template functions, in Heat's words where Heat has the function.

Clients print the line and Heat's own tests compare it (docs/internals/rest-api.md §10.2). It is therefore
part of the API and independent of our docstrings, which document the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.template.formats import Format
from orchestrator.template.functions import Function
from orchestrator.template.versions import WITH_CONDITIONS

_BRANCH: Final = "A function to return corresponding value based on condition evaluation."
_SUBSTITUTE: Final = "A function for performing string substitutions."
_FACADE: Final = "A function for retrieving data in a parent provider template."
_ATTRIBUTE: Final = "A function for resolving resource attributes."
_ITEMS: Final = "A function for iterating over a list of items."
_ITEMS_OR_KEYS: Final = "A function for iterating over a list of items or a dict of keys."
_JOIN: Final = "A function for joining strings."
_JOIN_LISTS: Final = "A function for joining one or more lists of strings."

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "get_param": "A function for resolving parameter references.",
    "get_resource": "A function for resolving resource references.",
    "get_attr": _ATTRIBUTE,
    "get_file": "A function for including a file inline.",
    "resource_facade": _FACADE,
    "str_replace": _SUBSTITUTE,
    "str_replace_strict": _SUBSTITUTE,
    "str_replace_vstrict": _SUBSTITUTE,
    "digest": "A function for performing digest operations.",
    "str_split": "A function for splitting delimited strings into a list.",
    "map_merge": "A function for merging maps.",
    "map_replace": "A function for performing substitutions on maps.",
    "yaql": "A function for executing a yaql expression.",
    "if": _BRANCH,
    "filter": "A function for filtering out values from lists.",
    "make_url": "A function for performing substitutions on maps.",
    "list_concat": "A function for extending lists.",
    "list_concat_unique": "A function for extending lists with unique items.",
    "contains": "A function for checking whether specific value is in sequence.",
    "equals": "A function for comparing whether two values are equal.",
    "not": "A function that acts as a NOT operator on a condition.",
    "and": "A function that acts as an AND operator on conditions.",
    "or": "A function that acts as an OR operator on conditions.",
    "Ref": "A function for resolving parameters or resource references.",
    "Fn::GetAtt": _ATTRIBUTE,
    "Fn::FindInMap": "A function for resolving keys in the template mappings.",
    "Fn::GetAZs": "A function for retrieving the availability zones.",
    "Fn::Select": "A function for selecting an item from a list or map.",
    "Fn::Join": _JOIN,
    "Fn::Split": "A function for splitting strings.",
    "Fn::Replace": _SUBSTITUTE,
    "Fn::Base64": "A placeholder function for converting to base64.",
    "Fn::MemberListToMap": "A function to convert lists with enumerated keys and values to mapping.",
    "Fn::ResourceFacade": _FACADE,
    "Fn::If": _BRANCH,
    "Fn::Equals": "A function for comparing whether two values are equal.",
    "Fn::Not": "A function that acts as a NOT operator on a condition.",
    "Fn::And": "A function that acts as an AND operator on conditions.",
    "Fn::Or": "A function that acts as an OR operator on conditions.",
}
# Functions with an extended form: description up to a version of HOT, and from that version on.
GREW: Final[Mapping[str, tuple[str, str, str]]] = {
    "list_join": (_JOIN, "2015-10-15", _JOIN_LISTS),
    "repeat": (_ITEMS, WITH_CONDITIONS, _ITEMS_OR_KEYS),
}


def description_of(name: str, function: Function, form: Format) -> str:
    """Return the description of a function; for a plugin's function the first line of its docstring."""
    if name in GREW:
        previous, since, after = GREW[name]
        return after if form.rules >= since else previous
    return DESCRIPTIONS.get(name) or (function.call.__doc__ or "").strip().partition("\n")[0]
