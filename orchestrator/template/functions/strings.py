"""`str_replace`, `list_join`: texts made of texts (spec/hot-language.md §5.2)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from orchestrator.template.functions.registry import References, function

JSON_SINCE: Final = "2015-10-15"  # from here on, maps and lists become JSON where a text is wanted
LONGEST_SHOWN: Final = 200

REPLACE_FORM: Final = (
    '"str_replace" syntax should be str_replace:\n'
    "  template: This is var1 template var2\n"
    "  params:\n"
    "    var1: a\n"
    "    var2: string"
)
REPLACE_NOT_A_MAP: Final = 'Arguments to "str_replace" must be a map'
JOIN_FORM: Final = 'Incorrect arguments to "list_join" should be: "list_join" : [ " ", [ "str1", "str2"]]'
JOIN_MANY_FORM: Final = (
    'Incorrect arguments to "list_join" should be: "list_join" : [ " ", [ "str1", "str2"], [ "str3", "str4"]]'
)


def to_json(value: Any) -> str:
    """Return the JSON text with sorted keys."""
    return json.dumps(value, sort_keys=True)


def _check_replace(args: dict[str, Any], found: References) -> None:  # noqa: ARG001
    if not isinstance(args["params"], dict):
        raise TypeError('"str_replace" parameters must be a mapping')
    if not isinstance(args["template"], (str, dict)):
        raise TypeError('"str_replace" template must be a string')


def _replace(template: Any, params: Any, *, allow_json: bool) -> str:
    if not isinstance(template, str):
        raise TypeError('"str_replace" template must be a string')
    if not isinstance(params, Mapping):
        raise TypeError('"str_replace" params must be a map')
    words = {key: _replacement(key, value, allow_json) for key, value in params.items()}
    if not words:
        return template
    # One pass: what was put in is never looked at again. Longer keys first, ties in their own order.
    keys = sorted(words, key=lambda key: (-len(key), key))
    return re.sub("|".join(map(re.escape, keys)), lambda match: words[match[0]], template)


def _replacement(key: Any, value: Any, allow_json: bool) -> str:
    if not isinstance(key, str):
        raise TypeError('"str_replace" param placeholders must be strings')
    if not key:
        raise ValueError('"str_replace" param placeholders must not be empty')
    if value is None:
        return ""
    if isinstance(value, (str, int, float)):
        return str(value)
    if allow_json:
        return to_json(value)
    raise TypeError(f'"str_replace" params must be strings or numbers, param {key} is not valid')


@function("str_replace", form=REPLACE_FORM, not_a=REPLACE_NOT_A_MAP, check=_check_replace)
def str_replace_texts(*, template: str, params: Mapping[str, Any]) -> str:
    """``{str_replace: {template: a b, params: {b: c}}}`` gives ``"a c"``; values are texts or numbers."""
    return _replace(template, params, allow_json=False)


@function("str_replace", since=JSON_SINCE, form=REPLACE_FORM, not_a=REPLACE_NOT_A_MAP, check=_check_replace)
def str_replace(*, template: str, params: Mapping[str, Any]) -> str:
    """Return the same; maps and lists are put in as JSON."""
    return _replace(template, params, allow_json=True)


def _items(items: Any) -> list[Any]:
    if items is None:
        return []
    if not isinstance(items, list):
        raise TypeError('"list_join" must operate on a list')
    return items


def _delimiter(delimiter: Any) -> str:
    if not isinstance(delimiter, str):
        raise TypeError('"list_join" delimiter must be a string')
    return delimiter


def _text(item: Any) -> str:
    if item is None:
        return ""
    if not isinstance(item, str):
        raise TypeError(f"Items to join must be strings not {repr(item)[:LONGEST_SHOWN]}")
    return item


def _text_or_json(item: Any) -> str:
    if item is None:
        return ""
    if isinstance(item, str):
        return item
    if isinstance(item, (dict, list)):
        return to_json(item)
    raise TypeError(f"Items to join must be string, map or list not {repr(item)[:LONGEST_SHOWN]}")


@function("list_join", form=JOIN_FORM)
def list_join_one(delimiter: str, items: list[str], /) -> str:
    """``{list_join: [", ", [a, b]]}`` gives ``"a, b"``."""
    return _delimiter(delimiter).join(_text(item) for item in _items(items))


@function("list_join", since=JSON_SINCE, form=JOIN_MANY_FORM)
def list_join(delimiter: str, first: list[Any], /, *lists: list[Any]) -> str:
    """``{list_join: [", ", [a, b], [c]]}`` gives ``"a, b, c"``; maps and lists are put in as JSON."""
    return _delimiter(delimiter).join(
        _text_or_json(item) for items in (first, *lists) for item in _items(items)
    )
