"""The functions of conditions, and the macro `if` (docs/internals/hot-language.md §5.4, §6)."""

from __future__ import annotations

from typing import Any

from orchestrator.template import versions
from orchestrator.template.function_view import UNKNOWN, View
from orchestrator.template.functions.registry import Check, References, raw_function

BRANCHES = "[condition_name, value_if_true, value_if_false]"


def _check_if(name: str, *, least: int) -> Check:
    def check(args: object, references: References) -> None:
        if not isinstance(args, list) or not least <= len(args) <= 3:
            raise ValueError(f'Arguments to "{name}" must be of the form: {BRANCHES}')
        references.macros = True

    return check


def _undecided(view: View, _: object) -> Any:
    """``{if: [condition, a, b]}``: one of two values, decided when the template is read."""
    return view.not_yet()


raw_function("if", since=versions.WITH_CONDITIONS, check=_check_if("if", least=3), macro=True)(_undecided)
raw_function("if", since=versions.WITH_OPTIONAL_ELSE, check=_check_if("if", least=2), macro=True)(_undecided)
raw_function("Fn::If", check=_check_if("Fn::If", least=3), macro=True)(_undecided)


def _check_equals(name: str) -> Check:
    def check(args: object, references: References) -> None:  # noqa: ARG001
        if not isinstance(args, list) or len(args) != 2:
            raise ValueError(f'Arguments to "{name}" must be of the form: [value_1, value_2]')

    return check


def equals(view: View, args: Any) -> Any:
    """``{equals: [a, b]}``: whether both are the same, a number never being a text."""
    left_value, other = (view.resolved(item) for item in args)
    return UNKNOWN if UNKNOWN in (left_value, other) else left_value == other


def _check_not(args: object, references: References) -> None:  # noqa: ARG001
    if isinstance(args, list) or (not args and args is not False):
        raise ValueError('Argument to "not" must be a condition')


def _check_not_one(args: object, references: References) -> None:  # noqa: ARG001
    if not isinstance(args, list) or len(args) != 1:
        raise ValueError('Arguments to "Fn::Not" must be of the form: [condition]')


def negation(view: View, args: object) -> Any:
    """``{not: condition}``."""
    operand = view.holds(args[0] if isinstance(args, list) else args)
    return operand if operand is UNKNOWN else not operand


def _check_several(name: str) -> Check:
    def check(args: object, references: References) -> None:  # noqa: ARG001
        if not isinstance(args, list):
            raise ValueError(f'Arguments to "{name}" must be a list of conditions')
        if len(args) < 2:
            raise ValueError(f'The minimum number of condition arguments to "{name}" is 2.')

    return check


def every(view: View, args: object) -> Any:
    """``{and: [condition, condition]}``: whether all of them hold."""
    return _decided(view, args, False)


def some(view: View, args: object) -> Any:
    """``{or: [condition, condition]}``: whether one of them holds."""
    return _decided(view, args, True)


def _decided(view: View, args: Any, decisive: bool) -> Any:
    """Return `decisive` at the first condition that equals it, otherwise the opposite."""
    unsure = False
    for item in args:
        verdict = view.holds(item)
        if verdict is decisive:
            return decisive
        unsure = unsure or verdict is UNKNOWN
    return UNKNOWN if unsure else not decisive


for _name, _call in (("and", every), ("or", some), ("Fn::And", every), ("Fn::Or", some)):
    raw_function(_name, check=_check_several(_name))(_call)
for _name in ("equals", "Fn::Equals"):
    raw_function(_name, check=_check_equals(_name))(equals)
raw_function("not", check=_check_not)(negation)
raw_function("Fn::Not", check=_check_not_one)(negation)
