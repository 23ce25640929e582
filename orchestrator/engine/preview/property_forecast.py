"""Forecast of a resource's properties during a simulated update: pure.

Functions see the outputs of the requirements as far as they are known. A value that depends on a new id or
on new attributes is unknown. Whether an unknown value is sure to differ is tested with two different
placeholders for the id that does not exist yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import ResourceType
from orchestrator.schema.translation import Finder, reached
from orchestrator.template.definition import ResourceDefinition, StackDefinition
from orchestrator.template.formats import format_named
from orchestrator.template.function_view import UNKNOWN, ResourceProxy, Unknown
from orchestrator.template.functions import Function, FunctionError
from orchestrator.template.functions.resolved_argument import knows_all
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.secret_values import MASK, NO_SECRETS, SecretValues
from orchestrator.template.template import Template

IDS: Final = frozenset({"get_resource", "Ref"})
ATTRIBUTES: Final = frozenset({"get_attr", "Fn::GetAtt"})
PLACEHOLDER_IDS: Final = ("the-id-of-", "another-id-of-")


@dataclass(frozen=True, slots=True)
class InputForecast:
    """The forecast outputs of a resource, which are inputs of its dependents.

    `moved`: they may differ from the recorded inputs. `new_id`, `unsure`: the reference id, the attributes
    are not known yet; otherwise the proxy has them. A new id that is not `certain` may equal the old id.
    """

    proxy: ResourceProxy
    moved: bool = False
    new_id: bool = False
    unsure: bool = False
    certain: bool = True
    why: str = ""  # the reason for `moved`, as text: "is replaced"


class ForecastDefinition(StackDefinition):
    """A stack during an update, as the functions of a resource will see it."""

    def __init__(
        self,
        template: Template,
        values: ParameterValues,
        files: Callable[[str], str | None],
        inputs: Mapping[str, InputForecast],
    ) -> None:
        """`inputs` are the forecast outputs of the resource's requirements."""
        proxies = {name: item.proxy for name, item in inputs.items()}
        super().__init__(template.version, values, proxies, files, strict=False, mappings=template.mappings)
        self._inputs = inputs
        self.placeholder = ""  # prefix of an unknown id, before the name; "": such an id is `UNKNOWN`

    def _call(self, function: Function, written: object) -> Any:
        if function.name in IDS and isinstance(written, str):
            item = self._inputs.get(written)
            if item is not None and item.new_id:
                return f"{self.placeholder}{written}" if self.placeholder and item.certain else self.not_yet()
        elif function.name in ATTRIBUTES and isinstance(written, list) and written:
            item = self._inputs.get(written[0]) if isinstance(written[0], str) else None
            if item is not None and item.unsure:
                return self.not_yet()
        return super()._call(function, written)


@dataclass(frozen=True, slots=True)
class PropertyForecast:
    """The forecast properties and metadata of a resource.

    `properties` has the known values. Of the unknown values, `sure` will differ from the recorded values and
    `maybe` may differ. `secret` are properties with secrets, which are `secrets`; None: any value of theirs.
    """

    properties: JsonMapping
    sure: frozenset[str] = frozenset()
    maybe: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()
    secrets: SecretValues | None = NO_SECRETS
    metadata: Any = None  # UNKNOWN: not known yet; the same for `external_id`
    secret_metadata: bool = False
    external_id: str | Unknown | None = None
    faults: tuple[Diagnostic, ...] = field(default=())

    def shown(self, name: str, value: object, like: object = None) -> Any:
        """Return a value of a property with its secrets masked, and the counterparts of secrets in `like`."""
        if name not in self.secret:
            return value
        return MASK if self.secrets is None else self.secrets.masked(value, like)


