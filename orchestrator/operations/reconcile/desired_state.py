"""What a resource is wanted to be now: its definition, evaluated with what its requirements hand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from orchestrator.engine.validation.property_resolution import resolve_properties
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import proxy
from orchestrator.template.definition import NOTHING, StackDefinition


class DesiredResource(NamedTuple):
    """What a definition comes to."""

    properties: Mapping[str, Any]
    metadata: Any
    secret: bool
    external_id: str | None


class PropertyResolution(ResourceOperation):
    """Dealings with a resource that has a definition."""

    wanted: DesiredResource | None = None  # once it was evaluated

    def _resolve(self) -> str | None:
        """Bring properties, metadata and requirements to what they are now; return the `external_id`."""
        definition, known = self.visit.definition, self.known
        assert definition is not None
        wanted = self.wanted = self.wanted or self._evaluate()
        inputs = sorted(self.visit.inputs)  # by id
        known.properties, known.definition_id = wanted.properties, definition.id
        if known.given_metadata is None or (wanted.metadata or {}) != known.given_metadata:
            known.metadata, known.given_metadata = wanted.metadata, None  # else what signals made of it stays
        known.secret = wanted.secret
        known.requires = tuple([data.id for data in inputs])
        known.input_digests = tuple([data.value_digest or "" for data in inputs])
        return wanted.external_id

    def _evaluate(self) -> DesiredResource:
        """Evaluate the definition with what the requirements hand on now."""
        definition, name = self.visit.definition, self.resource.name
        assert definition is not None
        body, view = definition.body, self._view()
        properties = resolve_properties(body, view, self.kind, name)
        metadata = body.get("metadata")
        metadata = view.resolve(metadata, f"resources.{name}.metadata") if metadata else metadata
        secret, external = view.used_secret, body.get("external_id")
        if external is not None:
            external = view.resolve(external, f"resources.{name}.external_id")
        return DesiredResource(properties, metadata, secret, None if external is None else str(external))

    def _view(self) -> StackDefinition:
        """Return what the functions in the definition see."""
        definition = self.visit.definition
        assert definition is not None
        body, used = definition.body, definition.dep_attrs
        inputs = sorted(self.visit.inputs)  # by id
        return StackDefinition(
            body["version"],
            self.values,
            {data.name: proxy(data, self.cipher, used.get(data.name, ())) for data in inputs},
            self.files.reader(body.get("files", NOTHING)),
            mappings=body.get("mappings", NOTHING),
        )
