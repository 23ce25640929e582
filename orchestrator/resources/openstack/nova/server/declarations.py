"""The properties and attributes of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.resources.base import Attribute, Property
from orchestrator.resources.openstack.neutron.networks.port import VNIC_TYPES
from orchestrator.schema.constraints import AllowedValues, Custom, Length, Range
from orchestrator.schema.translation import Replace, Resolve, Rule

RAW: Final = "RAW"
CFN_TOOLS: Final = "HEAT_CFNTOOLS"
SOFTWARE_CONFIG: Final = "SOFTWARE_CONFIG"
REPLACE: Final = "REPLACE"
IGNORE: Final = "IGNORE"
REBUILD: Final = "REBUILD"
REBUILD_KEEPING_DISK: Final = "REBUILD_PRESERVE_EPHEMERAL"

_PORT_EXTRAS: Final[Mapping[str, Property]] = {
    "value_specs": Property("map", "Further attributes of the port, passed on unchanged.", default={}),
    "admin_state_up": Property("boolean", "Whether the port is up.", default=True),
    "mac_address": Property("string", "The MAC address.", constraints=(Custom("mac_addr"),)),
    "allowed_address_pairs": Property(
        "list",
        "Further addresses that may pass through the port.",
        schema=Property(
            "map",
            schema={
                "mac_address": Property("string", "A MAC address.", constraints=(Custom("mac_addr"),)),
                "ip_address": Property(
                    "string",
                    "An IP address or a CIDR.",
                    required=True,
                    constraints=(Custom("ip_or_cidr"),),
                ),
            },
        ),
    ),
    "binding:vnic_type": Property(
        "string",
        "The type of the virtual interface.",
        default="normal",
        constraints=(AllowedValues(VNIC_TYPES),),
    ),
    "port_security_enabled": Property("boolean", "Whether port security is enabled."),
    "qos_policy": Property(
        "string", "Name or id of a QoS policy.", constraints=(Custom("neutron.qos_policy"),)
    ),
    "propagate_uplink_status": Property("boolean", "Whether the status of the uplink is propagated."),
    "no_fixed_ips": Property("boolean", "Whether the port has no addresses."),
}

_NETWORK: Final[Mapping[str, Property]] = {
    "network": Property(
        "string",
        "Name or id of the network.",
        update_allowed=True,
        constraints=(Custom("neutron.network"),),
    ),
    "uuid": Property(
        "string",
        "The former name of `network`.",
        update_allowed=True,
        hidden=True,
        constraints=(Custom("neutron.network"),),
    ),
    "allocate_network": Property(
        "string",
        "`auto`: nova selects or creates a network; `none`: no network. Excludes other entries.",
        update_allowed=True,
        constraints=(AllowedValues(("none", "auto")),),
    ),
    "port": Property(
        "string",
        "Name or id of an existing port.",
        update_allowed=True,
        constraints=(Custom("neutron.port"),),
    ),
    "subnet": Property(
        "string",
        "Name or id of the subnet from which the address is taken.",
        update_allowed=True,
        constraints=(Custom("neutron.subnet"),),
    ),
    "fixed_ip": Property(
        "string", "The address in the network.", update_allowed=True, constraints=(Custom("ip_addr"),)
    ),
    "floating_ip": Property("string", "Id or address of a floating IP.", update_allowed=True),
    "port_extra_properties": Property(
        "map", "Attributes of the port that the server creates.", update_allowed=True, schema=_PORT_EXTRAS
    ),
    "tag": Property("string", "A tag of the interface, visible in the guest.", update_allowed=True),
}

_DEVICE_V1: Final[Mapping[str, Property]] = {
    "device_name": Property("string", "Device name, such as vda.", required=True),
    "volume_id": Property("string", "Id of a volume.", constraints=(Custom("cinder.volume"),)),
    "snapshot_id": Property("string", "Id of a snapshot.", constraints=(Custom("cinder.snapshot"),)),
    "volume_size": Property("integer", "Size in GiB of a volume from a snapshot."),
    "delete_on_termination": Property("boolean", "Whether the volume is deleted with the server."),
}

_DEVICE: Final[Mapping[str, Property]] = {
    "device_name": Property("string", "Device name, such as vda."),
    "volume_id": Property("string", "Id of a volume.", constraints=(Custom("cinder.volume"),)),
    "image": Property("string", "Name or id of an image.", constraints=(Custom("glance.image"),)),
    "image_id": Property(
        "string", "The former name of `image`.", hidden=True, constraints=(Custom("glance.image"),)
    ),
    "snapshot_id": Property("string", "Id of a snapshot.", constraints=(Custom("cinder.snapshot"),)),
    "swap_size": Property("integer", "Size in MiB of a swap disk."),
    "ephemeral_size": Property("integer", "Size in GiB of a local disk.", constraints=(Range(min=1),)),
    "ephemeral_format": Property(
        "string",
        "File system of the local disk.",
        constraints=(AllowedValues(("ext2", "ext3", "ext4", "xfs", "ntfs")),),
    ),
    "device_type": Property("string", "Type of the device.", constraints=(AllowedValues(("cdrom", "disk")),)),
    "disk_bus": Property(
        "string",
        "Bus of the device.",
        constraints=(AllowedValues(("ide", "lame_bus", "sata", "scsi", "usb", "virtio")),),
    ),
    "boot_index": Property("integer", "Order of the boot devices; -1: not bootable."),
    "volume_size": Property("integer", "Size in GiB of a new volume."),
    "volume_type": Property("string", "Type of a new volume.", constraints=(Custom("cinder.vtype"),)),
    "delete_on_termination": Property("boolean", "Whether the volume is deleted with the server."),
}

PROPERTIES: Final[Mapping[str, Property]] = {
    "name": Property("string", "The name of the server.", update_allowed=True),
    "image": Property(
        "string", "Name or id of the image.", update_allowed=True, constraints=(Custom("glance.image"),)
    ),
    "block_device_mapping": Property(
        "list",
        "Block devices in nova's former notation.",
        schema=Property("map", schema=_DEVICE_V1),
    ),
    "block_device_mapping_v2": Property("list", "Block devices.", schema=Property("map", schema=_DEVICE)),
    "flavor": Property(
        "string",
        "Name or id of the flavor.",
        required=True,
        update_allowed=True,
        constraints=(Custom("nova.flavor"),),
    ),
    "flavor_update_policy": Property(
        "string",
        "How a change of the flavor is applied.",
        default="RESIZE",
        update_allowed=True,
        constraints=(AllowedValues(("RESIZE", REPLACE)),),
    ),
    "image_update_policy": Property(
        "string",
        "How a change of the image is applied.",
        default=REBUILD,
        update_allowed=True,
        constraints=(AllowedValues((REBUILD, REPLACE, REBUILD_KEEPING_DISK)),),
    ),
    "key_name": Property("string", "Name of a key pair.", constraints=(Custom("nova.keypair"),)),
    "availability_zone": Property("string", "The availability zone."),
    "security_groups": Property(
        "list", "Names or ids of security groups.", default=[], schema=Property("string", "A security group.")
    ),
    "networks": Property(
        "list",
        "The network interfaces, in their order.",
        update_allowed=True,
        schema=Property("map", schema=_NETWORK),
    ),
    "scheduler_hints": Property("map", "Hints for the selection of a host."),
    "metadata": Property("map", "Metadata of the server.", update_allowed=True, default={}),
    "user_data_format": Property(
        "string",
        "How `user_data` reaches the guest: unchanged (RAW), with the files of the cfn tools "
        "(HEAT_CFNTOOLS), or with the settings of an agent for deployments (SOFTWARE_CONFIG).",
        default=CFN_TOOLS,
        constraints=(AllowedValues((CFN_TOOLS, RAW, SOFTWARE_CONFIG)),),
    ),
    "user_data_update_policy": Property(
        "string",
        "How a change of `user_data` is applied.",
        default=REPLACE,
        update_allowed=True,
        constraints=(AllowedValues((REPLACE, IGNORE, REBUILD)),),
    ),
    "user_data": Property(
        "string", "User data, or the id of a software config.", default="", update_allowed=True
    ),
    "software_config_transport": Property(
        "string",
        "Transport by which the agent on the server receives its deployments.",
        default="POLL_SERVER_CFN",
        update_allowed=True,
        constraints=(
            AllowedValues(("POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE")),
        ),
    ),
    "reservation_id": Property("string", "Id of a reservation."),
    "config_drive": Property("boolean", "Whether the server has a config drive."),
    "diskConfig": Property(
        "string", "How the disk is partitioned.", constraints=(AllowedValues(("AUTO", "MANUAL")),)
    ),
    "personality": Property(
        "map",
        "Files to write to the guest's disk: contents by path.",
        default={},
        deprecated="write files with user_data",
    ),
    "admin_user": Property("string", "Not used.", hidden=True),
    "admin_pass": Property("string", "The administrator's password.", update_allowed=True),
    "tags": Property(
        "list",
        "Tags of the server.",
        update_allowed=True,
        schema=Property("string", "A tag.", constraints=(Length(max=60),)),
    ),
    "deployment_swift_data": Property(
        "map",
        "Object that POLL_TEMP_URL uses for the agent's metadata.",
        default={},
        update_allowed=True,
        schema={
            "container": Property("string", "The container.", constraints=(Length(min=1),)),
            "object": Property("string", "The object.", constraints=(Length(min=1),)),
        },
    ),
}

TRANSLATION: Final[tuple[Rule, ...]] = (
    Replace(("networks", "network"), sibling="uuid"),
    Replace(("block_device_mapping_v2", "image"), sibling="image_id"),
    Resolve(("image",), "glance.image"),
    Resolve(("flavor",), "nova.flavor"),
    Resolve(("networks", "network"), "neutron.network"),
    Resolve(("networks", "subnet"), "neutron.subnet"),
    Resolve(("networks", "port"), "neutron.port"),
    Resolve(("networks", "floating_ip"), "neutron.floating_ip"),
    Resolve(("networks", "port_extra_properties", "qos_policy"), "neutron.qos_policy"),
    Resolve(("block_device_mapping_v2", "image"), "glance.image"),
    Resolve(("security_groups",), "neutron.security_group"),
)

# What nova requires to be ready when it builds a server.
NEEDS_READY: Final = frozenset(
    {"image", "block_device_mapping", "block_device_mapping_v2", "scheduler_hints"}
)

EARLY_ATTRIBUTES: Final = frozenset({"name", "first_address"})
ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "name": Attribute("The name of the server.", type="string"),
    "addresses": Attribute(
        "Addresses by name and by id of the network, each with its port, subnets and network.",
        type="map",
        live=True,
    ),
    "networks": Attribute("Addresses by name of the network: lists of texts.", type="map"),
    "first_address": Attribute('The first address of the first network, "" without one.', type="string"),
    "instance_name": Attribute("Nova's name of the instance on its host.", type="string"),
    "accessIPv4": Attribute("The IPv4 address for access.", type="string"),
    "accessIPv6": Attribute("The IPv6 address for access.", type="string"),
    "console_urls": Attribute(
        "URLs of consoles by type of the console.", type="map", live=True, gives_access=True
    ),
    "tags": Attribute("The tags of the server.", type="list"),
    "os_collect_config": Attribute("The settings of the agent on the server.", type="map", secret=True),
}
