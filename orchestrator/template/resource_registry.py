"""What stands for which resource type, for which resource (docs/internals/hot-language.md §9.4-§9.7).

A registry has two levels: what the user's environment says, and beneath it what the operator's say. It knows
names only; whether a type exists is asked of `known`, so that a mapping to nowhere can be passed over.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.template.resource_registry_entries import RESOURCES, Entry, Level, Reader, is_template

LONGEST_CHAIN: Final = 100  # mappings followed for one type; an honest one follows two or three
MOST_DEAD_ENDS: Final = 100  # types met on the way that lead nowhere; wildcards could make ever new ones
LONGEST_NAME: Final = 1000  # characters, of a type's name that wildcards have lengthened
LONGEST_SHOWN: Final = 200  # characters of a name in a message
SCALED: Final = "OS::Heat::ScaledResource"  # what groups of instances call their members, whatever these are


@dataclass(frozen=True, slots=True)
class Target:
    """What a resource is made from: a type, or a template by the name of its file or its address."""

    kind: Literal["type", "template"]
    name: str
    user: bool  # the caller's environment or template named it, not the operator's
    path: tuple[str, ...] = ()  # the entry that named it, empty where none did

    @property
    def schemes(self) -> tuple[str, ...]:
        """The URL schemes a template that is not among the files may be fetched from (§10)."""
        return ("http", "https") if self.user else ("http", "https", "file")


class ResourceRegistry:
    """The mappings, hooks and restricted actions that hold for one stack. Immutable."""

    __slots__ = ("_found", "_known", "_levels", "_particular")

    def __init__(self, user: Level, globals_: Level, known: Callable[[str], bool]) -> None:
        """Use `build`."""
        self._levels = (user, globals_)
        self._known = known
        self._particular = user.resources.keys() | globals_.resources.keys()
        self._found: dict[str, Target | None] = {}  # by type, where the resource has no entries of its own

    @classmethod
    def build(
        cls,
        user: Mapping[str, Any],
        globals: Mapping[str, Any] = {},
        known: Callable[[str], bool] | None = None,
    ) -> ResourceRegistry:
        """Return the registry of a `resource_registry` section over the operator's.

        `known` says whether a type of that name is installed; without it every name counts as one.

        Raises:
            InvalidTemplate: with every fault; the paths are those of the environment.
        """
        levels = (Reader(user=True), Reader(user=False))
        read = [reader.read(body) for reader, body in zip(levels, (user, globals), strict=True)]
        if faults := [fault for reader in levels for fault in reader.faults]:
            raise InvalidTemplate(faults)
        return cls(read[0], read[1], known or _anything)

    def target(self, resource_name: str, type_name: str) -> Target | None:
        """Return what a resource of that name and type is made from; None when the operator removed its type.

        A type that nothing maps is its own target, installed or not. Among several entries the user's come
        before the operator's, then the resource's own, then the exact name, then the wildcards by name; one
        that leads to no installed type is passed over.

        Raises:
            InvalidTemplate: the mappings lead around in a circle, or too many ways to nothing.
        """
        if resource_name in self._particular:
            return self._resolve(resource_name, type_name)
        try:
            return self._found[type_name]
        except KeyError:
            found = self._found[type_name] = self._resolve(resource_name, type_name)
            return found

    @property
    def has_hooks(self) -> bool:
        """Whether a hook is set for any resource of the stack itself."""
        hooks = self._levels[0].hooks
        return bool(hooks.exact or hooks.wild)

    def hooks(self, resource_name: str) -> frozenset[str]:
        """Return the hooks to stop at for a resource of the stack itself; the operator cannot set any."""
        return self._levels[0].hooks.matching(resource_name)

    @property
    def has_restrictions(self) -> bool:
        """Whether something may not be done to a resource of the stack itself."""
        restricted = self._levels[0].restricted
        return bool(restricted.exact or restricted.wild)

    def restricted_actions(self, resource_name: str) -> frozenset[str]:
        """Return which of `update` and `replace` may not be done to a resource of the stack itself."""
        return self._levels[0].restricted.matching(resource_name)

    def child(self, resource_name: str, target: Target | None) -> ResourceRegistry:
        """Return the registry of the stack nested in that resource (§9.7).

        The entry that made it a template is gone, so that the template may use the type it stands for; of
        `resources` only what is below the resource's name is left, exact entries over wildcards.
        """
        user = self._levels[0]
        body = _without(user.body, target.path) if target is not None else dict(user.body)
        resources = body.get(RESOURCES, {})
        narrowed: dict[str, Any] = {}
        for name, entry in resources.items():
            if name != resource_name and fnmatch.fnmatchcase(resource_name, name):
                narrowed |= _maps(entry)
        narrowed |= _maps(resources.get(resource_name))
        return ResourceRegistry(
            Reader(user=True).read({**body, RESOURCES: narrowed}), self._levels[1], self._known
        )

    def without(self, path: tuple[str, ...]) -> ResourceRegistry:
        """Return the registry without one of the user's entries: what would be, had it not been written."""
        user = Reader(user=True).read(_without(self._levels[0].body, path))
        return ResourceRegistry(user, self._levels[1], self._known)

    def to_json(self) -> dict[str, Any]:
        """Return the user's entries as the API shows them: what is null is gone."""
        return {RESOURCES: {}, **self._levels[0].body}

    def _resolve(self, resource_name: str, type_name: str) -> Target | None:
        if is_template(type_name):  # nothing but a template can be meant
            return Target("template", type_name, True, self._own_entry(resource_name, type_name))
        found = self._follow(resource_name, type_name, (), set())
        if found is None and not self._levels[1].hides(type_name):
            return Target("type", type_name, user=False)
        return found

    def _follow(
        self, resource_name: str, type_name: str, chain: tuple[Entry, ...], dead: set[tuple[str, bool]]
    ) -> Target | None:
        """Return where a type leads, None for nowhere; `chain` is how it was come to.

        What the operator's entries lead to is the operator's affair: the user's do not apply to it, unless it
        is what members of a group are called, which is nobody's choice. `dead` are the types, and whether the
        user's entries apply, that are known to lead nowhere.
        """
        last = chain[-1] if chain else None
        users = last is None or last.user or last.path == (SCALED,)
        if (type_name, users) in dead:
            return None
        for entry in self._candidates(resource_name, type_name, users):
            if is_template(entry.leads_to):
                return Target("template", entry.leads_to, entry.user, entry.path)
            around = any(e.leads_to == entry.leads_to and e.user == entry.user for e in chain)
            grown = len(entry.leads_to) > max(LONGEST_NAME, len(type_name))
            if around or grown or len(chain) == LONGEST_CHAIN:
                raise _circle([e.leads_to for e in (*chain, entry)])
            if len(dead) >= MOST_DEAD_ENDS:
                raise _refused("The resource_registry has too many ways that lead to no type")
            found = self._follow(resource_name, entry.leads_to, (*chain, entry), dead)
            if found is not None:
                return found
        if self._known(type_name) and not self._levels[1].hides(type_name):
            return (
                Target("type", type_name, last.user, last.path) if last else Target("type", type_name, False)
            )
        dead.add((type_name, users))
        return None

    def _candidates(self, resource_name: str, type_name: str, users: bool) -> Iterator[Entry]:
        for level in self._levels if users else self._levels[1:]:
            yield from level.candidates(resource_name, type_name)

    def _own_entry(self, resource_name: str, type_name: str) -> tuple[str, ...]:
        own = self._levels[0].resources.get(resource_name)
        return (RESOURCES, resource_name, type_name) if own and type_name in own else (type_name,)


def _maps(entry: object) -> dict[str, Any]:
    """Return what an entry says about resources further down, without what it says about its own."""
    return {k: v for k, v in entry.items() if isinstance(v, dict)} if isinstance(entry, dict) else {}


def _without(body: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return a copy of nested maps without the entry that `path` leads to."""
    if not path:
        return dict(body)
    name, below = path[0], body.get(path[0])
    if len(path) == 1:
        return {k: v for k, v in body.items() if k != name or isinstance(v, dict)}
    return {**body, name: _without(below, path[1:])} if isinstance(below, dict) else dict(body)


def _circle(names: list[str]) -> InvalidTemplate:
    shown = names if len(names) <= 6 else [*names[:3], "…", *names[-2:]]
    shown = [name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…" for name in shown]
    return _refused(f"The resource_registry leads around in a circle: {' -> '.join(shown)}")


def _refused(message: str) -> InvalidTemplate:
    return InvalidTemplate([Diagnostic("registry-circle", message, "resource_registry")])


def _anything(_name: str) -> bool:
    return True
