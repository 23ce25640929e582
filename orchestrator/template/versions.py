"""The versions of HOT with their functions and keywords (docs/internals/hot-language.md §1, §5)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

HOT_KEY: Final = "heat_template_version"

ALIASES: Final[Mapping[str, str]] = {
    "newton": "2016-10-14",
    "ocata": "2017-02-24",
    "pike": "2017-09-01",
    "queens": "2018-03-02",
    "rocky": "2018-08-31",
    "wallaby": "2021-04-16",
}

# Versions order as their texts do, so "since" is a comparison of strings.
FIRST: Final = "2013-05-23"
VERSIONS: Final = (
    FIRST,
    "2014-10-16",
    "2015-04-30",
    "2015-10-15",
    "2016-04-08",
    *ALIASES.values(),
)
WITH_CONDITIONS: Final = "2016-10-14"
WITH_MODULO: Final = "2017-02-24"
WITH_TAGS: Final = "2018-03-02"
WITH_OPTIONAL_ELSE: Final = "2021-04-16"
LATEST: Final = VERSIONS[-1]

# name -> the version that brought it
_SINCE: Final[Mapping[str, str]] = {
    "get_param": FIRST,
    "get_resource": FIRST,
    "get_attr": FIRST,
    "get_file": FIRST,
    "resource_facade": FIRST,
    "str_replace": FIRST,
    "list_join": FIRST,
    "repeat": "2015-04-30",
    "digest": "2015-04-30",
    "str_split": "2015-10-15",
    "map_merge": "2016-04-08",
    "if": "2016-10-14",
    "yaql": "2016-10-14",
    "map_replace": "2016-10-14",
    "filter": "2017-02-24",
    "str_replace_strict": "2017-02-24",
    "make_url": "2017-09-01",
    "list_concat": "2017-09-01",
    "list_concat_unique": "2017-09-01",
    "str_replace_vstrict": "2017-09-01",
    "contains": "2017-09-01",
}
# CloudFormation's functions in HOT: name -> the version that took it away again
_UNTIL: Final[Mapping[str, str]] = {
    "Ref": "2014-10-16",
    "Fn::GetAZs": "2014-10-16",
    "Fn::Join": "2014-10-16",
    "Fn::Split": "2014-10-16",
    "Fn::Replace": "2014-10-16",
    "Fn::Base64": "2014-10-16",
    "Fn::MemberListToMap": "2014-10-16",
    "Fn::ResourceFacade": "2014-10-16",
    "Fn::Select": "2015-10-15",
}
# Functions that conditions can call.
_CONDITIONS_SINCE: Final[Mapping[str, str]] = {
    "get_param": WITH_CONDITIONS,
    "equals": WITH_CONDITIONS,
    "not": WITH_CONDITIONS,
    "and": WITH_CONDITIONS,
    "or": WITH_CONDITIONS,
    "yaql": "2017-09-01",
    "contains": "2017-09-01",
}
# CloudFormation's names in the dialects of their own
CFN_FUNCTIONS: Final = (
    "Ref",
    "Fn::GetAtt",
    "Fn::FindInMap",
    "Fn::GetAZs",
    "Fn::Select",
    "Fn::Join",
    "Fn::Split",
    "Fn::Replace",
    "Fn::Base64",
    "Fn::MemberListToMap",
    "Fn::ResourceFacade",
)
CFN_CONDITIONS: Final = ("Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or", "Ref", "Fn::FindInMap")
EVERY_FUNCTION: Final = frozenset([*_SINCE, *_UNTIL, *CFN_FUNCTIONS, "Fn::If"])


@cache
def functions_of(version: str) -> frozenset[str]:
    """Return the names of the functions that a version of HOT has."""
    return frozenset(
        [name for name, since in _SINCE.items() if since <= version]
        + [name for name, until in _UNTIL.items() if version < until]
    )


@cache
def conditions_of(version: str) -> frozenset[str]:
    """Return the names of the functions that conditions can call in a version of HOT."""
    return frozenset(name for name, since in _CONDITIONS_SINCE.items() if since <= version)


@cache
def removed_from(version: str) -> frozenset[str]:
    """Return the names that were functions before `version` and are refused in it."""
    return frozenset(name for name, until in _UNTIL.items() if until <= version)


def since(function: str) -> str:
    """Return the HOT version that introduced a function; the first version if HOT never had it."""
    return _SINCE.get(function, FIRST)
