"""Look through an expression without evaluating it: what it refers to, and what can never work in it.

This walk visits every value of every template, so it is written as one loop; places are kept as links to the
parent and only spelled out for a fault.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from orchestrator.template import versions
from orchestrator.template.diagnostics import Path, path_text
from orchestrator.template.functions.registry import (
    Function,
    References,
    UnknownParameter,
    UnknownReference,
    table,
)

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


class Everything:
    """Contains every name."""

    def __contains__(self, _: object) -> bool:
        """Yes."""
        return True


class Scanner:
    """Scans the expressions of one template.

    `parameters` and `resources` are the names that exist. Faults gather in `faults`.
    """

    def __init__(
        self, version: str, parameters: Container[str] | None = None, resources: Container[str] | None = None
    ) -> None:
        """Without names to compare with, every name is taken to exist."""
        self._version = version
        self._table = table(version)
        self._parameters: Container[str] = Everything() if parameters is None else parameters
        self._resources: Container[str] = Everything() if resources is None else resources
        self.faults: list[Fault] = []

    def scan(self, value: Any, found: References, path: Path = (), place: str = "") -> None:
        """Add what `value` refers to to `found`.

        `path` is where the value is in the document, `place` what Heat calls that in its messages.
        """
        functions = self._table
        todo: list[tuple[Any, Link]] = [(value, None)]
        while todo:
            value, link = todo.pop()
            if value.__class__ is dict:
                if len(value) == 1:
                    name, args = next(iter(value.items()))
                    known = functions.get(name)
                    if known is not None:
                        link = (link, name)
                        self._call(known, args, found, link, (path, place))
                        if args.__class__ is dict or args.__class__ is list:
                            todo.append((args, link))
                        continue
                    hint = mistyped(name, self._version)
                    if hint:
                        self._fault(f'"{name}" is plain data here, not a function.', (link, name), path, hint)
                for key, item in value.items():
                    if item.__class__ is dict or item.__class__ is list:
                        todo.append((item, (link, key)))
            elif value.__class__ is list:
                for index, item in enumerate(value):
                    if item.__class__ is dict or item.__class__ is list:
                        todo.append((item, (link, index)))

    def _fault(self, message: str, link: Link, path: Path, hint: str) -> None:
        self.faults.append(Fault("mistyped-function", message, path + spell(link), hint, warning=True))

    def _call(self, known: Function, args: Any, found: References, link: Link, at: tuple[Path, str]) -> None:
        path, place = at
        if known.state != "ready":
            self.faults.append(_refusal(known, path + spell(link)))
            return
        used = References()
        try:
            known.check(args, used)
        except (ValueError, TypeError) as error:
            where = path + spell(link)
            self.faults.append(Fault("function-arguments", f"{path_text(where)}: {error}", where))
            return
        if used.requires:
            for name in used.requires - found.requires:
                if name not in self._resources:
                    wrong = UnknownReference(name)
                    message = wrong.text(path_text(spell(link), place))
                    where = path + spell(link)
                    self.faults.append(
                        Fault(wrong.code, message, where, "", wrong.heat_type, word=name, near="resources")
                    )
                else:
                    found.requires.add(name)
            for name, attributes in used.attributes.items():
                found.attributes.setdefault(name, set()).update(attributes)
        elif used.parameters:
            for name in used.parameters - found.parameters:
                if name != "*" and name not in self._parameters:
                    missing = UnknownParameter(name)
                    where = path + spell(link)
                    self.faults.append(
                        Fault(
                            missing.code,
                            missing.text(""),
                            where,
                            "",
                            missing.heat_type,
                            word=name,
                            near="parameters",
                        )
                    )
                else:
                    found.parameters.add(name)


def spell(link: Link) -> Path:
    """Return the path that a link stands for."""
    keys: list[str | int] = []
    while link is not None:
        link, key = link
        keys.append(key)
    return tuple(reversed(keys))


def _refusal(known: Function, path: Path) -> Fault:
    if known.state == "removed":
        return Fault(
            "function-removed",
            f"{path_text(path)}: The function {known.name} is not supported in this version of HOT.",
            path,
        )
    return Fault(
        "function-not-supported-yet",
        f"{path_text(path)}: The function {known.name} is not supported yet.",
        path,
    )


@lru_cache(maxsize=4096)
def mistyped(name: Any, version: str) -> str:
    """Return a hint when the single key of a map looks like a function that `version` does not have."""
    if not isinstance(name, str) or not 5 <= len(name) <= 24:
        return ""
    have = versions.functions_of(version)
    if name in versions.EVERY_FUNCTION:
        return f"the function {name} came with version {versions.since(name)}"
    alike = _same_ends(name, have)
    found = get_close_matches(name, alike, n=1, cutoff=0.82) if alike else []
    return f'did you mean "{found[0]}"?' if found else ""


def _same_ends(name: str, words: Iterable[str]) -> list[str]:
    # A cheap look first: one typo leaves the length nearly as it was, and one of the ends.
    return [
        w
        for w in words
        if len(w) > 4 and abs(len(w) - len(name)) <= 2 and (w[:2] == name[:2] or w[-2:] == name[-2:])
    ]
