"""The operator's environments, under every stack's own (docs/internals/hot-language.md §9.2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from orchestrator.errors import InvalidTemplate, Misconfigured, OrchestratorError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.environment import Environment
from orchestrator.template.parse import Limits
from orchestrator.template.resource_registry import SCALED, ResourceRegistry

# Former names of types, for old templates. An operator's entry of the same name replaces an alias.
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "OS::Quantum*": "OS::Neutron*",
        "OS::Metering::Alarm": "OS::Aodh::Alarm",
        "OS::Ceilometer::Alarm": "OS::Aodh::Alarm",
        "OS::Ceilometer::GnocchiResourcesAlarm": "OS::Aodh::GnocchiResourcesAlarm",
        "OS::Ceilometer::GnocchiAggregationByMetricsAlarm": "OS::Aodh::GnocchiAggregationByMetricsAlarm",
        "OS::Ceilometer::GnocchiAggregationByResourcesAlarm": "OS::Aodh::GnocchiAggregationByResourcesAlarm",
        "OS::Ceilometer::CombinationAlarm": "OS::Aodh::CombinationAlarm",
        SCALED: "AWS::EC2::Instance",  # the members of groups of instances
    }
)
_STACK_SECTIONS: Final = ("parameters", "parameter_defaults", "event_sinks")  # a stack's own business


@cache
def global_environment(directory: Path | None = None) -> JsonMapping:
    """Return the `resource_registry` of the installation: built-in aliases, overridden by the operator's
    files.

    The files are `*.yaml` in `directory`, ordered by name; a later file overrides entries of an earlier file.
    They are read once per process: a change requires a restart.

    Raises:
        Misconfigured: a file cannot be read or is invalid; the message names it.
    """
    registry: JsonObject = dict(ALIASES)
    for path in _files(directory) if directory is not None else ():
        for name, entry in _read(path).items():
            registry.pop(name, None)  # a null entry removes an earlier entry: a redefinition moves to the end
            registry[name] = entry
    return MappingProxyType(registry)


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == ".yaml" and path.is_file())
    except OSError as error:
        raise Misconfigured(
            f"the directory of global environments {directory} cannot be read: {error.strerror or error}"
        ) from error


def _read(path: Path) -> JsonMapping:
    try:
        environment = Environment.parse(path.read_bytes(), Limits(), file=str(path))
        ResourceRegistry.build({}, environment.resource_registry)
    except InvalidTemplate as error:
        first = error.diagnostics[0]
        place = f"{path}:{first.line}" if first.line else str(path)
        raise Misconfigured(f"the global environment {place} is invalid: {error}") from error
    except (OSError, OrchestratorError) as error:
        raise Misconfigured(f"the global environment {path} cannot be read: {error}") from error
    sections = [name for name in _STACK_SECTIONS if getattr(environment, name)]
    if sections:
        raise Misconfigured(
            f"the global environment {path} may hold a resource_registry only, not {', '.join(sections)}"
        )
    return environment.resource_registry
