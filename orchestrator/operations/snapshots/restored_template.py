"""The template that a restore applies: copied resources are created from their copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.snapshots import CopyRow
from orchestrator.template.template import Template

CHILD: Final = "snapshot"  # data of a nested resource's copy: the id of the child stack's snapshot


def with_restored_resources(
    document: JsonMapping,
    template: Template,
    kinds: TypeResolver,
    copies: Iterable[CopyRow],
    types: Mapping[str, ResourceType],
    cipher: Cipher,
) -> JsonObject | None:
    """Return the template's document with copied resources created from their copies; None if it does not
    change.
    """
    restored: JsonObject = {}
    for copy in copies:
        kept = cipher.open(copy.kept) if copy.kept else {}
        resource_type = types.get(copy.runs_as or copy.type)
        definition = template.resources.get(copy.name)
        if (
            not kept
            or resource_type is None
            or definition is None
            or kinds.resolved_name(definition) != resource_type.name
        ):
            continue
        written = definition.body.get("properties") or {}
        properties = resource_type.restored(written, kept)
        if properties != written:
            restored[copy.name] = properties
    if not restored:
        return None
    keywords = template.form.keywords
    resources = dict(document[keywords.resources])
    for name, properties in restored.items():
        resources[name] = {**resources[name], keywords.properties: properties}
    return {**document, keywords.resources: resources}
