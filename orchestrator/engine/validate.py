"""Check definitions against the resource types they name: before a stack is accepted, and before each create.

Pure. `validate_stack` looks at a whole template of which nothing is made yet and returns every fault it
finds; `resolve_properties` gives one resource's properties as its type's verbs see them, with everything
known by then. What a template is in itself (sections, functions, references) was checked when it was loaded.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.resources.base import Fault, ResourceType
from orchestrator.schema.hints import did_you_mean
from orchestrator.schema.properties import PropertyFault, convert, join
from orchestrator.template.definition import ResourceDefinition, StackDefinition
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template
from orchestrator.template.view import UNKNOWN, ResourceProxy

HIDDEN: Final = "the value, which is hidden, is not acceptable"
DELETION_POLICIES: Final = frozenset({"delete", "retain", "snapshot"})

# What functions see of any resource here: not created, and known by nothing that could be compared.
_UNMADE: Final = ResourceProxy("", UNKNOWN, {}, "INIT", "COMPLETE")  # type: ignore[arg-type]


class Unmade(StackDefinition):
    """A stack of which no resource is made yet: whatever comes from one is `UNKNOWN`."""

    def __init__(self, version: str, parameters: ParameterValues, names: Container[str]) -> None:
        """`names` are the resources that may be referred to."""
        super().__init__(version, parameters, {}, strict=False)
        self._names = names

    def resource(self, name: str) -> ResourceProxy:
        """Return the one proxy that stands for all."""
        if name not in self._names:
            return super().resource(name)  # which refuses it
        self.not_yet()  # so that what is made of this is not known either
        return _UNMADE


def validate_stack(
    template: Template,
    values: ParameterValues,
    types: Mapping[str, ResourceType],
    *,
    strict: bool,
    stack_timeout_seconds: float,
) -> list[Diagnostic]:
    """Return everything wrong with the resources and outputs of a stack, in the template's order.

    A value that comes from a resource, or from a parameter without a value, is not known yet and breaks no
    rule. Unless `strict`, waits are not compared with the timeout: there is no stack to have one.
    """
    check = _StackCheck(template, values, types, stack_timeout_seconds if strict else math.inf)
    return list(check.run())


def resolve_properties(
    body: Mapping[str, Any], view: StackDefinition, kind: ResourceType, name: str
) -> dict[str, Any]:
    """Return a resource's properties resolved, converted and checked in full.

    `body` is the resource's snippet, `name` its logical name. `view.touched_secret` says afterwards whether
    anything secret went into them.

    Raises:
        InvalidTemplate: with everything that is wrong.
    """
    resolved = _Resolved(body, view, kind, f"resources.{name}")
    if not resolved.errors:
        given, faults = convert(
            kind.properties, resolved.values, path=resolved.path, any_properties=kind.any_properties
        )
        own = () if faults else kind.validate(given, math.inf)
        if not faults and not own:
            return given
        resolved.report(faults, own, prefix="")
    raise InvalidTemplate(resolved.errors)


class _Resolved:
    """One resource's properties with their functions evaluated, and what was wrong on the way."""

    def __init__(
        self, body: Mapping[str, Any], view: StackDefinition, kind: ResourceType, place: str
    ) -> None:
        self.place, self.path = place, f"{place}.properties"
        self.values: Mapping[str, Any] = {}
        self.errors: list[Diagnostic] = []
        self.secrets: set[str] = set()  # properties that something secret went into
        properties = body.get("properties") or {}
        if len(properties) == 1:  # which may be a function that gives all of them
            self.values = self._alone(properties, view, kind)
        else:
            self.values = self._each(properties, view)
        if "description" in kind.properties and kind.properties["description"].update_allowed:
            self._describe(body)

    def _alone(self, properties: Any, view: StackDefinition, kind: ResourceType) -> Mapping[str, Any]:
        before, view.touched_secret = view.touched_secret, False
        try:
            values = view.resolve(properties, self.path)
        except InvalidTemplate as error:
            self.errors += masked(error.diagnostics, view)
            values = UNKNOWN
        secret, view.touched_secret = view.touched_secret, view.touched_secret or before
        if values is UNKNOWN:
            return dict.fromkeys(kind.properties, UNKNOWN)
        if values is None:
            return {}
        if secret and isinstance(values, Mapping):
            self.secrets.update(values)
        if isinstance(values, Mapping):
            return values
        shown = HIDDEN if secret else f'"{values}" is not a map'
        self.errors.append(Diagnostic("wrong-value", f"Property error: {self.path}: {shown}", self.path))
        return dict.fromkeys(kind.properties, UNKNOWN)

    def _each(self, properties: Mapping[str, Any], view: StackDefinition) -> dict[str, Any]:
        values: dict[str, Any] = {}
        before, any_secret = view.touched_secret, False
        for name, value in properties.items():
            if value.__class__ is not dict and value.__class__ is not list:
                values[name] = value
                continue
            view.touched_secret = False
            try:
                values[name] = view.resolve(value, join(self.path, name))
            except InvalidTemplate as error:
                self.errors += masked(error.diagnostics, view)
                values[name] = UNKNOWN  # one fault is enough
            if view.touched_secret:
                any_secret = True
                self.secrets.add(name)
        view.touched_secret = before or any_secret
        return values

    def _describe(self, body: Mapping[str, Any]) -> None:
        """Let the resource's own description stand in for the property of that name."""
        if self.values.get("description") is None and body.get("description"):
            self.values = {**self.values, "description": body["description"]}

    def report(
        self, faults: Iterable[PropertyFault], own: Sequence[Fault], prefix: str = "Property error: "
    ) -> None:
        """Add faults of the schema and of the type's own rule to the errors."""
        for fault in faults:
            secret = fault.code == "wrong-value" and self._is_secret(fault.where)
            message = f"{prefix}{fault.path}: {HIDDEN if secret else fault.message}"
            self.errors.append(Diagnostic(fault.code, message, fault.where, hint=fault.hint))
        for mine in own:
            where = join(self.path, mine.property) if mine.property else self.place
            secret = mine.property in self.secrets or (not mine.property and bool(self.secrets))
            message = HIDDEN if secret else mine.message
            if (
                mine.property or not prefix
            ):  # a fault of the whole is told by itself before a stack is accepted
                message = f"{prefix}{where}: {message}"
            self.errors.append(Diagnostic("wrong-value", message, where))

    def _is_secret(self, where: str) -> bool:
        inside = where[len(self.path) + 1 :]
        return any(inside == name or inside.startswith((f"{name}.", f"{name}[")) for name in self.secrets)


