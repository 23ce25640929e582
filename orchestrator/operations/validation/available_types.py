"""The resource types that the installation offers: installed types, and templates of the operator.

The operator's environment applies as for a stack without its own environment: a name mapped to a
template is that template, a name mapped to nothing is removed, an alias can be looked up but is not listed
(docs/internals/rest-api.md §10.2).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from orchestrator.config import Settings
from orchestrator.engine.validation.type_resolution import (
    TypeEnvironment,
    TypeResolver,
    UnknownType,
    is_offered,
)
from orchestrator.errors import Forbidden, Misconfigured, ResourceTypeUnavailable
from orchestrator.json_types import JsonObject
from orchestrator.logs import logger
from orchestrator.operations.fetching import PausingFetcher
from orchestrator.resources.base import ResourceType
from orchestrator.resources.endpoint_types import Offers, no_services
from orchestrator.resources.template_type import TemplateType
from orchestrator.resources.unavailable_types import unavailable
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.global_environment import global_environment
from orchestrator.template.parse import Limits
from orchestrator.template.resource_registry_entries import RESOURCES

log = logger()

ANY_RESOURCE: Final = ""  # a resource name without an entry in the registry
_templates: dict[tuple[object, str], TemplateType] = {}  # read once per process, like the environment
_lock = threading.Lock()


class AvailableTypes(Mapping[str, ResourceType]):
    """The types by name. Iteration yields the listed types; a lookup also finds aliases."""

    def __init__(
        self,
        types: Mapping[str, ResourceType],
        settings: Settings,
        enter: Callable[[str], None] = lambda _name: None,
        offers: Offers = no_services,
    ) -> None:
        """`enter` raises Forbidden for types that the caller may not use; `offers` returns whether the
        caller's cloud has a service.
        """
        self._types, self._settings, self._offers = types, settings, offers
        self._globals = global_environment(settings.environment_dir)
        type_environment = TypeEnvironment.of_stack(
            types,
            Environment(),
            {},
            Limits.of(settings),
            globals=self._globals,
            fetch=PausingFetcher(settings),
        )
        self._kinds = TypeResolver(type_environment)
        self._enter = enter

    def __getitem__(self, name: str) -> ResourceType:
        """Return a type.

        Raises:
            KeyError: there is no type of that name.
            Forbidden: the caller may not use it.
            ResourceTypeUnavailable: it is known, but not available.
            Misconfigured: the operator's template for it is missing or not valid.
        """
        target = self._kinds.registry.target(ANY_RESOURCE, name)
        if target is None:
            raise KeyError(name)
        for candidate in dict.fromkeys((name, target.name)):
            self._enter(candidate)
        if target.kind == "type":
            resource_type = self._types.get(target.name)
            if resource_type is None or not is_offered(resource_type, self._offers):
                refusal = unavailable(
                    target.name, "" if resource_type is None else resource_type.endpoint_type
                )
                if refusal is None:
                    raise KeyError(name)
                raise ResourceTypeUnavailable(name, refusal.service, refusal.reason)
            return resource_type
        if target.user:  # any name that ends like a template's
            raise KeyError(name)
        return self._template(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of types and of the operator's templates, sorted."""
        entries = {name for name, entry in self._globals.items() if isinstance(entry, str)} - {RESOURCES}
        for name in sorted({*self._types, *entries}):
            target = self._kinds.registry.target(ANY_RESOURCE, name) if "*" not in name else None
            if target is None or (target.kind == "type" and target.name != name):
                continue
            if self._is_usable(name):
                yield name

    def __len__(self) -> int:
        """Return the number of listed types."""
        return sum(1 for _ in self)

    def _is_usable(self, name: str) -> bool:
        try:
            return name in self
        except Misconfigured as error:
            log.warning("resource_type_skipped", type=name, error=str(error))
        except (ResourceTypeUnavailable, Forbidden):
            pass
        return False

    def _template(self, name: str) -> TemplateType:
        key = (self._settings.environment_dir, name)
        with _lock:
            cached = _templates.get(key)
        if cached is not None:
            return cached
        body: JsonObject = {"type": name}
        resource_type = self._kinds.of(
            ResourceDefinition(ANY_RESOURCE, name, body, frozenset(), {}, frozenset())
        )
        if isinstance(resource_type, UnknownType) or not isinstance(resource_type, TemplateType):
            why = (
                "; ".join(fault.message for fault in resource_type.faults)
                if isinstance(resource_type, UnknownType)
                else ""
            )
            raise Misconfigured(f"the operator's template for {name} cannot be used: {why}")
        with _lock:
            _templates[key] = resource_type
        return resource_type
