"""An environment: values for parameters, and what stands for which type (spec/hot-language.md §9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.template.diagnostics import Hints
from orchestrator.template.parse import Limits, check_size, parse

SECTIONS: Final = (
    "parameters",
    "parameter_defaults",
    "resource_registry",
    "encrypted_param_names",
    "event_sinks",
    "parameter_merge_strategies",
)
_LISTS: Final[Mapping[str, type]] = {"encrypted_param_names": list, "event_sinks": list}


@dataclass(frozen=True, slots=True)
class Environment:
    """What a caller sends besides the template. Immutable."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    parameter_defaults: Mapping[str, Any] = field(default_factory=dict)
    resource_registry: Mapping[str, Any] = field(default_factory=dict)
    encrypted_param_names: tuple[str, ...] = ()
    event_sinks: tuple[Mapping[str, Any], ...] = ()
    parameter_merge_strategies: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(
        cls,
        source: bytes | str | Mapping[str, Any] | None,
        limits: Limits | None = None,
        *,
        files: object = None,
    ) -> Environment:
        """Read an environment from its text, or from an object sent in its place; nothing is an empty one.

        `files` is the request's `environment_files`.

        Raises:
            InvalidTemplate: with all its faults.
            LimitExceeded: it is too large.
        """
        if files:
            raise InvalidTemplate(
                [
                    _fault(
                        "environment-files-not-supported-yet",
                        "environment_files are not supported yet; send one environment",
                    )
                ]
            )
        limits = limits or Limits()
        if source is None:
            return cls()
        if isinstance(source, Mapping):
            document = dict(source)
            check_size(document, limits, "environment")
        else:
            document = parse(source, limits, "environment")
        if document and not any(section in document for section in SECTIONS):
            document = {"parameters": document}  # bare values, without a section
        faults = _faults(document)
        if faults:
            raise InvalidTemplate(faults)
        return cls(
            parameters=document.get("parameters", {}),
            parameter_defaults=document.get("parameter_defaults", {}),
            resource_registry=document.get("resource_registry", {}),
            encrypted_param_names=tuple(document.get("encrypted_param_names", ())),
            event_sinks=tuple(document.get("event_sinks", ())),
            parameter_merge_strategies=document.get("parameter_merge_strategies", {}),
        )

    def with_parameters(self, parameters: Mapping[str, Any]) -> Environment:
        """Return the environment with a request's own parameters on top."""
        return Environment(
            {**self.parameters, **parameters},
            self.parameter_defaults,
            self.resource_registry,
            self.encrypted_param_names,
            self.event_sinks,
            self.parameter_merge_strategies,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the environment the way the API shows it; what is hidden is the caller's to mask."""
        return {
            "parameters": dict(self.parameters),
            "parameter_defaults": dict(self.parameter_defaults),
            "resource_registry": {"resources": {}, **self.resource_registry},
            "encrypted_param_names": list(self.encrypted_param_names),
            "event_sinks": list(self.event_sinks),
        }


def _faults(document: Mapping[str, Any]) -> list[Diagnostic]:
    faults = []
    hints = Hints()
    for name, body in document.items():
        if name not in SECTIONS:
            hint = hints.near(name, SECTIONS)
            faults.append(_fault("unknown-section", f'environment has wrong section "{name}"', name, hint))
        elif body is None:
            faults.append(_fault("empty-section", f'environment has empty section "{name}"', name))
        elif not isinstance(body, _LISTS.get(name, dict)):
            wanted = "list" if name in _LISTS else "map"
            faults.append(_fault("wrong-type", f'environment section "{name}" must be a {wanted}', name))
        elif name == "resource_registry" and isinstance(body, dict):
            faults += _registry_faults(body)
        elif name == "event_sinks" and body:
            faults.append(_fault("event-sinks-not-supported-yet", "event_sinks are not supported yet.", name))
    return faults


def _registry_faults(registry: Mapping[str, Any]) -> list[Diagnostic]:
    faults = []
    for name, target in registry.items():
        if name == "resources" and not target:
            continue
        message = f'The resource_registry entry "{name}" is not supported yet.'
        faults.append(_fault("registry-not-supported-yet", message, f"resource_registry.{name}"))
    return faults


def _fault(code: str, message: str, path: str = "", hint: str = "") -> Diagnostic:
    return Diagnostic(code, message, path, hint=hint, heat_type="HTTPBadRequest")