class _StackCheck:
    """One pass over a template."""

    def __init__(
        self,
        template: Template,
        values: ParameterValues,
        types: Mapping[str, ResourceType],
        timeout_seconds: float,
    ) -> None:
        self.template, self.types, self.timeout_seconds = template, types, timeout_seconds
        self.view = Unmade(template.version, values, template.resources)
        self.missing: dict[str, str] = {}  # type names that are not there, with their hints

    def run(self) -> Iterator[Diagnostic]:
        """Go over the resources, then the outputs."""
        for definition in self.template.resources.values():
            yield from self._resource(definition)
        for output in self.template.outputs.values():
            yield from self._attributes(output.dep_attrs, output.value, f"outputs.{output.name}.value")

    def _resource(self, definition: ResourceDefinition) -> Iterator[Diagnostic]:
        place, body = f"resources.{definition.name}", definition.body
        kind = self.types.get(definition.type)
        if kind is None:
            yield self._unknown_type(definition.type, f"{place}.type")
        else:
            yield from self._properties(body, kind, place)
            yield from self._deletion_policy(body, kind, place)
        if definition.dep_attrs:
            yield from self._attributes(definition.dep_attrs, body, place)
        if body.get("metadata"):
            self.view.touched_secret = False
            try:
                self.view.resolve(body["metadata"], f"{place}.metadata")
            except InvalidTemplate as error:
                yield from masked(error.diagnostics, self.view)

    def _unknown_type(self, name: str, path: str) -> Diagnostic:
        hint = self.missing.get(name)
        if hint is None:
            hint = self.missing[name] = did_you_mean(name, self.types)
        return Diagnostic("unknown-type", f"The Resource Type ({name}) could not be found.", path, hint=hint)

    def _properties(self, body: Mapping[str, Any], kind: ResourceType, place: str) -> list[Diagnostic]:
        resolved = _Resolved(body, self.view, kind, place)
        given, faults = convert(
            kind.properties,
            resolved.values,
            path=resolved.path,
            unknown=UNKNOWN,
            any_properties=kind.any_properties,
        )
        own = () if faults or resolved.errors else kind.validate(given, self.timeout_seconds)
        if faults or own:
            resolved.report(faults, own)
        return resolved.errors

    def _deletion_policy(
        self, body: Mapping[str, Any], kind: ResourceType, place: str
    ) -> Iterator[Diagnostic]:
        policy = body.get("deletion_policy")
        if policy is None:
            return
        path = f"{place}.deletion_policy"
        self.view.touched_secret = False
        try:
            policy = self.view.resolve(policy, path)
        except InvalidTemplate as error:
            yield from masked(error.diagnostics, self.view)
            return
        if policy is UNKNOWN:
            return
        if str(policy).lower() not in DELETION_POLICIES:
            yield Diagnostic("deletion-policy", f'Invalid deletion policy "{policy}"', path)
        elif str(policy).lower() == "snapshot" and not kind.can_snapshot:
            yield Diagnostic("deletion-policy", f'"{policy}" deletion policy not supported', path)

    def _attributes(self, used: Mapping[str, Iterable[str]], value: Any, place: str) -> Iterator[Diagnostic]:
        for name, attributes in used.items():
            target = self.template.resources.get(name)
            kind = self.types.get(target.type) if target is not None else None
            if kind is None:
                continue  # told already
            for attribute in sorted(attributes):
                if attribute != "*" and not kind.has_attribute(attribute):
                    yield Diagnostic(
                        "unknown-attribute",
                        f"The Referenced Attribute ({name} {attribute}) is incorrect.",
                        find_get_attr(value, name, attribute, place),
                        hint=did_you_mean(attribute, kind.attributes),
                        heat_type="InvalidTemplateReference",
                    )


def masked(errors: Iterable[Diagnostic], view: StackDefinition) -> list[Diagnostic]:
    """Return a function's errors, without what they quote when something secret went into it."""
    if not view.touched_secret:
        return list(errors)
    return [
        replace(error, message=f"{error.path}: {HIDDEN}") if error.code == "function-error" else error
        for error in errors
    ]


def find_get_attr(value: Any, name: str, attribute: str, place: str) -> str:
    """Return the path in `value`, which is at `place`, of the `get_attr` of a resource's attribute."""
    todo: list[tuple[Any, str]] = [(value, place)]
    while todo:
        item, path = todo.pop()
        if isinstance(item, Mapping):
            asked = item.get("get_attr") if len(item) == 1 else None
            if isinstance(asked, list) and asked[:2] == [name, attribute]:
                return join(path, "get_attr")
            todo.extend((member, join(path, key)) for key, member in item.items())
        elif isinstance(item, list):
            todo.extend((member, join(path, index)) for index, member in enumerate(item))
    return place
