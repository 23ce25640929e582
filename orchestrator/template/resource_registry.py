"""Mappings of resource types, per resource (docs/internals/hot-language.md §9.4-§9.7).

A registry has two levels: the user's environment, and below it the operator's entries. It handles names only;
`known` decides whether a type exists, so that mappings to unknown types are skipped.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.resource_registry_entries import RESOURCES, Entry, Level, Reader, is_template

MAX_CHAIN: Final = 100  # maximum mappings followed for a type; usual chains have two or three
# maximum types on the way without a result; wildcards could generate new ones without bound
MAX_DEAD_ENDS: Final = 100
MAX_NAME_LENGTH: Final = 1000  # characters, of a type's name that wildcards have lengthened
MAX_SHOWN: Final = 200  # characters of a name in a message
# the type name of members in groups of instances, mapped to any type
SCALED: Final = "OS::Heat::ScaledResource"
NO_ENTRIES: Final[JsonMapping] = {}


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a mapping: a type, or a template by its file name or URL."""

    kind: Literal["type", "template"]
    name: str
    user: bool  # the caller's environment or template named it, not the operator's
    path: tuple[str, ...] = ()  # the matching entry, empty if none

    @property
    def schemes(self) -> tuple[str, ...]:
        """The URL schemes for fetching a template that is not among the files (§10)."""
        return ("http", "https") if self.user else ("http", "https", "file")


