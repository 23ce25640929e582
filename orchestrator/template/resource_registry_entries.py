"""The entries of a `resource_registry`: parsed, checked, and looked up by name
(docs/internals/hot-language.md §9.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.errors import Diagnostic
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.schema.safe_regex import glob

HOOKS: Final = ("pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete")
RESTRICTED_ACTIONS: Final = ("update", "replace")
READY_TIMEOUT: Final = "ready_timeout"
MAX_READY_TIMEOUT_SECONDS: Final = 30 * 86_400
RESOURCES: Final = "resources"
TEMPLATE_ENDINGS: Final = (".yaml", ".template")

_WILD: Final = re.compile(r"[*?\[]")
_NO_KEYWORDS: Final[frozenset[str]] = frozenset()


def is_template(name: str) -> bool:
    """Return whether a type's name is that of a template."""
    return name.endswith(TEMPLATE_ENDINGS)


@dataclass(frozen=True, slots=True)
class Entry:
    """An applicable mapping with its target for the requested type."""

    leads_to: str
    user: bool
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """Sets of keywords by resource name; a name may be a shell pattern."""

    exact: Mapping[str, frozenset[str]]
    wild: tuple[tuple[re.Pattern[str], frozenset[str]], ...]

    def matching(self, name: str) -> frozenset[str]:
        keywords = self.exact.get(name, _NO_KEYWORDS)
        for pattern, entries in self.wild:
            if pattern.match(name):
                keywords |= entries
        return keywords


@dataclass(frozen=True, slots=True)
class Level:
    """A parsed `resource_registry`."""

    user: bool
    body: JsonMapping
    exact: Mapping[str, str]
    wild: Mapping[str, str]  # prefix -> target, with an asterisk if it receives the rest of the name
    lengths: tuple[int, ...]  # of the prefixes, ascending
    resources: Mapping[str, JsonMapping]
    hooks: Named
    restricted: Named
    ready_timeouts: Named
    removed: frozenset[str]  # names, some with an asterisk

    def candidates(self, resource_name: str, type_name: str) -> Iterator[Entry]:
        """Yield the entries for a type in order of precedence."""
        entry = self.resources.get(resource_name)
        if entry is not None and isinstance(to := entry.get(type_name), str) and to:
            yield Entry(to, self.user, (RESOURCES, resource_name, type_name))
        if to := self.exact.get(type_name):
            yield Entry(to, self.user, (type_name,))
        matching = (
            sorted(f"{prefix}*" for length in self.lengths if (prefix := type_name[:length]) in self.wild)
            if self.wild
            else ()
        )
        for name in matching:
            to = self.wild[name[:-1]]
            if to.endswith("*"):
                to = to[:-1] + type_name[len(name) - 1 :]
            elif to == type_name:
                continue  # a wildcard to a fixed name does not match that name itself
            yield Entry(to, self.user, (name,))

    def hides(self, type_name: str) -> bool:
        """Return whether the installed type of that name is not to be had: mapped away, or removed by a null.

        Only the operator can do that; a user's entry that leads nowhere is passed over.
        """
        return not self.user and (
            type_name in self.exact
            or type_name in self.removed
            or any(name.endswith("*") and type_name.startswith(name[:-1]) for name in self.removed)
        )


