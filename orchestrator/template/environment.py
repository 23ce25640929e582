"""Environments: parameter values and type mappings (docs/internals/hot-language.md §9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.diagnostics import Hints
from orchestrator.template.fault_locations import placed
from orchestrator.template.parse import Limits, check_size, parse
from orchestrator.template.resource_registry import NO_ENTRIES, ResourceRegistry, Target
from orchestrator.template.resource_registry_entries import is_template

SECTIONS: Final = (
    "parameters",
    "parameter_defaults",
    "resource_registry",
    "encrypted_param_names",
    "event_sinks",
    "parameter_merge_strategies",
    "observation_policy",
)
NAME: Final = "environment"  # name of the request's own environment in diagnostics
WEBHOOK: Final = "webhook"  # an extension to Heat
SINK_TYPES: Final = ("zaqar-queue", WEBHOOK)
SINK_EVENTS: Final = ("all", "stack")
_SINK_KEYS: Final = ("type", "target", "ttl")
_WEBHOOK_KEYS: Final = ("type", "target", "secret", "events", "id")  # id: of an existing webhook
_TEXTS: Final = frozenset({"observation_policy"})
_LISTS: Final = frozenset({"encrypted_param_names", "event_sinks"})


@dataclass(frozen=True, slots=True)
class Environment:
    """The part of a request that accompanies the template. Immutable."""

    parameters: JsonMapping = field(default_factory=dict)
    parameter_defaults: JsonMapping = field(default_factory=dict)
    resource_registry: JsonMapping = field(default_factory=dict)  # as written, null entries and all
    encrypted_param_names: tuple[str, ...] = ()
    event_sinks: tuple[JsonMapping, ...] = ()
    parameter_merge_strategies: JsonMapping = field(default_factory=dict)
    observation_policy: str = ""  # the name of a policy of the project; an extension to Heat
    hidden_defaults: frozenset[str] = frozenset()  # names in parameter_defaults whose values are secret

    @classmethod
    def parse(
        cls,
        source: bytes | str | JsonMapping | None,
        limits: Limits | None = None,
        *,
        file: str = NAME,
        of_request: bool = False,
        warnings: list[Diagnostic] | None = None,
    ) -> Environment:
        """Parse an environment from a text or an object; None is an empty environment.

        An object without any of the sections holds bare parameters; a text, or an object of a request, must
        name its sections. `file` is the name of the text in diagnostics: `environment`, or its name among the
        request's files. `warnings` collects suspicious constructs of a text.

        Raises:
            InvalidTemplate: lists all faults.
            LimitExceeded: it is too large.
        """
        limits = limits or Limits()
        if source is None:
            return cls()
        if isinstance(source, Mapping):
            document = dict(source)
            check_size(document, limits, "environment")
            if not of_request and not any(section in document for section in SECTIONS):
                document = {"parameters": document}
        else:
            document = _document(source, limits, file, warnings)
        if faults := _faults(document):
            raise InvalidTemplate(_placed(faults, source, document, file, of_request))
        return cls(
            document.get("parameters", {}),
            document.get("parameter_defaults", {}),
            _registry(document.get("resource_registry", {})),
            tuple(document.get("encrypted_param_names", ())),
            tuple(document.get("event_sinks", ())),
            document.get("parameter_merge_strategies", {}),
            document.get("observation_policy", ""),
        )

    def with_parameters(self, parameters: JsonMapping) -> Environment:
        """Return the environment with a request's own parameters on top."""
        return replace(self, parameters={**self.parameters, **parameters})

    def with_hidden_defaults(self, values: JsonMapping) -> Environment:
        """Return the environment with secret values of parameter defaults."""
        defaults = {**self.parameter_defaults, **values}
        return replace(
            self, parameter_defaults=defaults, hidden_defaults=self.hidden_defaults | values.keys()
        )

    def registry(
        self,
        globals: JsonMapping = NO_ENTRIES,
        is_known: Callable[[str], bool] | None = None,
    ) -> ResourceRegistry:
        """Return the type mappings over the operator's `globals`; see `ResourceRegistry.build`."""
        return ResourceRegistry.build(self.resource_registry, globals, is_known)

    def child(self, resource_name: str, properties: JsonMapping, target: Target | None) -> Environment:
        """Return the environment of the stack nested in a resource (§9.7).

        Its parameters are exactly the resource's properties; defaults and event sinks are inherited. `target`
        is the template mapping of the resource, None for a type that generates its template.
        """
        registry = self.registry().child(resource_name, target).to_json()
        return Environment(
            properties,
            self.parameter_defaults,
            _registry(registry),
            event_sinks=self.event_sinks,
            hidden_defaults=self.hidden_defaults,
        )

    def to_json(self) -> JsonObject:
        """Return the environment as the API shows it; the caller masks hidden values."""
        return {
            "parameters": dict(self.parameters),
            "parameter_defaults": dict(self.parameter_defaults),
            "resource_registry": self.registry().to_json(),
            "encrypted_param_names": list(self.encrypted_param_names),
            "event_sinks": list(self.event_sinks),
            **({"observation_policy": self.observation_policy} if self.observation_policy else {}),
        }


