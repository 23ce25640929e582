"""A resource's properties as its type receives them, and all faults on the way.

Pure. `resolve_properties` is on the path of every check. `Resolved` is shared with the validation of a whole
template (`template.py`), when no resource exists and many values are unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from orchestrator.engine.validation.secret_places import (
    is_call,
    names_in,
    places_of,
    secret_places,
    secrets_of,
)
from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Fault, ResourceType
from orchestrator.schema.properties import Property, PropertyFault, join
from orchestrator.schema.translation import Finder, reached
from orchestrator.template.definition import StackDefinition
from orchestrator.template.diagnostics import path_text
from orchestrator.template.formats import format_named
from orchestrator.template.function_view import UNKNOWN
from orchestrator.template.functions import HIDDEN, FunctionError, UnknownReference
from orchestrator.template.functions.member import NAME
from orchestrator.template.functions.resolved_argument import MAX_PROPERTY_VALUES, measure
from orchestrator.template.secret_values import NO_SECRETS, SecretValues, values_at

BEFORE: Final = "Property error: "  # Heat's prefix of faults found before a create
NO_NAMES: Final[frozenset[str]] = frozenset()


def resolve_properties(
    body: JsonMapping,
    view: StackDefinition,
    resource_type: ResourceType,
    name: str,
    *,
    resolve: Finder | None = None,
) -> tuple[JsonObject, SecretValues | None]:
    """Return a resource's properties resolved, translated, converted and fully checked, and the secrets in
    them; None: any may be secret.

    `body` is the resource's snippet, `name` its logical name; `resolve` looks up ids by name for the type's
    translation rules, if a service is available. Afterwards `view.used_secret` states whether they contain a
    secret.

    Raises:
        InvalidTemplate: with every fault.
    """
    keywords = format_named(view.version).keywords
    place = f"{keywords.resources}.{name}"
    resolved = Resolved(body, view, resource_type, place, f"{place}.{keywords.properties}")
    if not resolved.errors:
        properties, faults = resource_type.read_properties(
            resolved.values, path=resolved.path, resolve=resolve
        )
        own_faults = () if faults else resource_type.validate(properties, float("inf"))
        if not faults and not own_faults:
            return properties, resolved.secret_values(properties) if resolved.secrets else NO_SECRETS
        resolved.report(faults, own_faults)
    raise InvalidTemplate(resolved.errors)


class Resolved:
    """A resource's properties with evaluated functions, and the faults on the way.

    `prefix` begins every message about a property; `secret` properties are secret in any case.
    """

    __slots__ = (
        "_body",
        "_type",
        "_view",
        "errors",
        "path",
        "place",
        "prefix",
        "sealed",
        "secrets",
        "values",
    )

    def __init__(
        self,
        body: JsonMapping,
        view: StackDefinition,
        resource_type: ResourceType,
        place: str,
        path: str,
        prefix: str = "",
        secret: Collection[str] = NO_NAMES,
    ) -> None:
        self.place, self.path, self.prefix = place, path, prefix
        self._body, self._view, self._type = body, view, resource_type
        self.values: JsonMapping = {}
        self.errors: list[Diagnostic] = []
        self.sealed = False  # whether the names of the properties are secret as well
        self.secrets: set[str] = set(secret)  # properties that contain a secret
        properties = body.get("properties")
        if properties.__class__ is not dict:  # absent, or its own fault
            properties = {}
        view.made = 0
        if len(properties) == 1:  # possibly a function that returns all of them
            self.values = self._alone(properties, view, resource_type)
        else:
            self.values = self._each(properties, view)
        if body.get("description") and self.values.get("description") is None:
            self._describe(body["description"], resource_type)
        try:
            measure(self.values, MAX_PROPERTY_VALUES)
        except FunctionError as error:
            self.errors.append(Diagnostic(error.code, f"{prefix}{path}: {error}", path))
            self.values = dict.fromkeys(resource_type.properties, UNKNOWN)

    def _alone(self, properties: Any, view: StackDefinition, resource_type: ResourceType) -> JsonMapping:
        if next(iter(properties)) not in format_named(view.version).callable:
            return self._each(properties, view)
        before, view.used_secret = view.used_secret, False
        try:
            values = view.resolved(properties)
        except FunctionError as error:
            self._function_fault(error, "", view)
            values = UNKNOWN
        secret, view.used_secret = view.used_secret, view.used_secret or before
        if values is UNKNOWN:
            return dict.fromkeys(resource_type.properties, UNKNOWN)
        if values is None:
            return {}
        if secret and isinstance(values, Mapping):
            known = secrets_of(view, properties, values) if NAME in properties else None
            self.sealed = known is None
            self.secrets.update(values if known is None else names_in([*places_of(values, known)]))
        if isinstance(values, Mapping):
            return values
        shown = HIDDEN if secret else f'"{values}" is not a map'
        self.errors.append(Diagnostic("wrong-value", f"{BEFORE}{self.path}: {shown}", self.path))
        return dict.fromkeys(resource_type.properties, UNKNOWN)

    def _each(self, properties: JsonMapping, view: StackDefinition) -> JsonObject:
        values: JsonObject = {}
        before, any_secret = view.used_secret, False
        for name, value in properties.items():
            if value.__class__ is not dict and value.__class__ is not list:
                values[name] = value
                continue
            view.used_secret = False
            try:
                values[name] = view.resolved(value)
            except FunctionError as error:
                self._function_fault(error, name, view)
                values[name] = UNKNOWN  # a single fault suffices
            if view.used_secret:
                any_secret = True
                self.secrets.add(name)
        view.used_secret = before or any_secret
        return values

    def _describe(self, description: object, resource_type: ResourceType) -> None:
        """Use the resource's own description for the property of that name."""
        prop = resource_type.properties.get("description")
        if prop is not None and prop.update_allowed:
            self.values = {**self.values, "description": description}

    def _function_fault(self, error: FunctionError, name: str, view: StackDefinition) -> None:
        place = join(self.path, name) if name else self.path
        self.errors.append(function_fault(error, place, view, self.prefix))

    def secret_values(self, converted: JsonMapping) -> SecretValues | None:
        """Return the secrets in the evaluated properties and in the `converted` ones; None: any may be
        secret.
        """
        view, written = self._view, self._body.get("properties")
        before = view.used_secret
        try:
            if self.sealed or not isinstance(written, dict):
                return None
            if is_call(view, written):
                known = secrets_of(view, written, self.values)
                if known is None:
                    return None
                found, places = known, [*places_of(self.values, known)]
            else:
                places = [
                    place
                    for name in self.secrets
                    if name in written
                    for place in secret_places(view, written[name], (name,))
                ]
                found = view.secret_sources()
        finally:
            view.used_secret = before
        renamed = reached(self._type.translation, self.secrets) - self.secrets
        moved = [converted[name] for name in renamed if name in converted]
        given = [self.values[name] for name in self.secrets - names_in(places) if name in self.values]
        inside = [*values_at(self.values, places), *values_at(converted, places)]
        return found | SecretValues.within(*inside, *moved, *given)

    def report(self, faults: Iterable[PropertyFault], type_faults: Sequence[Fault] = ()) -> None:
        """Add faults of the schema, and of the type's own rules, to the errors."""
        for fault in faults:
            self.errors.append(self.of(fault))
        for type_fault in type_faults:
            where = join(self.path, type_fault.property) if type_fault.property else self.place
            secret = type_fault.property in self.secrets or (not type_fault.property and bool(self.secrets))
            message = HIDDEN if secret else type_fault.message
            # A fault of the properties as a whole is reported separately before a stack is accepted.
            if not type_fault.alone and (type_fault.property or not self.prefix):
                message = f"{self.prefix}{where}: {message}"
            self.errors.append(Diagnostic("wrong-value", message, where))

    def of(self, fault: PropertyFault) -> Diagnostic:
        """Return a fault of the schema as a diagnostic, without secret values."""
        path, where, said, hint = fault.path, fault.where, fault.message, fault.hint
        name = self._secret(where) if fault.code in ("wrong-value", "unknown-property") else None
        if name is not None and fault.code == "wrong-value":
            said = HIDDEN
        elif name is not None and (self.sealed or where != join(self.path, name)):
            path = where = self.path if self.sealed else join(self.path, name)  # keys are masked as well
            said, hint = HIDDEN, ""
        return Diagnostic(fault.code, f"{self.prefix}{path}: {said}", where, hint=hint)

    def _secret(self, where: str) -> str | None:
        """Return the name of the secret property that contains a path."""
        inside = where[len(self.path) + 1 :]
        names = (n for n in self.secrets if inside == n or inside.startswith((f"{n}.", f"{n}[")))
        return next(names, None)


def function_fault(error: FunctionError, place: str, view: StackDefinition, prefix: str = "") -> Diagnostic:
    """Return an error of a function in the value at `place`.

    The message names the value, the path names the function in it. Values that the error quotes are omitted
    if they contain a secret.
    """
    where = path_text(reversed(error.keys), place)
    if isinstance(error, UnknownReference):
        return Diagnostic(error.code, error.text(where), where, hint=error.hint, heat_type=error.heat_type)
    shown = error.discreet() if view.used_secret else error
    return Diagnostic(error.code, f"{prefix}{place}: {shown.text('')}", where, hint=shown.hint)


def declares_deprecated(prop: Property) -> bool:
    """Whether a property or a member of it is deprecated."""
    if prop.deprecated:
        return True
    members = prop.schema
    if isinstance(members, Property):
        return declares_deprecated(members)
    return members is not None and any(map(declares_deprecated, members.values()))