class ResourceRegistry:
    """The mappings, hooks and restricted actions of a stack. Immutable."""

    __slots__ = ("_is_known", "_levels", "_particular", "_targets")

    def __init__(self, user: Level, globals_: Level, is_known: Callable[[str], bool]) -> None:
        """Use `build`."""
        self._levels = (user, globals_)
        self._is_known = is_known
        self._particular = user.resources.keys() | globals_.resources.keys()
        self._targets: dict[str, Target | None] = {}  # by type, for resources without entries

    @classmethod
    def build(
        cls,
        user: JsonMapping,
        globals: JsonMapping = NO_ENTRIES,
        is_known: Callable[[str], bool] | None = None,
    ) -> ResourceRegistry:
        """Return the registry of a `resource_registry` section over the operator's registry.

        `is_known` returns whether a type is installed; without it every name counts as a type.

        Raises:
            InvalidTemplate: lists every fault; the paths are those of the environment.
        """
        levels = (Reader(user=True), Reader(user=False))
        read = [reader.read(body) for reader, body in zip(levels, (user, globals), strict=True)]
        if faults := [fault for reader in levels for fault in reader.faults]:
            raise InvalidTemplate(faults)
        return cls(read[0], read[1], is_known or _anything)

    def target(self, resource_name: str, type_name: str) -> Target | None:
        """Return the target for a resource name and type; None if the operator removed the type.

        A type without a mapping is its own target, installed or not. Precedence: the user's entries over the
        operator's, then entries of the resource, then the exact name, then wildcards by name. Entries that
        lead to no installed type are skipped.

        Raises:
            InvalidTemplate: the mappings are cyclic, or too many lead to no type.
        """
        if resource_name in self._particular:
            return self._resolve(resource_name, type_name)
        try:
            return self._targets[type_name]
        except KeyError:
            target_ = self._targets[type_name] = self._resolve(resource_name, type_name)
            return target_

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
        """Return whether actions on a resource of this stack are restricted."""
        restricted = self._levels[0].restricted
        return bool(restricted.exact or restricted.wild)

    def restricted_actions(self, resource_name: str) -> frozenset[str]:
        """Return which of `update` and `replace` may not be done to a resource of the stack itself."""
        return self._levels[0].restricted.matching(resource_name)

    @property
    def has_ready_timeouts(self) -> bool:
        """Whether the time to become ready is limited for a resource of this stack."""
        limits = self._levels[0].ready_timeouts
        return bool(limits.exact or limits.wild)

    def ready_timeout(self, resource_name: str) -> float | None:
        """Return the time in seconds within which a resource of the stack itself must become ready; the
        shortest, if several entries match its name.
        """
        limits = self._levels[0].ready_timeouts.matching(resource_name)
        return min(map(float, limits), default=None)

    def child(self, resource_name: str, target: Target | None) -> ResourceRegistry:
        """Return the registry of the stack nested in that resource (§9.7).

        The entry that maps the resource to its template is removed, so that the template may use the original
        type; of `resources` only the entries below the resource's name remain, exact names over wildcards.
        """
        user = self._levels[0]
        body = _without(user.body, target.path) if target is not None else dict(user.body)
        resources = body.get(RESOURCES, {})
        narrowed: JsonObject = {}
        for name, entry in resources.items():
            if name != resource_name and fnmatch.fnmatchcase(resource_name, name):
                narrowed |= _maps(entry)
        narrowed |= _maps(resources.get(resource_name))
        return ResourceRegistry(
            Reader(user=True).read({**body, RESOURCES: narrowed}), self._levels[1], self._is_known
        )

    def without(self, path: tuple[str, ...]) -> ResourceRegistry:
        """Return the registry without an entry of the user, as if it had not been specified."""
        user = Reader(user=True).read(_without(self._levels[0].body, path))
        return ResourceRegistry(user, self._levels[1], self._is_known)

    def to_json(self) -> JsonObject:
        """Return the user's entries as shown by the API, without null entries."""
        return {RESOURCES: {}, **self._levels[0].body}

    def _resolve(self, resource_name: str, type_name: str) -> Target | None:
        if is_template(type_name):  # only a template is possible
            return Target("template", type_name, True, self._own_entry(resource_name, type_name))
        target_ = self._follow(resource_name, type_name, (), set())
        if target_ is None and not self._levels[1].hides(type_name):
            return Target("type", type_name, user=False)
        return target_

    def _follow(
        self, resource_name: str, type_name: str, chain: tuple[Entry, ...], dead: set[tuple[str, bool]]
    ) -> Target | None:
        """Return the target of a type, None if it leads to no type; `chain` is the path so far.

        The user's entries do not apply to targets of the operator's entries, except to the member type of
        groups, which no user selects. `dead` holds the types that lead to no target, with whether the user's
        entries apply.
        """
        last = chain[-1] if chain else None
        users = last is None or last.user or last.path == (SCALED,)
        if (type_name, users) in dead:
            return None
        for entry in self._candidates(resource_name, type_name, users):
            if is_template(entry.leads_to):
                return Target("template", entry.leads_to, entry.user, entry.path)
            is_cycle = any(e.leads_to == entry.leads_to and e.user == entry.user for e in chain)
            grown = len(entry.leads_to) > max(MAX_NAME_LENGTH, len(type_name))
            if is_cycle or grown or len(chain) == MAX_CHAIN:
                raise _circle([e.leads_to for e in (*chain, entry)])
            if len(dead) >= MAX_DEAD_ENDS:
                raise _refused("The resource_registry has too many mappings that lead to no type")
            target_ = self._follow(resource_name, entry.leads_to, (*chain, entry), dead)
            if target_ is not None:
                return target_
        if self._is_known(type_name) and not self._levels[1].hides(type_name):
            return (
                Target("type", type_name, last.user, last.path) if last else Target("type", type_name, False)
            )
        dead.add((type_name, users))
        return None

    def _candidates(self, resource_name: str, type_name: str, users: bool) -> Iterator[Entry]:
        for level in self._levels if users else self._levels[1:]:
            yield from level.candidates(resource_name, type_name)

    def _own_entry(self, resource_name: str, type_name: str) -> tuple[str, ...]:
        entry = self._levels[0].resources.get(resource_name)
        return (RESOURCES, resource_name, type_name) if entry and type_name in entry else (type_name,)


def _maps(entry: object) -> JsonObject:
    """Return the part of an entry about nested resources, without the part about the resource itself."""
    return {k: v for k, v in entry.items() if isinstance(v, dict)} if isinstance(entry, dict) else {}


def _without(body: JsonMapping, path: tuple[str, ...]) -> JsonObject:
    """Return a copy of nested maps without the entry that `path` leads to."""
    if not path:
        return dict(body)
    name, below = path[0], body.get(path[0])
    if len(path) == 1:
        return {k: v for k, v in body.items() if k != name or isinstance(v, dict)}
    return {**body, name: _without(below, path[1:])} if isinstance(below, dict) else dict(body)


def _circle(names: list[str]) -> InvalidTemplate:
    shown = names if len(names) <= 6 else [*names[:3], "…", *names[-2:]]
    shown = [name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}…" for name in shown]
    return _refused(f"The resource_registry has a cyclic mapping: {' -> '.join(shown)}")


def _refused(message: str) -> InvalidTemplate:
    return InvalidTemplate([Diagnostic("registry-circle", message, "resource_registry")])


def _anything(_name: str) -> bool:
    return True
