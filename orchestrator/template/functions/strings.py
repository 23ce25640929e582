"""Functions on texts (docs/internals/hot-language.md §5.2): `str_replace` and its strict variants,
`list_join`, `str_split`, `digest`, and their CloudFormation equivalents (§15).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any, Final

from orchestrator.json_types import JsonObject
from orchestrator.template.functions.registry import Check, References, function, is_call
from orchestrator.template.functions.resolved_argument import MAX_VALUES, bounded, shown, whole_function

JSON_SINCE: Final = "2015-10-15"  # since this version, maps and lists become JSON where a text is required
MAX_SEARCHED: Final = 20_000_000_000  # characters to search, for all keys: some seconds
MARKS: Final = (range(32), range(0xE000, 0x110000))  # characters that are hardly ever written


def to_json(value: object) -> str:
    """Return the JSON text with sorted keys."""
    return json.dumps(value, sort_keys=True)


# Replacing.


def _replace_form(name: str) -> str:
    indent = " " * 14
    lines = (
        f'"{name}" syntax should be {name}:',
        f"{indent}template: This is var1 template var2",
        f"{indent}params:",
        f"{indent}  var1: a",
        f"{indent}  var2: string",
    )
    return repr("\n".join(lines))


class _Replacement:
    """A substitution in progress: the rest of the template, and the inserted values.

    In the rest of the template, a mark that does not occur elsewhere replaces each inserted value, so that
    keys are never found inside inserted values.
    """

    def __init__(self, name: str, template: str, keys: Collection[str]) -> None:
        """Start with all of the template left."""
        if len(template) * len(keys) > MAX_SEARCHED:
            raise ValueError(f'"{name}" has too many params for a template of this size')
        self._name = name
        self._mark = next(
            mark
            for mark in map(chr, chain(*MARKS))
            if mark not in template and not any(mark in key for key in keys)
        )
        self._rest = template
        self._replacements: list[str] = []  # in the order of their marks
        self._length = len(template)

    def put(self, key: str, replacement: str) -> bool:
        """Insert `replacement` for every `key`; return whether the key occurred."""
        if not key:
            raise ValueError("empty separator")
        if key not in self._rest:
            return False
        parts = self._rest.split(key)
        self._length += (len(parts) - 1) * (len(replacement) - len(key))
        bounded(self._length, self._name)
        replacements: list[str] = []
        begin = 0
        for part in parts:
            end = begin + part.count(self._mark)
            replacements += self._replacements[begin:end]
            replacements.append(replacement)
            begin = end
        replacements.pop()  # no value follows the last part
        self._rest, self._replacements = self._mark.join(parts), replacements
        return True

    def text(self) -> str:
        """Return all of it."""
        pieces = self._rest.split(self._mark)
        made = [""] * (len(pieces) + len(self._replacements))
        made[::2], made[1::2] = pieces, self._replacements
        return "".join(made)


def replaced(
    name: str,
    template: object,
    params: object,
    *,
    json_since: bool,
    strict: bool = False,
    filled: bool = False,
) -> str:
    """Return the template with all params inserted: longer keys first, keys of equal length in their order.

    `strict` rejects a param that does not occur in the template, `filled` a param without a value.
    """
    if not isinstance(template, str):
        raise TypeError(f'"{name}" template must be a string')
    if not isinstance(params, Mapping):
        raise TypeError(f'"{name}" params must be a map')
    if not all(isinstance(key, str) for key in params):
        raise TypeError(f'"{name}" param placeholders must be strings')
    made = _Replacement(name, template, params.keys())
    unused = []
    for key in sorted(params, key=lambda key: (-len(key), key)):
        if not made.put(key, _replacement(name, key, params[key], json_since, filled)):
            unused.append(key)
    if strict and unused:
        raise ValueError(f"The following params were not found in the template: {','.join(unused)}")
    return made.text()


def _replacement(name: str, key: str, value: object, json_since: bool, filled: bool) -> str:
    if filled and (value is None or value in ("", [], {})):
        raise ValueError(
            f"{name} has an undefined or empty value for param {key}, must be a defined non-empty value"
        )
    if value is None:
        return ""
    if isinstance(value, (str, int, float)):
        return str(value)
    if json_since:
        return to_json(value)
    raise TypeError(f'"{name}" params must be strings or numbers, param {key} is not valid')


def _check_replace(name: str) -> Check:
    def check(args: JsonObject, references: References) -> None:  # noqa: ARG001
        if not isinstance(args["params"], dict):
            raise TypeError(f'"{name}" parameters must be a mapping')

    return check


def _replacing(name: str) -> JsonObject:
    return {
        "form": _replace_form(name),
        "not_a": f'Arguments to "{name}" must be a map',
        "check": _check_replace(name),
    }


@function("str_replace", **_replacing("str_replace"))
def str_replace_texts(*, template: object, params: object) -> str:
    """``{str_replace: {template: a b, params: {b: c}}}`` gives ``"a c"``; values are texts or numbers."""
    return replaced("str_replace", template, params, json_since=False)


@function("str_replace", since=JSON_SINCE, **_replacing("str_replace"))
def str_replace(*, template: object, params: object) -> str:
    """Return the same; maps and lists are put in as JSON."""
    return replaced("str_replace", template, params, json_since=True)


@function("str_replace_strict", since="2017-02-24", **_replacing("str_replace_strict"))
def str_replace_strict(*, template: object, params: object) -> str:
    """Return the same; every param must be in the template."""
    return replaced("str_replace_strict", template, params, json_since=True, strict=True)


@function("str_replace_vstrict", since="2017-09-01", **_replacing("str_replace_vstrict"))
def str_replace_vstrict(*, template: object, params: object) -> str:
    """Return the same; every param must be in the template and have a value."""
    return replaced("str_replace_vstrict", template, params, json_since=True, strict=True, filled=True)


CFN_REPLACE_FORM: Final = (
    'Incorrect arguments to "Fn::Replace" should be: '
    '{"Fn::Replace": [ {"$var1": "foo", "%var2%": "bar"}, "$var1 is %var2%"]}'
)


def _check_cfn_replace(args: list[object], references: References) -> None:  # noqa: ARG001
    if not isinstance(args[0], dict):
        raise TypeError('"Fn::Replace" parameters must be a mapping')


@function("Fn::Replace", form=CFN_REPLACE_FORM, check=_check_cfn_replace)
def cfn_replace(params: object, template: object, /) -> str:
    """``{"Fn::Replace": [{b: c}, a b]}`` gives ``"a c"``."""
    return replaced("Fn::Replace", template, params, json_since=False)


# Joining.


def _joined(name: str, delimiter: object, lists: tuple[object, ...], *, json_since: bool) -> str:
    texts = []
    for items in lists:
        if items is None or (json_since and not items):
            continue
        if not isinstance(items, list):
            raise TypeError(f'"{name}" must operate on a list')
        texts += items
    if not isinstance(delimiter, str):
        raise TypeError(f'"{name}" delimiter must be a string')
    texts = [_text(item, json_since) for item in texts]
    bounded(sum(map(len, texts)) + len(delimiter) * len(texts), name)
    return delimiter.join(texts)


def _text(item: object, json_since: bool) -> str:
    if item is None:
        return ""
    if isinstance(item, str):
        return item
    if json_since and isinstance(item, (dict, list)):
        return to_json(item)
    expected = "string, map or list" if json_since else "strings"
    raise TypeError(f"Items to join must be {expected} not {shown(repr(item))}")


def _join_form(name: str, suffix: str = "") -> str:
    return f'Incorrect arguments to "{name}" should be: "{name}" : [ " ", [ "str1", "str2"]{suffix}]'


@function("list_join", form=_join_form("list_join"))
def list_join_one(delimiter: object, items: object, /) -> str:
    """``{list_join: [", ", [a, b]]}`` gives ``"a, b"``."""
    return _joined("list_join", delimiter, (items,), json_since=False)


@function("list_join", since=JSON_SINCE, form=_join_form("list_join", " ..."))
def list_join(delimiter: object, first: object, /, *lists: object) -> str:
    """``{list_join: [", ", [a, b], [c]]}`` gives ``"a, b, c"``; maps and lists are inserted as JSON."""
    return _joined("list_join", delimiter, (first, *lists), json_since=True)


@function("Fn::Join", form=_join_form("Fn::Join"))
def cfn_join(delimiter: object, items: object, /) -> str:
    """``{"Fn::Join": [", ", [a, b]]}`` gives ``"a, b"``."""
    return _joined("Fn::Join", delimiter, (items,), json_since=False)


# Splitting.

SPLIT_EXAMPLE: Final = '"str_split" should be: "str_split" : [ ",", "apples,pears", <index>]'
SPLIT_FORM: Final = f"Incorrect arguments to {SPLIT_EXAMPLE}"
CFN_SPLIT_FORM: Final = 'Incorrect arguments to "Fn::Split" should be: "Fn::Split" : [ ",", "str1,str2"]]'


def _check_split(args: object, references: References) -> None:  # noqa: ARG001
    if isinstance(args, str) or (isinstance(args, dict) and not is_call(args)):
        raise ValueError(SPLIT_FORM)


@whole_function("str_split", since=JSON_SINCE, check=_check_split)
def str_split(args: object) -> Any:
    """``{str_split: [",", "a,b", 1]}`` gives ``"b"``, without an index the whole list; null for null."""
    if not isinstance(args, list) or len(args) < 2:
        raise ValueError(SPLIT_FORM)
    delimiter, text = args[:2]
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError('The text that "str_split" splits must be a string')
    parts = _split("str_split", delimiter, text)
    if len(args) == 2:
        return parts
    try:
        index = int(args[2])
    except ValueError:
        raise ValueError(f"Incorrect index to {SPLIT_EXAMPLE}") from None
    try:
        return parts[index]
    except IndexError:
        raise ValueError(f'Incorrect index to "str_split" should be between 0 and {len(parts) - 1}') from None


@function("Fn::Split", form=CFN_SPLIT_FORM)
def cfn_split(delimiter: object, text: object, /) -> list[str]:
    """``{"Fn::Split": [",", "a,b"]}`` gives ``["a", "b"]``."""
    if not isinstance(delimiter, str):
        raise TypeError("Delimiter for Fn::Split must be string")
    if not isinstance(text, str):
        raise TypeError(f"String to split must be string; got {type(text)}")
    return _split("Fn::Split", delimiter, text)


def _split(name: str, delimiter: str | None, text: str) -> list[str]:
    parts = text.split(delimiter, MAX_VALUES)
    if len(parts) > MAX_VALUES:
        raise ValueError(f'The result of "{name}" would have more than {MAX_VALUES} values')
    return parts


# Digests.

DIGEST_USAGE: Final = 'Function "digest" usage: ["<algorithm>", "<value>"]'
NOT_TEXTS: Final = 'Argument to function "digest" must be a list of strings'


@whole_function("digest", since="2015-04-30")
def digest(args: object) -> str:
    """``{digest: [sha256, text]}`` gives the hexadecimal digest of the text's Latin-1 bytes."""
    if not isinstance(args, list) or not all(isinstance(item, str) for item in args):
        raise TypeError(NOT_TEXTS)
    if len(args) != 2:
        raise ValueError(DIGEST_USAGE)
    algorithm, text = args
    if algorithm.lower() not in hashlib.algorithms_available:
        known = ", ".join(f"'{name}'" for name in sorted(hashlib.algorithms_available))
        raise ValueError(f"Algorithm must be one of {{{known}}}")
    return hashlib.new(algorithm, text.encode("latin-1"), usedforsecurity=False).hexdigest()
