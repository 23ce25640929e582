"""The installed resource types: entry points, loaded on first use."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from orchestrator.errors import Misconfigured, NotFound
from orchestrator.resources.base import ResourceType

GROUP = "orchestrator.resource_types"


class Registry(Mapping[str, ResourceType]):
    """The types by name, one instance per type.

    An unknown name raises NotFound (not KeyError, so that the error can be reported to the client unchanged);
    `get` and `in` behave as in any mapping.
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
        return cls({}, {resource_type.name: resource_type() for resource_type in kinds})

    def __getitem__(self, name: str) -> ResourceType:
        """Return the type.

        Raises:
            NotFound: unknown name.
            Misconfigured: the type is registered but cannot be loaded.
        """
        resource_type = self._kinds.get(name)
        return resource_type if resource_type is not None else self._load(name)

    def __contains__(self, name: object) -> bool:
        """Return whether the type is registered, without loading it."""
        return name in self._kinds or name in self._points

    def get(self, name: str, default: ResourceType | None = None) -> ResourceType | None:  # type: ignore[override]
        """Return the type, `default` if it is not registered."""
        loaded = self._kinds.get(name)
        if loaded is not None:
            return loaded
        return self[name] if name in self else default  # noqa: SIM401 - this is `get`

    def __iter__(self) -> Iterator[str]:
        """Iterate over the sorted names."""
        return iter(sorted(self._kinds.keys() | self._points.keys()))

    def __len__(self) -> int:
        """Return the number of types."""
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
        resource_type = point.load()
    except Exception as error:
        raise Misconfigured(f"resource type {name} cannot be loaded from {point.value}: {error}") from error
    if not (isinstance(resource_type, type) and issubclass(resource_type, ResourceType)):
        raise Misconfigured(f"resource type {name}: {point.value} is not a ResourceType")
    if resource_type.name != name:
        raise Misconfigured(f"resource type {name}: {point.value} calls itself {resource_type.name}")
    return resource_type()


@cache
def load_registry() -> Registry:
    """Return the installed types; entry points are read once a process."""
    return Registry({point.name: point for point in entry_points(group=GROUP)})
