"""Scan an expression without evaluating it: its references, and the parts that can never be valid.

The scan visits every value of every template, so it is a single loop; locations are links to the parent,
expanded for faults only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from orchestrator.template import versions
from orchestrator.template.conditions import Conditions, MissingParameter
from orchestrator.template.diagnostics import Path, path_in_message, path_text
from orchestrator.template.formats import Format
from orchestrator.template.functions import (
    ALL,
    Function,
    FunctionError,
    References,
    UnknownParameter,
    UnknownReference,
)

CHOSEN = re.compile(r"\.(if|Fn::If)\[[12]\]")  # messages name the macro, not the branch

Link = tuple[Any, str | int] | None  # (the parent's link, the key under it)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at `path`, without line and column yet."""

    code: str
    message: str
    path: Path = ()
    hint: str = ""
    heat_type: str = "StackValidationFailed"
    warning: bool = False
    name: str = ""  # an unknown name, and the section with candidates for a suggestion
    near: str = ""


class AllNames:
    """Contains every name but a few."""

    def __init__(self, but: Collection[str] = ()) -> None:
        """Take the names that are not in it."""
        self._but = but

    def __contains__(self, name: object) -> bool:
        """Return whether a name is in it."""
        return name not in self._but


ANY: Final = AllNames()


@dataclass(frozen=True, slots=True)
class Names:
    """The declared names of a template, for checking references and for suggestions."""

    parameters: Container[str]  # includes pseudo parameters
    resources: Container[str]  # without resources whose condition is false
    mappings: Container[str] = ()