def _document(
    source: bytes | str, limits: Limits, file: str, warnings: list[Diagnostic] | None
) -> JsonObject:
    found: list[Diagnostic] = []
    try:
        document = parse(source, limits, "environment", found)
        if warnings is not None:  # without the line, which may contain a secret
            warnings += [replace(warning, file=file, excerpt="") for warning in found]
        return document
    except InvalidTemplate as error:
        raise InvalidTemplate([_of_text(fault, file) for fault in error.diagnostics]) from None


def _placed(
    faults: list[Diagnostic], source: object, document: JsonMapping, file: str, of_request: bool
) -> list[Diagnostic]:
    if not isinstance(source, str | bytes):
        return [replace(_of_text(fault, NAME), file="") for fault in faults] if of_request else faults
    return [_of_text(fault, file) for fault in placed(faults, source, document)]


def _of_text(fault: Diagnostic, file: str) -> Diagnostic:
    """Return the fault of a text; for a request's own environment Heat prefixes "not in valid format"."""
    of_request = file == NAME and fault.heat_type == "HTTPBadRequest"
    message = f"Environment not in valid format: {fault.message}" if of_request else fault.message
    return replace(fault, message=message, file=file)


def _registry(body: JsonMapping) -> JsonMapping:
    """Return a registry without entries that the API adds by itself: an empty `resources`, and templates
    named by the stack's own template, mapped to themselves.
    """
    return {
        name: entry
        for name, entry in body.items()
        if (name != "resources" or entry) and not (entry == name and is_template(name))
    }


def _faults(document: JsonMapping) -> list[Diagnostic]:
    faults: list[Diagnostic] = []
    hints = Hints()
    for name, body in document.items():
        if name not in SECTIONS:
            hint = hints.near(name, SECTIONS)
            faults.append(_fault("unknown-section", f'environment has wrong section "{name}"', name, hint))
        elif body is None:
            faults.append(_fault("empty-section", f'environment has empty section "{name}"', name))
        elif name in _TEXTS:
            if not isinstance(body, str) or not body:
                faults.append(_fault("wrong-type", f'environment section "{name}" must be a name', name))
        elif not isinstance(body, list if name in _LISTS else dict):
            expected = "list" if name in _LISTS else "map"
            faults.append(_fault("wrong-type", f'environment section "{name}" must be a {expected}', name))
        elif name == "resource_registry":
            faults += _registry_faults(body)
        elif name == "event_sinks":
            faults += _sink_faults(body)
        elif name == "encrypted_param_names" and not all(isinstance(item, str) for item in body):
            message = 'environment section "encrypted_param_names" must be a list of names'
            faults.append(_fault("wrong-type", message, name))
    return faults


def _registry_faults(body: Any) -> list[Diagnostic]:
    try:
        ResourceRegistry.build(body)
    except InvalidTemplate as error:
        return list(error.diagnostics)
    return []


def _sink_faults(sinks: Any) -> list[Diagnostic]:
    """Return the faults of event sinks, which are otherwise used only at the first event."""
    faults = []
    hints = Hints()
    for index, sink in enumerate(sinks):
        path = f"event_sinks[{index}]"

        def fault(message: str, key: str = "", hint: str = "", path: str = path) -> None:
            at = f"{path}.{key}" if key else path
            faults.append(_fault("invalid-event-sink", message, at, hint))

        if not isinstance(sink, dict):
            fault("An event sink must be a map with type and target")
            continue
        type_, ttl = sink.get("type"), sink.get("ttl")
        keys = _WEBHOOK_KEYS if type_ == WEBHOOK else _SINK_KEYS
        for key, value in sink.items():
            if key not in keys:
                fault(f'Invalid key "{key}" for an event sink', key, hints.near(key, keys))
            elif key in {"secret", "id"} and not isinstance(value, str):
                fault(f"The {key} of an event sink must be a string", key)
            elif key == "events" and value not in SINK_EVENTS:
                fault(f"The events of an event sink are one of: {', '.join(SINK_EVENTS)}", key)
        if type_ not in SINK_TYPES:
            allowed = ", ".join(SINK_TYPES)
            fault(
                f'Invalid event sink type "{type_}", acceptable types are: {allowed}',
                "type" * ("type" in sink),
            )
        if not sink.get("target") or not isinstance(sink["target"], str):
            fault("An event sink must name its target", "target")
        if ttl is not None and (not isinstance(ttl, int) or isinstance(ttl, bool) or ttl < 1):
            fault("The ttl of an event sink must be a positive number of seconds", "ttl")
    return faults


def _fault(code: str, message: str, path: str = "", hint: str = "") -> Diagnostic:
    return Diagnostic(code, message, path, hint=hint, heat_type="HTTPBadRequest")
