"""A template's resources as a plan stores them: each with all that a check will need of it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson

from orchestrator.engine.plan_changes import DesiredRow
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.resources.template_type import TemplateType
from orchestrator.store.planning.bulk_writer import DefinitionRow
from orchestrator.template.definition import NOTHING, ResourceDefinition, StackDefinition
from orchestrator.template.functions import ALL
from orchestrator.template.group_template import MemberDefinitions
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template


class PlannedDefinitions:
    """The template's resources as they are to be stored; a snippet is made when it is written."""

    def __init__(
        self,
        template: Template | None,
        values: ParameterValues,
        kinds: TypeResolver,
        hashes: Mapping[str, str],
    ) -> None:
        self.template, self.values, self.hashes, self.kinds = template, values, hashes, kinds
        self.definitions = template.resources if template is not None else {}
        self._asked = _asked(template, kinds) if template is not None else {}
        self._inner: dict[int, str] = {}  # by kind
        self.wanted = {
            name: self._wanted(definition, kinds.resolved_name(definition))
            for name, definition in self.definitions.items()
        }
        self._types = {
            name: definition.type
            for name, definition in self.definitions.items()
            if definition.type != self.wanted[name].kind
        }

    @property
    def nested(self) -> Collection[str]:
        """The names of those that stand for stacks."""
        return self._asked.keys()

    def type_of(self, name: str) -> str:
        """Return a resource's type as written."""
        return self._types.get(name) or self.wanted[name].kind

    def types_of(self, name: str) -> tuple[str, str | None]:
        """Return a resource's type as written, and what it runs as where that is another."""
        written, runs_as = self.type_of(name), self.wanted[name].kind
        return written, None if runs_as == written else runs_as

    def discard(self, names: Iterable[str]) -> None:
        """Let go of snippets that will not be written: of a large stack they are most of a plan's memory."""
        if isinstance(self.definitions, dict):
            for name in names:
                del self.definitions[name]

    def definition_row(self, name: str, id_: int) -> DefinitionRow:
        """Return a definition to write."""
        definition, wanted, template = self.definitions[name], self.wanted[name], self.template
        assert template is not None
        files, mappings = self._beside(definition)
        body = _stored(definition, template.version, self.values, files, mappings, wanted.kind)
        if name in self._asked:
            body |= self._nested(definition)
        attributes = {one: sorted(names) for one, names in definition.dep_attrs.items()}
        return DefinitionRow(id_, name, wanted.digest, body, sorted(definition.requires), attributes)

    def _wanted(self, definition: ResourceDefinition, runs_as: str) -> DesiredRow:
        """Return what is wanted of a resource; what stands for its type is part of that."""
        beside: tuple[Any, ...] = self._beside(definition)
        if definition.name in self._asked:
            beside = (*beside, self._nested(definition))
        if runs_as != definition.type:
            beside = (*beside, runs_as)
        digest = definition.digest(self.values, beside if any(beside) else None)
        return DesiredRow(digest, runs_as, definition.requires)

    def _nested(self, definition: ResourceDefinition) -> dict[str, Any]:
        """Return what is kept of a nested resource besides: a digest of all that its stack is made with, and
        which attributes others ask for.
        """
        kind = self.kinds.of(definition)
        digest = self._inner.get(id(kind))
        if digest is None:
            environment = kind.environment if isinstance(kind, TemplateType) else self.kinds.environment
            around = environment.to_json()
            made_with = [
                _chosen(self.kinds.files_of(kind), self.hashes),
                around["resource_registry"],
                around["parameter_defaults"],
            ]
            text = orjson.dumps(made_with, option=orjson.OPT_SORT_KEYS)
            digest = self._inner[id(kind)] = hashlib.sha256(text).hexdigest()
        return {"nested": digest, "asked": sorted(self._asked[definition.name])}

    def _beside(self, definition: ResourceDefinition) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        if not definition.files and not definition.mappings:
            return NOTHING, NOTHING
        assert self.template is not None
        return _chosen(definition.files, self.hashes), _chosen(definition.mappings, self.template.mappings)


def _asked(template: Template, kinds: TypeResolver) -> dict[str, set[str]]:
    """Return which attributes a template uses of those of its resources that are stacks."""
    resources = template.resources
    if isinstance(resources, MemberDefinitions):  # nobody knows what of them the group will be asked for
        if not any(kinds.is_nested(one) for one in kinds.samples(template)):
            return {}
        nested = {name: kinds.of(one) for name, one in resources.items() if kinds.is_nested(one)}
        return {name: set() if isinstance(kind, TemplateType) else {ALL} for name, kind in nested.items()}
    asked: dict[str, set[str]] = {
        name: set() for name, definition in template.resources.items() if kinds.is_nested(definition)
    }
    if asked:
        used = [one.dep_attrs for one in template.resources.values()]
        used += [one.dep_attrs for one in template.outputs.values()]
        for attributes in used:
            for name in asked.keys() & attributes.keys():
                asked[name] |= attributes[name]
    return asked


def _chosen(names: Collection[str], held: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a definition uses of the files or the mappings."""
    if not names:
        return NOTHING
    return held if ALL in names else {name: held[name] for name in names if name in held}


def _stored(
    definition: ResourceDefinition,
    version: str,
    values: ParameterValues,
    files: Mapping[str, Any],
    mappings: Mapping[str, Any],
    runs_as: str,
) -> dict[str, Any]:
    """Return a snippet as a check needs it: with the language's version, the hashes of the files and the
    mappings it uses, and its deletion policy resolved.

    What was built is removed by the policy it was built with, and no template is read then.
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
