"""Property values as a template writes them, before functions are evaluated.

Implicit requirements are derived from them: a port requires the subnets of its network. Two values may mean
the same object although they are written differently; a requirement too many only costs time, a missing
requirement breaks a create or a delete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator.resources.base import Fault
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.functions.member import NAME as MEMBER

Definitions = Mapping[str, ResourceDefinition]

_FORMER: Final = "OS::Quantum::"
_REFERENCES: Final = frozenset({"get_resource", "Ref"})
# Functions that may return all properties of a resource; the names of properties do not contain "::".
_MAPS: Final = frozenset(
    {"get_param", "get_attr", "map_merge", "map_replace", "yaql", "if", "Ref", "resource_facade", MEMBER}
)


class _Index:
    """The definitions of a template by type; the last template is kept, for all its resources ask."""

    def __init__(self) -> None:
        self.last: tuple[Definitions, dict[str, list[ResourceDefinition]]] | None = None

    def of_type(self, resources: Definitions, type_name: str) -> Sequence[ResourceDefinition]:
        last = self.last
        if last is None or last[0] is not resources:
            by_type: dict[str, list[ResourceDefinition]] = {}
            for definition in resources.values():
                by_type.setdefault(canonical(definition.type), []).append(definition)
            self.last = last = (resources, by_type)
        return last[1].get(type_name, ())


_index = _Index()


def canonical(type_name: str) -> str:
    """Return the present name of a type."""
    return type_name.replace(_FORMER, "OS::Neutron::", 1) if type_name.startswith(_FORMER) else type_name


def of_type(resources: Definitions, *type_names: str) -> Iterator[ResourceDefinition]:
    """Yield the definitions of these types."""
    for type_name in type_names:
        yield from _index.of_type(resources, type_name)


def written(definition: ResourceDefinition, *names: str) -> Any:
    """Return the first of these properties that is written, None if none is."""
    properties = definition.body.get("properties")
    if not isinstance(properties, Mapping):
        return None
    return next((properties[name] for name in names if properties.get(name) is not None), None)


def member(value: Any, *names: str) -> Any:
    """Return the first of these members of a written map, None if none is."""
    if not isinstance(value, Mapping):
        return None
    return next((value[name] for name in names if value.get(name) is not None), None)


def may_equal(first: Any, second: Any) -> bool:
    """Whether two written values may be equal once they are known."""
    if first is None or second is None:
        return False
    if first == second:
        return True
    one_name, other_name = reference(first), reference(second)
    if one_name is not None and other_name is not None:
        return one_name == other_name
    if _is_function(first) and _is_function(second):
        return not (_is_parameter(first) and other_name) and not (_is_parameter(second) and one_name)
    return _is_attribute(first) or _is_attribute(second) or _is_parameter(first) or _is_parameter(second)


def reference(value: Any) -> str | None:
    """Return the name of the resource that a value refers to."""
    if isinstance(value, Mapping) and len(value) == 1:
        function, argument = next(iter(value.items()))
        if function in _REFERENCES and isinstance(argument, str):
            return argument
    return None


def requirements(definition: ResourceDefinition, resources: Definitions) -> Iterator[ResourceDefinition]:
    """Yield the definitions that a definition refers to."""
    for name in definition.requires:
        if name in resources:
            yield resources[name]


def subnets_of(network: Any, resources: Definitions) -> Iterator[str]:
    """Yield the names of the subnets that may belong to a network."""
    for subnet in of_type(resources, "OS::Neutron::Subnet"):
        if may_equal(network, written(subnet, "network", "network_id")):
            yield subnet.name


def port_subnets(port: ResourceDefinition, resources: Definitions) -> list[Any]:
    """Return the subnets of a port: of its addresses, else all subnets of its network."""
    addresses = written(port, "fixed_ips")
    items = addresses if isinstance(addresses, list) else ()
    named = [member(item, "subnet", "subnet_id") for item in items]
    found = [subnet for subnet in named if subnet is not None]
    network = written(port, "network", "network_id")
    return found or [{"get_resource": name} for name in subnets_of(network, resources)]


def interfaces_of_ports(definition: ResourceDefinition, resources: Definitions) -> Iterator[str]:
    """Yield the names of the router interfaces on the subnets of the ports that a definition refers to."""
    subnets = [subnet for port in requirements(definition, resources) for subnet in _subnets(port, resources)]
    for interface in of_type(resources, "OS::Neutron::RouterInterface"):
        attached = written(interface, "subnet", "subnet_id")
        if any(may_equal(subnet, attached) for subnet in subnets):
            yield interface.name


def _subnets(holder: ResourceDefinition, resources: Definitions) -> list[Any]:
    """Return the subnets of a port, or of the address of a load balancer."""
    if canonical(holder.type) == "OS::Neutron::Port":
        return port_subnets(holder, resources)
    return [written(holder, "vip_subnet")] if holder.type == "OS::Octavia::LoadBalancer" else []


def with_router(router: Any, resources: Definitions, *type_names: str) -> Iterator[str]:
    """Yield the names of the resources of these types on a router."""
    for definition in of_type(resources, *type_names):
        if may_equal(router, written(definition, "router", "router_id")):
            yield definition.name


def conflict(*names: str) -> Fault:
    """Return the fault of properties that exclude each other, as Heat words it."""
    return Fault(f"Cannot define the following properties at the same time: {', '.join(names)}.", alone=True)


def unspecified(
    name: str, resources: Definitions, alternatives: Iterable[str], *former: str
) -> Sequence[Fault]:
    """Return the fault of a resource with none of the alternative properties, as Heat words it."""
    choice = list(alternatives)
    if not is_unset(resources.get(name), *choice, *former):
        return ()
    message = f"At least one of the following properties must be specified: {', '.join(choice)}."
    return (Fault(message, alone=True),)


def is_unset(definition: ResourceDefinition | None, *names: str) -> bool:
    """Whether none of these properties is written, nor may be the result of a function."""
    properties = {} if definition is None else definition.body.get("properties") or {}
    if not isinstance(properties, Mapping) or any(key in _MAPS or "::" in key for key in properties):
        return False
    return all(properties.get(name) is None for name in names)


def _is_function(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and isinstance(next(iter(value)), str)


def _is_parameter(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and "get_param" in value


def _is_attribute(value: Any) -> bool:
    return _is_function(value) and not _is_parameter(value) and reference(value) is None
