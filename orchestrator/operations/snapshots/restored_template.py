"""A template with what was copied made from its copies: what restoring a snapshot brings a stack to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.snapshots import CopyRow
from orchestrator.template.template import Template

CHILD: Final = "snapshot"  # what is kept of a nested resource: the id of the snapshot of its stack


def with_restored_resources(
    document: Mapping[str, Any],
    template: Template,
    kinds: TypeResolver,
    copies: Iterable[CopyRow],
    types: Mapping[str, ResourceType],
    cipher: Cipher,
) -> dict[str, Any] | None:
    """Return a template's document with what was copied made from its copies; None when nothing differs."""
    restored: dict[str, Any] = {}
    for copy in copies:
        kept = cipher.open(copy.kept) if copy.kept else {}
        kind = types.get(copy.runs_as or copy.type)
        definition = template.resources.get(copy.name)
        if not kept or kind is None or definition is None or kinds.resolved_name(definition) != kind.name:
            continue
        written = definition.body.get("properties") or {}
        properties = kind.restored(written, kept)
        if properties != written:
            restored[copy.name] = properties
    if not restored:
        return None
    words = template.form.keywords
    resources = dict(document[words.resources])
    for name, properties in restored.items():
        resources[name] = {**resources[name], words.properties: properties}
    return {**document, words.resources: resources}
