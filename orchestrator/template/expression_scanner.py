"""Look through an expression without evaluating it: what it refers to, and what can never work in it.

This walk visits every value of every template, so it is written as one loop; places are kept as links to the
parent and only spelled out for a fault.
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
    """Something wrong at `path`, before its line and column are looked up."""

    code: str
    message: str
    path: Path = ()
    hint: str = ""
    heat_type: str = "StackValidationFailed"
    warning: bool = False
    word: str = ""  # a name that does not exist, and the section in which to look for what was meant
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
    """The names a template declares: what its functions may refer to, and what to suggest."""

    parameters: Container[str]  # the pseudo ones among them
    resources: Container[str]  # without those whose condition does not hold
    mappings: Container[str] = ()


class Scanner:
    """Scans the expressions of one template. Faults gather in `faults`."""

    def __init__(self, form: Format, names: Names, conditions: Conditions) -> None:
        """`conditions` decide which branch of an `if` there is; the other is not looked at."""
        self._form = form
        self._functions = form.functions
        self._names = names
        self._conditions = conditions
        self._absent = False
        self.faults: list[Fault] = []

    def of_absent(self) -> Scanner:
        """Return a scanner, of the same faults, for what a condition leaves out.

        Its functions must be well formed all the same; what they refer to, and whether the version still has
        them, is nobody's concern.
        """
        made = Scanner(self._form, Names(ANY, ANY, ANY), self._conditions)
        made.faults, made._absent = self.faults, True
        return made

    def scan(self, value: Any, found: References, path: Path = (), place: str = "") -> None:
        """Add what `value` refers to to `found`.

        `path` is where the value is in the document, `place` what Heat calls that in its messages; without
        one the value orders nothing (an output's).
        """
        functions = self._functions
        todo: list[tuple[Any, Link]] = [(value, None)]
        while todo:
            value, link = todo.pop()
            if value.__class__ is dict:
                if len(value) == 1:
                    name, args = next(iter(value.items()))
                    known = functions.get(name)
                    if known is not None:
                        link = (link, name)
                        if known.macro:
                            todo += self._branch(known, args, found, link, (path, place))
                            continue
                        self._call(known, args, found, link, (path, place))
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
        self, known: Function, args: Any, found: References, link: Link, at: tuple[Path, str]
    ) -> list[tuple[Any, Link]]:
        """Return the branch of a macro that there is."""
        where = at[0] + spell(link)
        try:
            known.check(args, found)
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
        if chosen is None or chosen >= len(args):  # not decided yet, or the branch that is nothing
            return []
        return [(args[chosen], (link, chosen))]

    def _call(self, known: Function, args: Any, found: References, link: Link, at: tuple[Path, str]) -> None:
        path = at[0]
        if known.state == "removed":
            if self._absent:
                return
            where = path + spell(link)
            message = (
                f"{self._told(path, link)}: The template version is invalid: "
                f"The function {known.name} is not supported in this version of HOT."
            )
            self._fault("function-removed", message, where)
            return
        used = References()
        try:
            known.check(self._decided(args), used)
        except (ValueError, TypeError) as error:
            where = path + spell(link)
            self._fault("function-arguments", f"{path_text(where)}: {error}", where)
            return
        except FunctionError:
            return  # of the macro in it, which is looked at by itself
        if used.either:
            self._either(used, link, at)
        if used.requires:
            self._requires(used, found, link, at)
        if used.parameters:
            for name in used.parameters - found.parameters:
                if name == ALL or name in self._names.parameters:
                    found.parameters.add(name)
                else:
                    self._unresolved(UnknownParameter(name), UnknownParameter.code, name, link, at)
        if used.facades:
            found.parameters |= used.facades
        if used.files:
            found.files |= used.files
        if used.mappings:
            self._mappings(used, found, path + spell(link))

    def _decided(self, args: Any) -> Any:
        """Return arguments with the branch of an `if` in place of it."""
        items = args.values() if args.__class__ is dict else args if args.__class__ is list else ()
        for item in items:
            if item.__class__ is dict and len(item) == 1:
                known = self._functions.get(next(iter(item)))
                if known is not None and known.macro:
                    return self._conditions.expand(args)
        return args

    def _either(self, used: References, link: Link, at: tuple[Path, str]) -> None:
        """Tell which of two things a name is."""
        for name in used.either:
            if name in self._names.resources:
                used.requires.add(name)
            elif name in self._names.parameters:
                used.parameters.add(name)
            else:
                self._unresolved(UnknownReference(name), "unknown-name", name, link, at)

    def _requires(self, used: References, found: References, link: Link, at: tuple[Path, str]) -> None:
        for name in used.requires - found.requires:
            if name in self._names.resources:
                found.requires.add(name)
            else:
                self._unknown_resource(name, link, at)
        for name, attributes in used.attributes.items():
            found.attributes.setdefault(name, set()).update(attributes)

    def _unknown_resource(self, name: str, link: Link, at: tuple[Path, str]) -> None:
        path, place = at
        wrong, where = UnknownReference(name), path + spell(link)
        if not place:
            self._unordered(wrong, where, name, self._told(path, link))
            return
        called = CHOSEN.sub(r".\1", path_text(spell(link), place))
        if path[2] in (self._form.keywords.external_id, self._form.keywords.deletion_policy):
            called = ""
        self._unknown(wrong, wrong.text(called), where, name, "resources")

    def _unordered(self, wrong: UnknownReference, where: Path, name: str, told: str) -> None:
        """Tell of a reference to nothing in an output: there one to a resource itself is no fault yet."""
        message, plain = f"{told}: {wrong.text('')}", where[-1] == "get_resource"
        self.faults.append(Fault(wrong.code, message, where, warning=plain, word=name, near="resources"))

    def _unresolved(
        self, wrong: FunctionError, code: str, name: str, link: Link, at: tuple[Path, str]
    ) -> None:
        """Tell of a name that Heat meets only when it resolves the value, an output's when it is shown."""
        (path, place), where = at, at[0] + spell(link)
        message, heat_type, words = wrong.text(""), wrong.heat_type, self._form.keywords
        if len(path) > 2 and path[2] in (words.external_id, words.deletion_policy):
            code = MissingParameter.code  # these are evaluated whatever is asked for
        elif len(path) > 2 and path[2] == words.properties:
            message, heat_type = f"Property error: {path_text(where[:4])}: {message}", "StackValidationFailed"
        self.faults.append(
            Fault(code, message, where, "", heat_type, warning=not place, word=name, near="parameters")
        )

    def _told(self, path: Path, link: Link) -> str:
        """Return where a function is, as Heat says it of what it checks from the outermost function on."""
        return path_in_message(spell(link), self._form.functions, path_text(path))

    def _mappings(self, used: References, found: References, where: Path) -> None:
        for name in used.mappings:
            if name == ALL or name in self._names.mappings:
                found.mappings.add(name)
            else:
                message = f'{path_text(where)}: The template has no mapping "{name}"'
                self.faults.append(Fault("unknown-mapping", message, where, word=name, near="mappings"))

    def _unknown(self, error: FunctionError, message: str, where: Path, word: str, near: str) -> None:
        self.faults.append(Fault(error.code, message, where, "", error.heat_type, word=word, near=near))

    def _fault(self, code: str, message: str, where: Path) -> None:
        self.faults.append(Fault(code, message, where))


def spell(link: Link) -> Path:
    """Return the path that a link stands for."""
    keys: list[str | int] = []
    while link is not None:
        link, key = link
        keys.append(key)
    return tuple(reversed(keys))


@lru_cache(maxsize=4096)
def mistyped(name: Any, form: Format) -> str:
    """Return a hint when the single key of a map looks like a function that the format does not have."""
    if not isinstance(name, str) or not 5 <= len(name) <= 24:
        return ""
    if name in versions.EVERY_FUNCTION:
        if form.key != versions.HOT_KEY or name not in versions.functions_of(versions.LATEST):
            return f"the function {name} belongs to another format"
        return f"the function {name} came with version {versions.since(name)}"
    alike = _same_ends(name, form.callable)
    found = get_close_matches(name, alike, n=1, cutoff=0.82) if alike else []
    return f'did you mean "{found[0]}"?' if found else ""


def _same_ends(name: str, words: Iterable[str]) -> list[str]:
    # A cheap look first: one typo leaves the length nearly as it was, and one of the ends.
    return [
        w
        for w in words
        if len(w) > 4 and abs(len(w) - len(name)) <= 2 and (w[:2] == name[:2] or w[-2:] == name[-2:])
    ]
