"""What a resource's properties will be during an update that is only thought of: pure.

Functions see what the requirements hand on as far as that is known. Where another id or other attributes are
to come, the value is not known; whether it is sure to differ is found out by letting two different ids stand
in for the one that does not exist yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.resources.base import ResourceType
from orchestrator.template.definition import ResourceDefinition, StackDefinition
from orchestrator.template.formats import format_named
from orchestrator.template.function_view import UNKNOWN, ResourceProxy, Unknown
from orchestrator.template.functions import Function, FunctionError
from orchestrator.template.functions.resolved_argument import knows_all
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

IDS: Final = frozenset({"get_resource", "Ref"})
ATTRIBUTES: Final = frozenset({"get_attr", "Fn::GetAtt"})
PLACEHOLDER_IDS: Final = ("the-id-of-", "another-id-of-")


@dataclass(frozen=True, slots=True)
class InputForecast:
    """What a resource will hand on to those that require it.

    `moved`: it may be something else than they were built with. `new_id`, `unsure`: its reference id, its
    attributes are not known yet; otherwise they are the proxy's. A new id that is not `certain` may be the
    old one.
    """

    proxy: ResourceProxy
    moved: bool = False
    new_id: bool = False
    unsure: bool = False
    certain: bool = True
    why: str = ""  # it moved, for people: "is replaced"


class ForecastDefinition(StackDefinition):
    """A stack in the middle of an update, as one resource's functions will see it."""

    def __init__(
        self,
        template: Template,
        values: ParameterValues,
        files: Callable[[str], str | None],
        handed: Mapping[str, InputForecast],
    ) -> None:
        """`handed` is what the resource's requirements hand on."""
        proxies = {name: one.proxy for name, one in handed.items()}
        super().__init__(template.version, values, proxies, files, strict=False, mappings=template.mappings)
        self._handed = handed
        self.stand_in = ""  # for an id that is not known, followed by the name; none: it is `UNKNOWN`

    def _call(self, function: Function, written: Any) -> Any:
        if function.name in IDS and isinstance(written, str):
            one = self._handed.get(written)
            if one is not None and one.new_id:
                return f"{self.stand_in}{written}" if self.stand_in and one.certain else self.not_yet()
        elif function.name in ATTRIBUTES and isinstance(written, list) and written:
            one = self._handed.get(written[0]) if isinstance(written[0], str) else None
            if one is not None and one.unsure:
                return self.not_yet()
        return super()._call(function, written)


@dataclass(frozen=True, slots=True)
class PropertyForecast:
    """A resource's properties and metadata as they will be.

    `properties` has those that are known; `sure` are others that will differ from what they are, `maybe`
    those that may. `secret` are properties that something secret goes into.
    """

    properties: Mapping[str, Any]
    sure: frozenset[str] = frozenset()
    maybe: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()
    metadata: Any = None  # UNKNOWN: not known yet, as with the next
    secret_metadata: bool = False
    external_id: str | Unknown | None = None
    faults: tuple[Diagnostic, ...] = field(default=())


def forecast_properties(
    definition: ResourceDefinition, kind: ResourceType, view: ForecastDefinition, before: Iterable[str] = ()
) -> PropertyForecast:
    """Return what a resource will be made from; `before` are the properties that it has.

    What is wrong is among its `faults`, as the check would tell it.
    """
    body, words = definition.body, format_named(view.version).keywords
    place = f"{words.resources}.{definition.name}"
    resolved = Resolved(body, view, kind, place, f"{place}.{words.properties}")
    failed = bool(resolved.errors)
    values = dict(resolved.values)
    unknown = {name for name, value in values.items() if not knows_all(value)}
    sure = set()
    for name in sorted(unknown):
        alike, value = _differs_for_any_id(body, name, view)
        if not alike:
            sure.add(name)
        elif value is not UNKNOWN:
            values[name] = value
            unknown.remove(name)
    given, faults = kind.read_properties(values, path=resolved.path, unknown=UNKNOWN)
    resolved.report(faults)
    if not faults and not failed:
        resolved.report((), kind.validate(given, float("inf")))
    if unknown and kind.translation:  # what is not known yet may be known by another name
        unknown |= {name for name in before if name not in given}
    if not kind.any_properties:
        unknown &= kind.properties.keys()
    view.used_secret = False
    metadata, wrong_metadata = _beside(body.get("metadata"), view, f"{place}.{words.metadata}")
    secret_metadata = view.used_secret
    external, wrong_external = _beside(body.get("external_id"), view, f"{place}.{words.external_id}")
    secret = frozenset(resolved.secrets)
    if secret and kind.translation:  # it may have gone elsewhere
        secret |= given.keys()
    return PropertyForecast(
        given,
        frozenset(sure & unknown),
        frozenset(unknown - sure),
        secret,
        metadata,
        secret_metadata,
        external if external is None or external is UNKNOWN else str(external),
        (*resolved.errors, *wrong_metadata, *wrong_external),
    )


def _differs_for_any_id(body: Mapping[str, Any], name: str, view: ForecastDefinition) -> tuple[bool, Any]:
    """Return whether a property is the same whatever the ids that are not known yet, and its value then."""
    properties = body.get("properties")
    if not isinstance(properties, Mapping) or name not in properties:
        return True, UNKNOWN
    seen = []
    try:
        for stand_in in PLACEHOLDER_IDS:
            view.stand_in = stand_in
            value = view.resolved(properties[name])
            if not knows_all(value):
                return True, UNKNOWN
            seen.append(value)
    except FunctionError:  # which takes no such id
        return True, UNKNOWN
    finally:
        view.stand_in = ""
    return seen[0] == seen[1], seen[0]


def _beside(written: Any, view: ForecastDefinition, path: str) -> tuple[Any, tuple[Diagnostic, ...]]:
    """Return a value beside the properties, `UNKNOWN` when it is not known in full, and what is wrong."""
    if not written:
        return written, ()
    try:
        value = view.resolve(written, path)
    except InvalidTemplate as error:
        return UNKNOWN, error.diagnostics
    return (value if knows_all(value) else UNKNOWN), ()


def mentioned(value: Any, names: Iterable[str]) -> list[str]:
    """Return those of the names whose resource a value as written asks for something."""
    wanted, found, todo = set(names), [], [value]
    while todo and wanted:
        held = todo.pop()
        if isinstance(held, Mapping):
            for key, item in held.items():
                asked = item[0] if key in ATTRIBUTES and isinstance(item, list) and item else item
                if key in IDS | ATTRIBUTES and isinstance(asked, str) and asked in wanted:
                    wanted.remove(asked)
                    found.append(asked)
                else:
                    todo.append(item)
        elif isinstance(held, list):
            todo.extend(held)
    return sorted(found)