class Scanner:
    """Scans the expressions of a template and collects the faults in `faults`."""

    def __init__(self, form: Format, names: Names, conditions: Conditions) -> None:
        """`conditions` select the branches of `if`; branches that are not selected are not scanned."""
        self._form = form
        self._functions = form.functions
        self._names = names
        self._conditions = conditions
        self._absent = False
        self.faults: list[Fault] = []

    def of_absent(self) -> Scanner:
        """Return a scanner for resources and outputs whose condition is false, with the same list of faults.

        Calls in them must be well formed; unknown references and removed functions are ignored.
        """
        made = Scanner(self._form, Names(ANY, ANY, ANY), self._conditions)
        made.faults, made._absent = self.faults, True
        return made

    def scan(self, value: object, references: References, path: Path = (), place: str = "") -> None:
        """Add the references of `value` to `references`.

        `path` is the path of the value in the document, `place` its name in Heat's messages; without `place`
        the references define no order (outputs).
        """
        functions = self._functions
        todo: list[tuple[Any, Link]] = [(value, None)]
        while todo:
            value, link = todo.pop()
            if value.__class__ is dict:
                if len(value) == 1:
                    name, args = next(iter(value.items()))
                    function = functions.get(name)
                    if function is not None:
                        link = (link, name)
                        if function.macro:
                            todo += self._branch(function, args, references, link, (path, place))
                            continue
                        self._call(function, args, references, link, (path, place))
                        if args.__class__ is dict or args.__class__ is list:
                            todo.append((args, link))
                        continue
                    hint = mistyped(name, self._form)
                    if hint:
                        where = path + spell((link, name))
                        self._warn(f'"{name}" is plain data here, not a function.', where, hint)
                for key, item in value.items():
                    if item.__class__ is dict or item.__class__ is list:
                        todo.append((item, (link, key)))
            elif value.__class__ is list:
                for index, item in enumerate(value):
                    if item.__class__ is dict or item.__class__ is list:
                        todo.append((item, (link, index)))

    def _warn(self, message: str, path: Path, hint: str) -> None:
        self.faults.append(Fault("mistyped-function", message, path, hint, warning=True))

    def _branch(
        self, function: Function, args: Any, references: References, link: Link, at: tuple[Path, str]
    ) -> list[tuple[Any, Link]]:
        """Return the selected branch of a macro."""
        where = at[0] + spell(link)
        try:
            function.check(args, references)
        except (ValueError, TypeError) as error:
            self._fault("function-arguments", f"{path_text(where)}: {error}", where)
            return []
        try:
            chosen = self._conditions.choose(args)
        except FunctionError as error:
            if error.keys:
                where += (0, *reversed(error.keys))
            message, heat_type = error.text(path_text(where)), error.heat_type
            self.faults.append(Fault(error.code, message, where, error.hint, heat_type))
            return []
        if chosen is None or chosen >= len(args):  # undecided, or no branch selected
            return []
        return [(args[chosen], (link, chosen))]

    def _call(
        self, function: Function, args: object, references: References, link: Link, at: tuple[Path, str]
    ) -> None:
        path = at[0]
        if function.state == "removed":
            if self._absent:
                return
            where = path + spell(link)
            message = (
                f"{self._heat_path(path, link)}: The template version is invalid: "
                f"The function {function.name} is not supported in this version of HOT."
            )
            self._fault("function-removed", message, where)
            return
        used = References()
        try:
            function.check(self._decided(args), used)
        except (ValueError, TypeError) as error:
            where = path + spell(link)
            self._fault("function-arguments", f"{path_text(where)}: {error}", where)
            return
        except FunctionError:
            return  # the nested macro is scanned separately
        if used.either:
            self._either(used, link, at)
        if used.requires:
            self._requires(used, references, link, at)
        if used.parameters:
            for name in used.parameters - references.parameters:
                if name == ALL or name in self._names.parameters:
                    references.parameters.add(name)
                else:
                    self._unresolved(UnknownParameter(name), UnknownParameter.code, name, link, at)
        if used.facades:
            references.parameters |= used.facades
        if used.files:
            references.files |= used.files
        if used.mappings:
            self._mappings(used, references, path + spell(link))

    def _decided(self, args: object) -> Any:
        """Return arguments with the branch of an `if` in place of it."""
        items = args.values() if args.__class__ is dict else args if args.__class__ is list else ()
        for item in items:
            if item.__class__ is dict and len(item) == 1:
                function = self._functions.get(next(iter(item)))
                if function is not None and function.macro:
                    return self._conditions.expand(args)
        return args

    def _either(self, used: References, link: Link, at: tuple[Path, str]) -> None:
        """Return whether a name is a parameter or a resource."""
        for name in used.either:
            if name in self._names.resources:
                used.requires.add(name)
            elif name in self._names.parameters:
                used.parameters.add(name)
            else:
                self._unresolved(UnknownReference(name), "unknown-name", name, link, at)

    def _requires(self, used: References, references: References, link: Link, at: tuple[Path, str]) -> None:
        for name in used.requires - references.requires:
            if name in self._names.resources:
                references.requires.add(name)
            else:
                self._unknown_resource(name, link, at)
        for name, attributes in used.attributes.items():
            references.attributes.setdefault(name, set()).update(attributes)

    def _unknown_resource(self, name: str, link: Link, at: tuple[Path, str]) -> None:
        path, place = at
        error, where = UnknownReference(name), path + spell(link)
        if not place:
            self._unordered(error, where, name, self._heat_path(path, link))
            return
        called = CHOSEN.sub(r".\1", path_text(spell(link), place))
        if path[2] in (self._form.keywords.external_id, self._form.keywords.deletion_policy):
            called = ""
        self._unknown(error, error.text(called), where, name, "resources")

    def _unordered(self, error: UnknownReference, where: Path, name: str, heat_path: str) -> None:
        """Report an unknown reference in an output; an unknown `get_resource` is no fault here yet."""
        message, is_reference = f"{heat_path}: {error.text('')}", where[-1] == "get_resource"
        self.faults.append(
            Fault(error.code, message, where, warning=is_reference, name=name, near="resources")
        )

    def _unresolved(
        self, error: FunctionError, code: str, name: str, link: Link, at: tuple[Path, str]
    ) -> None:
        """Report a name that Heat resolves late: with the value, or for outputs when they are shown."""
        (path, place), where = at, at[0] + spell(link)
        message, heat_type, keywords = error.text(""), error.heat_type, self._form.keywords
        if len(path) > 2 and path[2] in (keywords.external_id, keywords.deletion_policy):
            code = MissingParameter.code  # conditions are evaluated in any case
        elif len(path) > 2 and path[2] == keywords.properties:
            message, heat_type = f"Property error: {path_text(where[:4])}: {message}", "StackValidationFailed"
        self.faults.append(
            Fault(code, message, where, "", heat_type, warning=not place, name=name, near="parameters")
        )

    def _heat_path(self, path: Path, link: Link) -> str:
        """Return the path of a function in the form of Heat's messages, which start at the outermost
        function.
        """
        return path_in_message(spell(link), self._form.functions, path_text(path))

    def _mappings(self, used: References, references: References, where: Path) -> None:
        for name in used.mappings:
            if name == ALL or name in self._names.mappings:
                references.mappings.add(name)
            else:
                message = f'{path_text(where)}: The template has no mapping "{name}"'
                self.faults.append(Fault("unknown-mapping", message, where, name=name, near="mappings"))

    def _unknown(self, error: FunctionError, message: str, where: Path, name: str, near: str) -> None:
        self.faults.append(Fault(error.code, message, where, "", error.heat_type, name=name, near=near))

    def _fault(self, code: str, message: str, where: Path) -> None:
        self.faults.append(Fault(code, message, where))


def spell(link: Link) -> Path:
    """Return the path of a link."""
    keys: list[str | int] = []
    while link is not None:
        link, key = link
        keys.append(key)
    return tuple(reversed(keys))


@lru_cache(maxsize=4096)
def mistyped(name: object, form: Format) -> str:
    """Return a hint if the only key of a map resembles a function that the format does not have."""
    if not isinstance(name, str) or not 5 <= len(name) <= 24:
        return ""
    if name in versions.EVERY_FUNCTION:
        if form.key != versions.HOT_KEY or name not in versions.functions_of(versions.LATEST):
            return f"the function {name} belongs to another format"
        return f"the function {name} was added in version {versions.since(name)}"
    alike = _same_ends(name, form.callable)
    matches = get_close_matches(name, alike, n=1, cutoff=0.82) if alike else []
    return f'did you mean "{matches[0]}"?' if matches else ""


def _same_ends(name: str, candidates: Iterable[str]) -> list[str]:
    # A cheap filter first: a typing error hardly changes the length, and changes at most one end.
    return [
        w
        for w in candidates
        if len(w) > 4 and abs(len(w) - len(name)) <= 2 and (w[:2] == name[:2] or w[-2:] == name[-2:])
    ]
