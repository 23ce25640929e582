"""A template's resources as a plan stores them: each with everything that its checks need."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping

import orjson

from orchestrator.engine.plan_changes import DesiredRow
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.planning.attribute_uses import used_attributes
from orchestrator.operations.planning.early_edges import early_requirements
from orchestrator.operations.planning.live_uses import used_live_attributes
from orchestrator.operations.resource_context.state import DENIED_TYPE, USED_LIVE
from orchestrator.resources.template_type import TemplateType
from orchestrator.store.planning.bulk_writer import DefinitionRow
from orchestrator.template.definition import NO_ATTRIBUTES, ResourceDefinition, StackDefinition
from orchestrator.template.functions import ALL
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

EARLY_RELEASE = True  # start resources before their requirements are ready; a benchmark compares both


class PlannedDefinitions:
    """A template's resources as desired rows; a stored body is built when it is written."""

    def __init__(
        self,
        template: Template | None,
        values: ParameterValues,
        resolver: TypeResolver,
        hashes: Mapping[str, str],
        *,
        nested: bool = False,
    ) -> None:
        """`hashes` has the hashes of the files by name; a template of None has no resources. The outputs of a
        `nested` stack are attributes of its resource.
        """
        self.template, self.values, self.hashes, self.resolver = template, values, hashes, resolver
        self.definitions = template.resources if template is not None else {}
        self._used_attributes = {} if template is None else used_attributes(template, resolver, values)
        self._used_live = {} if template is None else used_live_attributes(template, resolver, nested=nested)
        self._early = early_requirements(template, resolver) if template and EARLY_RELEASE else {}
        self._nested_digests: dict[int, str] = {}  # by id of the type
        self._denied = _denied_types(self.definitions, resolver)
        self.desired = {
            name: self._desired(definition, resolver.resolved_name(definition))
            for name, definition in self.definitions.items()
        }
        self._types = {
            name: definition.type
            for name, definition in self.definitions.items()
            if definition.type != self.desired[name].resource_type
        }

    @property
    def nested(self) -> Collection[str]:
        """The names of the nested stacks."""
        return self._used_attributes.keys()

    def types_of(self, name: str) -> tuple[str, str | None]:
        """Return a resource's type as written, and the type that runs it, None for the same type."""
        runs_as = self.desired[name].resource_type
        written = self._types.get(name) or runs_as
        return written, None if runs_as == written else runs_as

    def keep_permitted(self, digests: Mapping[str, bytes]) -> None:
        """Keep definitions that are in force, by the digests given, and were permitted to their author. Only
        other definitions are refused.
        """
        for name in [name for name in self._denied if name in digests]:
            denied = self._denied.pop(name)
            permitted = self._desired(self.definitions[name], self.desired[name].resource_type)
            if digests[name] == permitted.digest:
                self.desired[name] = permitted
            else:
                self._denied[name] = denied

    def discard(self, names: Iterable[str]) -> None:
        """Drop definitions that will not be written: in a large stack they are most of a plan's memory."""
        if isinstance(self.definitions, dict):
            for name in names:
                del self.definitions[name]

    def definition_row(self, name: str, id_: int) -> DefinitionRow:
        """Return the row of a definition."""
        definition, desired, template = self.definitions[name], self.desired[name], self.template
        assert template is not None
        files, mappings = self._used_inputs(definition)
        body = _stored(definition, template.version, self.values, files, mappings, desired.resource_type)
        if name in self._used_attributes:
            body |= self._nested(definition)
        if name in self._used_live:
            body[USED_LIVE] = self._used_live[name]
        if name in self._denied:
            body[DENIED_TYPE] = self._denied[name]
        attributes = {required: sorted(names) for required, names in definition.dep_attrs.items()}
        return DefinitionRow(id_, name, desired.digest, body, sorted(definition.requires), attributes)

    def _desired(self, definition: ResourceDefinition, runs_as: str) -> DesiredRow:
        """Return a resource's desired row; the digest covers the files, mappings and type that it uses."""
        inputs: tuple[object, ...] = self._used_inputs(definition)
        if definition.name in self._used_attributes:
            inputs = (*inputs, self._nested(definition))
        if runs_as != definition.type:
            inputs = (*inputs, runs_as)
        if definition.name in self._used_live:  # a newly used attribute is read by an update
            inputs = (*inputs, {USED_LIVE: self._used_live[definition.name]})
        if definition.name in self._denied:
            inputs = (*inputs, {DENIED_TYPE: self._denied[definition.name]})
        digest = definition.digest(self.values, inputs if any(inputs) else None)
        early = self._early.get(definition.name)
        if early:
            return DesiredRow(digest, runs_as, definition.requires, early)
        return DesiredRow(digest, runs_as, definition.requires)

    def _nested(self, definition: ResourceDefinition) -> JsonObject:
        """Return the extra fields of a nested stack: a digest of its files and environment, and the
        attributes that the parent's template uses.
        """
        resource_type = self.resolver.of(definition)
        digest = self._nested_digests.get(id(resource_type))
        if digest is None:
            source = resource_type if isinstance(resource_type, TemplateType) else self.resolver
            sections = source.environment.to_json()
            inputs = [
                _chosen(self.resolver.files_of(resource_type), self.hashes),
                sections["resource_registry"],
                sections["parameter_defaults"],
            ]
            text = orjson.dumps(inputs, option=orjson.OPT_SORT_KEYS)
            digest = self._nested_digests[id(resource_type)] = hashlib.sha256(text).hexdigest()
        return {"nested": digest, **self._used_attributes[definition.name].stored()}

    def _used_inputs(self, definition: ResourceDefinition) -> tuple[JsonMapping, JsonMapping]:
        """Return the file hashes and the mappings that a definition uses."""
        if not definition.files and not definition.mappings:
            return NO_ATTRIBUTES, NO_ATTRIBUTES
        assert self.template is not None
        return _chosen(definition.files, self.hashes), _chosen(definition.mappings, self.template.mappings)


def _denied_types(definitions: Mapping[str, ResourceDefinition], resolver: TypeResolver) -> dict[str, str]:
    """Return the types that the author of the revision may not use, by the names of the resources."""
    if not resolver.type_environment.denied:
        return {}
    found = ((name, resolver.denied_type(definition)) for name, definition in definitions.items())
    return {name: type_name for name, type_name in found if type_name is not None}


def _chosen(names: Collection[str], available: JsonMapping) -> JsonMapping:
    """Return the files or mappings with these names; ALL among the names means all of them."""
    if not names:
        return NO_ATTRIBUTES
    return available if ALL in names else {name: available[name] for name in names if name in available}


def _stored(
    definition: ResourceDefinition,
    version: str,
    values: ParameterValues,
    files: JsonMapping,
    mappings: JsonMapping,
    runs_as: str,
) -> JsonObject:
    """Return a definition's body as a check needs it: with the version of the language, the hashes of the
    files and the mappings that it uses, and the resolved deletion policy.

    A resource is deleted by the policy of the definition it was built from, without reading a template.
    """
    body = {**definition.body, "version": version}
    if runs_as != definition.type:
        body["runs_as"] = runs_as
    if files:
        body["files"] = files
    if mappings:
        body["mappings"] = mappings
    if isinstance(body.get("deletion_policy"), dict):
        view = StackDefinition(version, values, {}, mappings=mappings)
        body["deletion_policy"] = view.resolve(
            body["deletion_policy"], f"resources.{definition.name}.deletion_policy"
        )
    return body
