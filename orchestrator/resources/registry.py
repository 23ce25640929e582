"""Which resource types there are: those registered as entry points, each loaded when first asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from orchestrator.errors import Misconfigured, NotFound
from orchestrator.resources.base import ResourceType

GROUP = "orchestrator.resource_types"


class Registry(Mapping[str, ResourceType]):
    """The types by name, one instance of each.

    Asking for an unknown name raises NotFound (not a KeyError, so that it can reach the caller as it
    is); `get` and `in` work as in any mapping.
    """

    def __init__(
        self, points: Mapping[str, EntryPoint], kinds: Mapping[str, ResourceType] | None = None
    ) -> None:
        """Take entry points to load later, and types that are here already."""
        self._points = dict(points)
        self._kinds = dict(kinds or {})
        self._lock = threading.Lock()

    @classmethod
    def of(cls, *kinds: type[ResourceType]) -> Registry:
        """Return a registry of just these types."""
        return cls({}, {kind.name: kind() for kind in kinds})

    def __getitem__(self, name: str) -> ResourceType:
        """Return the type.

        Raises:
            NotFound: there is none of that name.
            Misconfigured: it is registered and cannot be loaded.
        """
        kind = self._kinds.get(name)
        return kind if kind is not None else self._load(name)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a type, without loading it."""
        return name in self._kinds or name in self._points

    def get(self, name: str, default: ResourceType | None = None) -> ResourceType | None:  # type: ignore[override]
        """Return the type, `default` when there is none."""
        return self[name] if name in self else default  # noqa: SIM401 - this is `get`

    def __iter__(self) -> Iterator[str]:
        """Go over the names, sorted."""
        return iter(sorted(self._kinds.keys() | self._points.keys()))

    def __len__(self) -> int:
        """Return how many types there are."""
        return len(self._kinds.keys() | self._points.keys())

    def _load(self, name: str) -> ResourceType:
        point = self._points.get(name)
        if point is None:
            raise NotFound("Resource Type", name)
        with self._lock:  # two threads must not end up with two instances
            if name not in self._kinds:
                self._kinds[name] = _instance(name, point)
            return self._kinds[name]


def _instance(name: str, point: EntryPoint) -> ResourceType:
    try:
        kind = point.load()
    except Exception as error:
        raise Misconfigured(f"resource type {name} cannot be loaded from {point.value}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, ResourceType)):
        raise Misconfigured(f"resource type {name}: {point.value} is not a ResourceType")
    if kind.name != name:
        raise Misconfigured(f"resource type {name}: {point.value} calls itself {kind.name}")
    return kind()


@cache
def load_registry() -> Registry:
    """Return the installed types; entry points are read once a process."""
    return Registry({point.name: point for point in entry_points(group=GROUP)})
