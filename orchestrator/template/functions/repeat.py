"""`repeat` (docs/internals/hot-language.md §5.3): copies of a template with substituted variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final

from orchestrator.json_types import JsonMapping
from orchestrator.template.function_view import UNKNOWN, View
from orchestrator.template.functions.registry import FunctionError, References, is_call, raw_function
from orchestrator.template.functions.resolved_argument import (
    BYTES_OF_A_VALUE,
    MAX_TEXT_LENGTH,
    MAX_VALUES,
    knows_all,
)

MAPS_SINCE: Final = "2016-10-14"
PERMUTATIONS_SINCE: Final = "2017-09-01"

NOT_A_MAP: Final = 'Arguments to "repeat" must be a map'
FORM: Final = repr(
    '"repeat" syntax should be repeat:\n'
    "              template: This is %var%\n"
    "              for_each:\n"
    "                %var%: ['a', 'b', 'c']"
)
FOR_EACH_NOT_A_MAP: Final = 'The "for_each" argument to "repeat" must contain a map'
NOT_A_BOOLEAN: Final = '"permutations" should be boolean type for repeat function.'
LENGTHS_DIFFER: Final = "For repeat, the length of for_each values should be equal if no nested loop."


def _check_form(args: object) -> None:
    if not isinstance(args, dict) or is_call(args):
        raise TypeError(NOT_A_MAP)
    if not {"template", "for_each"} <= args.keys():
        raise ValueError(FORM)


def _check_repeat(args: Any, references: References) -> None:  # noqa: ARG001
    _check_form(args)
    if not isinstance(args["for_each"], dict):
        raise TypeError(FOR_EACH_NOT_A_MAP)


def _check_permutations(args: Any, references: References) -> None:
    _check_form(args)
    if not isinstance(args.get("permutations", True), bool):
        raise TypeError(NOT_A_BOOLEAN)
    _check_repeat(args, references)


@raw_function("repeat", since="2015-04-30", check=_check_repeat)
def repeat_lists(view: View, args: Any) -> Any:
    """``{repeat: {template: x%v%, for_each: {"%v%": [a, b]}}}`` gives ``[xa, xb]``.

    Several variables give every combination, the last one changing fastest.
    """
    return _repeat(view, args, maps=False, permutations=True)


@raw_function("repeat", since=MAPS_SINCE, check=_check_repeat)
def repeat_maps(view: View, args: Any) -> Any:
    """``{repeat: …}`` as in the earlier versions; `for_each` may also be given maps, of which the keys are
    used.
    """
    return _repeat(view, args, maps=True, permutations=True)


@raw_function("repeat", since=PERMUTATIONS_SINCE, check=_check_permutations)
def repeat(view: View, args: Any) -> Any:
    """Return the same; without `permutations`, the first of all lists, then the second of all, and so on."""
    permutations = args.get("permutations", True)
    return _repeat(view, args, maps=permutations, permutations=permutations)


def _repeat(view: View, args: JsonMapping, *, maps: bool, permutations: bool) -> Any:
    # The template is resolved once, before substitution: its functions never see substituted values.
    template = _resolved(view, "template", args["template"])
    for_each = _resolved(view, "for_each", args["for_each"])
    if not (knows_all(for_each) and knows_all(template)):
        return UNKNOWN
    if not isinstance(for_each, Mapping):
        raise FunctionError(FOR_EACH_NOT_A_MAP)
    if not for_each:
        raise FunctionError('The "for_each" argument to "repeat" must contain a variable')
    lists = [_items(value, maps=maps) for value in for_each.values()]
    if not permutations and len({len(items) for items in lists if items is not None}) > 1:
        raise FunctionError(LENGTHS_DIFFER)
    values = [items or [] for items in lists]
    copies = math.prod(map(len, values)) if permutations else min(map(len, values))
    nodes = copies * _nodes(template)
    if nodes > MAX_VALUES:
        raise FunctionError(f'The result of "repeat" would have more than {MAX_VALUES} values')
    view.charge(BYTES_OF_A_VALUE * nodes)
    rows: Iterable[tuple[Any, ...]] = product(*values) if permutations else zip(*values, strict=False)
    copier = _Copier(tuple(for_each))
    made = [copier.copy(template, row) for row in rows]
    view.charge(copier.length)
    return made


def _resolved(view: View, name: str, value: object) -> Any:
    try:
        return view.resolved(value)
    except FunctionError as error:
        error.keys.append(name)
        raise


def _items(value: object, *, maps: bool) -> list[Any] | None:
    if value is None or isinstance(value, list):
        return value
    if maps and isinstance(value, Mapping):
        return list(value)
    kinds = "lists or maps" if maps else "lists"
    raise FunctionError(f'The values of the "for_each" argument to "repeat" must be {kinds}')


def _nodes(value: object) -> int:
    count, todo = 0, [value]
    while todo:
        count += 1
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            todo += node.values()
    return count


class _Copier:
    """Creates the copies, and counts their characters."""

    def __init__(self, variables: tuple[Any, ...]) -> None:
        self._variables = variables
        self.length = 0

    def copy(self, template: object, values: tuple[object, ...]) -> Any:
        """Return the template with every variable replaced, one variable after the other."""
        if isinstance(template, str):
            return self._text(template, values)
        if isinstance(template, list):
            return [self.copy(item, values) for item in template]
        if isinstance(template, dict):
            return {self.copy(key, values): self.copy(value, values) for key, value in template.items()}
        return template

    def _text(self, text: str, values: tuple[Any, ...]) -> str:
        for variable, substitute in zip(self._variables, values, strict=True):
            for position, value in enumerate((variable, substitute), 1):
                if not isinstance(value, str):
                    type_name = "None" if value is None else type(value).__name__
                    raise FunctionError(
                        f"replace() argument {position} must be str, not {type_name}",
                        hint='the variables of "for_each" and their values must be strings',
                    )
            length = len(text) + text.count(variable) * (len(substitute) - len(variable))
            if self.length + length > MAX_TEXT_LENGTH:
                raise FunctionError(
                    f'The result of "repeat" would be longer than {MAX_TEXT_LENGTH} characters'
                )
            text = text.replace(variable, substitute)
        self.length += len(text)
        return text
