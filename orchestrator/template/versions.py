"""The versions of the language, and which functions each of them knows (spec/hot-language.md §1, §5)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate

HOT_KEY: Final = "heat_template_version"
CFN_KEYS: Final = ("AWSTemplateFormatVersion", "HeatTemplateFormatVersion")

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
EVERY_FUNCTION: Final = (*_SINCE, *_UNTIL)


@cache
def functions_of(version: str) -> frozenset[str]:
    """Return the names of the functions that `version` has."""
    return frozenset(
        [name for name, since in _SINCE.items() if since <= version]
        + [name for name, until in _UNTIL.items() if version < until]
    )


@cache
def removed_from(version: str) -> frozenset[str]:
    """Return the names that were functions before `version` and are refused in it."""
    return frozenset(name for name, until in _UNTIL.items() if until <= version)


def since(function: str) -> str:
    """Return the version that brought a function in."""
    return _SINCE.get(function, FIRST)


def version_of(document: Mapping[str, Any], *, from_text: bool = False) -> str:
    """Return the version a template is written in, aliases replaced by their date.

    Raises:
        InvalidTemplate: none, several or an unknown version; or a dialect that is not supported yet. Heat
        words "none" differently
            for text (`from_text`) and for an object.
    """
    present = [key for key in (HOT_KEY, *CFN_KEYS) if isinstance(document.get(key), str)]
    if len(present) > 1:
        raise _refused(
            "ambiguous-version", f"The template version is invalid: Ambiguous versions ({', '.join(present)})"
        )
    if not present:
        if from_text and not any(key in document for key in (HOT_KEY, *CFN_KEYS)):
            raise _refused("no-version", "Template format version not found.", heat_type="HTTPBadRequest")
        raise _refused("no-version", "The template version is invalid: Template version was not provided")
    key, value = present[0], str(document[present[0]])
    if key != HOT_KEY:
        raise _refused(
            "dialect-not-supported-yet",
            f'The template version is invalid: "{key}: {value}". This dialect is not supported yet.',
            path=key,
            hint=f"write the template in HOT, with {HOT_KEY}",
        )
    version = ALIASES.get(value, value)
    if version not in VERSIONS:
        known = ", ".join(sorted([*VERSIONS, *ALIASES]))
        raise _refused(
            "unknown-version",
            f'The template version is invalid: "{key}: {value}". "{key}" should be one of: {known}',
            path=key,
        )
    return version


def _refused(
    code: str, message: str, *, path: str = "", hint: str = "", heat_type: str = "InvalidTemplateVersion"
) -> InvalidTemplate:
    return InvalidTemplate(
        [Diagnostic(code=code, message=message, path=path, hint=hint, heat_type=heat_type)]
    )
