"""Rules about the properties of a server that the schema cannot express, with Heat's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator.resources.base import Fault, Value
from orchestrator.resources.builtin.server_metadata import transport_faults
from orchestrator.resources.openstack.nova.server.devices import LOCAL_DISKS, SOURCES, is_bootable
from orchestrator.resources.openstack.written_values import (
    is_unset,
    may_equal,
    member,
    of_type,
    written,
)
from orchestrator.template.definition import ResourceDefinition

Entry = Mapping[str, Any]

SUBNET: Final = "OS::Neutron::Subnet"
DEVICES: Final = "block_device_mapping_v2"
UNSPECIFIED: Final = "At least one of the following properties must be specified: "


def faults(properties: Mapping[str, Value]) -> Iterator[Fault]:
    """Yield the faults in the properties; values that are not known yet are absent."""
    yield from transport_faults(properties)
    legacy, devices = properties.get("block_device_mapping"), properties.get(DEVICES)
    if legacy and devices:
        yield _conflict("block_device_mapping", DEVICES)
    for device in legacy or ():
        yield from _legacy_faults(device)
    for device in devices or ():
        yield from _device_faults(device)
    yield from _network_faults(properties)


def _legacy_faults(device: Entry) -> Iterator[Fault]:
    if device.get("volume_id") and device.get("snapshot_id"):
        yield _conflict("volume_id", "snapshot_id")


def _device_faults(device: Entry) -> Iterator[Fault]:
    given = [name for name in (*SOURCES, "swap_size", "ephemeral_size") if device.get(name)]
    if len(given) > 1:
        yield _conflict(*given)


def _network_faults(properties: Mapping[str, Value]) -> Iterator[Fault]:
    entries: Sequence[Entry] = properties.get("networks") or ()
    allocated = [entry for entry in entries if entry.get("allocate_network")]
    if allocated and len(entries) > 1:
        text = allocated[0]["allocate_network"]
        yield Fault(f'Can not use "allocate_network: {text}" with further networks.', "networks", alone=True)
    for entry in entries:
        others = [key for key in ("network", "port", "subnet") if entry.get(key)]
        if entry.get("allocate_network") and others:
            yield _conflict("networks.allocate_network", f"networks.{others[0]}")
        if entry.get("port") and entry.get("fixed_ip"):
            yield _conflict("networks.port", "networks.fixed_ip")
        if entry.get("port") and entry.get("port_extra_properties"):
            yield _conflict("networks.port", "networks.port_extra_properties")
    if properties.get("security_groups") and any(entry.get("port") for entry in entries):
        yield _conflict("security_groups", "networks/port")


def faults_as_written(
    name: str, properties: Mapping[str, Value], definition: ResourceDefinition
) -> Iterator[Fault]:
    """Yield faults about absent values. The values that the definition writes may not be known yet."""
    devices = properties.get(DEVICES) or ()
    legacy = properties.get("block_device_mapping") or ()
    unknown = [
        key
        for key in (DEVICES, "block_device_mapping")
        if written(definition, key) is not None and not properties.get(key)
    ]
    if is_unset(definition, "image") and not unknown and not is_bootable(devices, legacy):
        yield Fault(f"Neither image nor bootable volume is specified for instance {name}", alone=True)
    for entry in _maps(written(definition, "networks")):
        if not any(key in entry for key in ("network", "uuid", "port", "subnet", "allocate_network")):
            yield Fault(UNSPECIFIED + "network, port, allocate_network, subnet", "networks", alone=True)
    for device in _maps(written(definition, "block_device_mapping")):
        if "volume_id" not in device and "snapshot_id" not in device:
            given = f"for device mapping {device.get('device_name')}"
            message = f"Either volume_id or snapshot_id must be specified {given}"
            yield Fault(message, "block_device_mapping", alone=True)
    for device in _maps(written(definition, DEVICES)):
        if not any(key in device for key in (*SOURCES, "image_id", "volume_size", *LOCAL_DISKS)):
            message = (
                "Either volume_id, snapshot_id, image_id, swap_size, ephemeral_size or ephemeral_format must "
                "be specified."
            )
            yield Fault(message, DEVICES, alone=True)


def required_subnets(
    definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
) -> Iterator[str]:
    """Yield the subnets of the template from which the server may get addresses: it is created after and
    deleted before them (docs/internals/resource-types.md §D).
    """
    entries = _maps(written(definition, "networks"))
    networks = [member(entry, "network", "uuid") for entry in entries if "port" not in entry]
    selects = not entries or any("allocate_network" in entry for entry in entries)
    for subnet in of_type(resources, SUBNET):
        network = written(subnet, "network", "network_id")
        if selects or any(may_equal(network, candidate) for candidate in networks):
            yield subnet.name


def _maps(value: object) -> list[Entry]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def _conflict(*names: str) -> Fault:
    return Fault(f"Cannot define the following properties at the same time: {', '.join(names)}", alone=True)