def forecast_properties(
    definition: ResourceDefinition,
    resource_type: ResourceType,
    view: ForecastDefinition,
    before: Iterable[str] = (),
    resolve: Finder | None = None,
) -> PropertyForecast:
    """Return the forecast properties of a resource; `before` are the names of the recorded properties,
    `resolve` replaces names by ids.

    Errors are in `faults`, as a check would report them.
    """
    body, keywords = definition.body, format_named(view.version).keywords
    place = f"{keywords.resources}.{definition.name}"
    resolved = Resolved(body, view, resource_type, place, f"{place}.{keywords.properties}")
    failed = bool(resolved.errors)
    values = dict(resolved.values)
    unknown, sure = _with_placeholders(body, values, view)
    properties, faults = resource_type.read_properties(
        values, path=resolved.path, unknown=UNKNOWN, resolve=resolve
    )
    resolved.report(faults)
    if not faults and not failed:
        resolved.report((), resource_type.validate(properties, float("inf")))
    if unknown and resource_type.translation:  # a translation may rename an unknown property
        unknown |= {name for name in before if name not in properties}
    if not resource_type.any_properties:
        unknown &= resource_type.properties.keys()
    view.used_secret = False
    metadata, wrong_metadata = _section(body.get("metadata"), view, f"{place}.{keywords.metadata}")
    secret_metadata = view.used_secret
    external, wrong_external = _section(body.get("external_id"), view, f"{place}.{keywords.external_id}")
    secret = frozenset(reached(resource_type.translation, resolved.secrets))
    return PropertyForecast(
        properties,
        frozenset(sure & unknown),
        frozenset(unknown - sure),
        secret,
        resolved.secret_values(properties) if resolved.secrets else NO_SECRETS,
        metadata,
        secret_metadata,
        external if external is None or external is UNKNOWN else str(external),
        (*resolved.errors, *wrong_metadata, *wrong_external),
    )


def _with_placeholders(
    body: JsonMapping, values: dict[str, Any], view: ForecastDefinition
) -> tuple[set[str], set[str]]:
    """Return the names of the unknown values, and of those that differ for every id; set the values that are
    the same for every id.
    """
    unknown, sure = {name for name, value in values.items() if not knows_all(value)}, set()
    for name in sorted(unknown):
        alike, value = _differs_for_any_id(body, name, view)
        if not alike:
            sure.add(name)
        elif value is not UNKNOWN:
            values[name] = value
            unknown.remove(name)
    return unknown, sure


def _differs_for_any_id(body: JsonMapping, name: str, view: ForecastDefinition) -> tuple[bool, Any]:
    """Return whether a property is the same for every unknown id, and its value in that case."""
    properties = body.get("properties")
    if not isinstance(properties, Mapping) or name not in properties:
        return True, UNKNOWN
    values = []
    try:
        for placeholder in PLACEHOLDER_IDS:
            view.placeholder = placeholder
            value = view.resolved(properties[name])
            if not knows_all(value):
                return True, UNKNOWN
            values.append(value)
    except FunctionError:  # a function rejects the placeholder
        return True, UNKNOWN
    finally:
        view.placeholder = ""
    return values[0] == values[1], values[0]


def _section(written: object, view: ForecastDefinition, path: str) -> tuple[Any, tuple[Diagnostic, ...]]:
    """Return metadata or an external id, `UNKNOWN` if not completely known, and its errors."""
    if not written:
        return written, ()
    try:
        value = view.resolve(written, path)
    except InvalidTemplate as error:
        return UNKNOWN, error.diagnostics
    return (value if knows_all(value) else UNKNOWN), ()


def mentioned(value: object, names: Iterable[str]) -> list[str]:
    """Return the names of the resources to which an unevaluated value refers."""
    remaining, mentions, todo = set(names), [], [value]
    while todo and remaining:
        current = todo.pop()
        if isinstance(current, Mapping):
            for key, item in current.items():
                used = item[0] if key in ATTRIBUTES and isinstance(item, list) and item else item
                if key in IDS | ATTRIBUTES and isinstance(used, str) and used in remaining:
                    remaining.remove(used)
                    mentions.append(used)
                else:
                    todo.append(item)
        elif isinstance(current, list):
            todo.extend(current)
    return sorted(mentions)