class Reader:
    """Parses a `resource_registry` section and collects its faults."""

    def __init__(self, *, user: bool) -> None:
        self.user = user
        self.faults: list[Diagnostic] = []

    def read(self, body: JsonMapping) -> Level:
        remaining = self._without_removed(body, ("resource_registry",))
        removed = frozenset(name for name, to in body.items() if to is None and name != RESOURCES)
        texts = {name: to for name, to in remaining.items() if isinstance(to, str)}
        wild = {
            name[:-1]: to for name, to in texts.items() if name.endswith("*") and to and not is_template(to)
        }
        resources = {
            name: entry for name, entry in self._resources(remaining).items() if isinstance(entry, dict)
        }
        return Level(
            self.user,
            remaining,
            {name: to for name, to in texts.items() if name not in _SETS},
            wild,
            tuple(sorted({len(prefix) for prefix in wild})),
            resources,
            _named(resources, "hooks"),
            _named(resources, "restricted_actions"),
            _named(resources, READY_TIMEOUT),
            removed,
        )

    def _without_removed(self, body: JsonMapping, path: tuple[str, ...]) -> JsonObject:
        """Return a map after its null entries have removed earlier entries."""
        remaining: JsonObject = {}
        for name, value in body.items():
            at = (*path, name)
            if value is None:
                _remove(remaining, name)
            elif name in _SETS:
                if self._are_keywords(name, value, at):
                    remaining[name] = value
            elif name == READY_TIMEOUT and not isinstance(value, str | Mapping):
                if self._is_timeout(value, at):
                    remaining[name] = value
            elif isinstance(value, Mapping):
                if (inner := self._without_removed(value, at)) or at == ("resource_registry", RESOURCES):
                    remaining[name] = inner
            elif isinstance(value, str):
                remaining[name] = (
                    name if is_template(name) else value
                )  # a template is always mapped to itself
            else:
                self._fault(
                    "wrong-type",
                    f'The resource_registry entry "{name}" must be the name of a type or of a template, '
                    f"a map or null; got {type(value).__name__}",
                    at,
                )
        return remaining

    def _resources(self, remaining: JsonMapping) -> JsonMapping:
        resources = remaining.get(RESOURCES, {})
        if not isinstance(resources, dict):
            message = 'The resource_registry entry "resources" must be a map of resource names'
            self._fault("wrong-type", message, ("resource_registry", RESOURCES))
            return {}
        for name, entry in resources.items():
            if not isinstance(entry, dict) and name not in _SETS:
                message = (
                    f'The resource_registry entry for the resource "{name}" '
                    "must be a map of types, hooks and restricted_actions"
                )
                self._fault("wrong-type", message, ("resource_registry", RESOURCES, name))
        return resources

    def _are_keywords(self, name: str, value: object, at: tuple[str, ...]) -> bool:
        code, accepted, said, heat_type = _SETS[name]
        keywords = [value] if isinstance(value, str) else value
        if isinstance(keywords, list) and all(isinstance(w, str) and w in accepted for w in keywords):
            return True
        self._fault(code, said.format(value, accepted), at, heat_type)
        return False

    def _is_timeout(self, value: object, at: tuple[str, ...]) -> bool:
        of_a_resource = at[:2] == ("resource_registry", RESOURCES) and len(at) > len(
            ("resource_registry", RESOURCES, "name")
        )
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if of_a_resource and is_number and 0 < float(str(value)) <= MAX_READY_TIMEOUT_SECONDS:
            return True
        message = (
            f'The resource_registry entry "{READY_TIMEOUT}" must be a number of seconds above 0, at most '
            f"{MAX_READY_TIMEOUT_SECONDS}, in the entry of a resource; got {value!r}"
        )
        self._fault("invalid-ready-timeout", message, at)
        return False

    def _fault(self, code: str, message: str, at: tuple[str, ...], heat_type: str = "HTTPBadRequest") -> None:
        self.faults.append(Diagnostic(code, message, ".".join(at), heat_type=heat_type))


_SETS: Final[Mapping[str, tuple[str, tuple[str, ...], str, str]]] = {
    "hooks": (
        "invalid-hook",
        HOOKS,
        'Invalid hook type "{}" for resource breakpoint, acceptable hook types are: {}',
        "InvalidBreakPointHook",
    ),
    "restricted_actions": (
        "invalid-restricted-action",
        RESTRICTED_ACTIONS,
        'Invalid restricted_action type "{}" for resource, acceptable restricted_action types are: {}',
        "InvalidRestrictedAction",
    ),
}


def _remove(remaining: JsonObject, name: str) -> None:
    if name.endswith("*"):
        for key in [k for k, v in remaining.items() if isinstance(v, str) and k.startswith(name[:-1])]:
            if key not in _SETS:
                del remaining[key]
    else:
        remaining.pop(name, None)


def _named(resources: Mapping[str, JsonMapping], key: str) -> Named:
    exact: dict[str, frozenset[str]] = {}
    wild = []
    for name, entry in resources.items():
        values = entry.get(key)
        if not values:
            continue
        meant = frozenset(values if isinstance(values, list) else [str(values)])
        if _WILD.search(name):
            wild.append((glob(name), meant))
        else:
            exact[name] = meant
    return Named(exact, tuple(wild))
