"""Conditions, evaluated with the parameter values of a template, and the expansion of `if`
(docs/internals/hot-language.md §6).

A condition refers to parameters and mappings only, so it is decided before planning: the engine never
evaluates conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final

from orchestrator.json_types import JsonMapping
from orchestrator.template.definition import StackDefinition
from orchestrator.template.formats import Format
from orchestrator.template.function_view import UNKNOWN, Unknown
from orchestrator.template.functions import FunctionError, References, UnknownParameter
from orchestrator.template.parameters import ParameterValues

Verdict = bool | Unknown


class InvalidCondition(FunctionError):
    """A value that is not a condition."""

    code = "condition"


class MalformedCall(FunctionError):
    """A function that a condition may not call, or not like this."""

    code = "function-arguments"


class MissingParameter(UnknownParameter):
    """A parameter without a value that a condition requires."""

    code = "missing-parameter"


class ConditionError(FunctionError):
    """A condition that cannot be decided, with the same message for all its users."""

    code = "condition"

    def text(self, place: str) -> str:  # noqa: ARG002 - the condition is at fault, not its user
        """Return the whole message."""
        return f"Condition validation error: {self}"


class Dropped(Enum):
    """The type of `DROPPED`."""

    DROPPED = "dropped"


# The result of an `if` without an else branch whose condition is false: the item is removed.
DROPPED: Final = Dropped.DROPPED


class Conditions(StackDefinition):
    """The conditions of a template for a set of parameter values. Each condition is evaluated once, on first
    use.
    """

    def __init__(
        self,
        form: Format,
        section: JsonMapping,
        values: ParameterValues | None,
        mappings: JsonMapping,
    ) -> None:
        """`section` is the section of the template, checked to be a map. Without `values` (None), conditions
        that depend on a parameter stay undecided; with `values`, a missing value is an error of the
        condition's user.
        """
        super().__init__(form.name, values or ParameterValues({}), {}, strict=False, mappings=mappings)
        self.form = form
        self._decides = values is not None
        self._functions = form.condition_functions
        self._section = section
        self._verdicts: dict[str, Verdict | FunctionError] = {}
        self._open: set[str] = set()

    def faults(self, name: str) -> Iterator[FunctionError]:
        """Yield the faults of a condition's definition; a faulty condition stays undecided, so that it is
        reported once.
        """
        written, has_faults = self._section[name], False
        if isinstance(written, bool):
            return
        if not self._is_call(written):
            yield ConditionError(f'The definition of condition "{name}" is invalid: {written}')
            has_faults = True
        else:
            for error in self._check(written):
                yield error
                has_faults = True
        if has_faults:
            self._verdicts[name] = UNKNOWN

    def unused(self) -> Iterator[tuple[str, FunctionError]]:
        """Yield unused conditions that cannot be decided."""
        for name in self._section:
            if name not in self._verdicts:
                try:
                    self.define(name)
                except UnknownParameter:
                    pass
                except FunctionError as error:
                    yield name, error

    def define(self, name: str) -> Verdict:
        """Return whether the condition `name` is true.

        Raises:
            FunctionError: the condition, or a condition that it refers to, cannot be decided; the same
                error at every call.
        """
        if name not in self._verdicts:
            if name in self._open:
                raise ConditionError(f'Circular definition for condition "{name}"')
            self._open.add(name)
            try:
                with self._discreetly():
                    self._verdicts[name] = self._evaluate(name)
            except FunctionError as error:
                self._verdicts[name] = error
            finally:
                self._open.discard(name)
        verdict = self._verdicts[name]
        if isinstance(verdict, FunctionError):
            verdict.keys = []  # it is met on another way each time
            raise verdict
        return verdict

    def holds(self, condition: object) -> Verdict:
        """Return whether a condition is true: a name, a boolean, or a function call.

        Raises:
            FunctionError: not a condition, or it cannot be decided.
        """
        with self._discreetly():
            return self._holds(condition)

    def _holds(self, condition: object) -> Verdict:
        if self._is_call(condition):
            for error in self._check(condition):
                raise error
            condition = self.resolved(condition)
        if isinstance(condition, bool) or condition is UNKNOWN:
            return condition
        if isinstance(condition, str) and condition in self._section:
            return self.define(condition)
        raise InvalidCondition(f'Invalid condition "{condition}"')

    @contextmanager
    def _discreetly(self) -> Iterator[None]:
        """Remove quoted values from an error if a secret was read during the evaluation."""
        before, self.used_secret = self.used_secret, False
        try:
            yield
        except FunctionError as error:
            raise (error.discreet() if self.used_secret else error) from None
        finally:
            self.used_secret = self.used_secret or before

    def parameter(self, name: str) -> Any:
        """Return a parameter's value."""
        if not self._decides:
            return self.not_yet()
        try:
            return super().parameter(name)
        except UnknownParameter:
            raise MissingParameter(name) from None

    def missing(self, name: str) -> Any:
        """Raise an error: the condition requires the value now."""
        raise MissingParameter(name)

    def _is_call(self, written: object) -> bool:
        """Whether this is a function of the template's format, allowed here or not."""
        if not isinstance(written, dict) or len(written) != 1:
            return False
        name = next(iter(written))
        return name in self._functions or name in self.form.functions

    def _evaluate(self, name: str) -> Verdict:
        written = self._section[name]
        value = self.resolved(written) if isinstance(written, dict) else written
        if isinstance(value, bool) or value is UNKNOWN:
            return value
        raise ConditionError(f'The definition of condition "{name}" is invalid: {value}')

    def _check(self, value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[FunctionError]:
        """Yield the faults of the calls in an unresolved value."""
        if self._is_call(value):
            name, args = next(iter(value.items()))
            keys = (*keys, name)
            function = self._functions.get(name)
            if function is None:
                yield _at(MalformedCall(f'The function "{name}" is invalid in this context'), keys)
                return
            try:
                function.check(args, References())
            except (ValueError, TypeError) as error:
                yield _at(MalformedCall(str(error)), keys)
                return
            yield from self._check(args, keys)
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from self._check(item, (*keys, key))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self._check(item, (*keys, index))

    # Expansion of `if`.

    def expand(self, value: object) -> Any:
        """Return `value` with every `if` replaced by its selected branch, `DROPPED` if no branch is selected.

        An `if` with an unknown condition becomes a call that evaluates to unknown.

        Raises:
            FunctionError: a condition or the form of an `if` is invalid.
        """
        if value.__class__ is dict:
            if len(value) == 1:
                name, args = next(iter(value.items()))
                function = self.form.callable.get(name)
                if function is not None and function.macro:
                    try:
                        function.check(args, References())
                    except (ValueError, TypeError) as error:
                        raise FunctionError(str(error)) from None
                    chosen = self.choose(args)
                    if chosen is None:
                        return {name: [UNKNOWN, None, None]}
                    return DROPPED if chosen == len(args) else self.expand(args[chosen])
            made = {key: self.expand(item) for key, item in value.items()}
            return {key: item for key, item in made.items() if item is not DROPPED}
        if value.__class__ is list:
            return [item for item in map(self.expand, value) if item is not DROPPED]
        return value

    def choose(self, args: list[object]) -> int | None:
        """Return the index of the selected argument of an `if`, len(args) for an absent else branch, None if
        unknown.
        """
        if args[0] is UNKNOWN:
            return None
        verdict = self.holds(args[0])
        return None if verdict is UNKNOWN else 1 if verdict else 2


def _at(error: FunctionError, keys: tuple[str | int, ...]) -> FunctionError:
    error.keys = list(reversed(keys))
    return error
