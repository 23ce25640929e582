"""OS::Nova::Server: block devices, validation, implicit requirements, the agent."""

from __future__ import annotations

import pytest

from orchestrator.resources.openstack.nova.server import devices
from orchestrator.resources.openstack.nova.server.server_type import Server
from orchestrator.template.definition import ResourceDefinition

SERVER = Server()


def definition(name, type_, **properties):
    return ResourceDefinition(name, type_, {"properties": properties}, frozenset(), {}, frozenset())


def faults(**written):
    """Return the messages for properties as a template writes them, all known."""
    written = {"flavor": "f1", **written}
    properties, schema_faults = SERVER.read_properties(written)
    assert schema_faults == []
    resources = {"web": definition("web", "OS::Nova::Server", **written)}
    found = [*SERVER.validate(properties, 3600.0), *SERVER.validate_among("web", properties, resources)]
    return [fault.message for fault in found]


# Block devices.


def test_a_volume_is_the_boot_device_of_a_server_without_image():
    volume = {"uuid": "v1", "source_type": "volume", "destination_type": "volume"}
    assert devices.mapping([{"volume_id": "v1", "delete_on_termination": True}], None) == [
        {**volume, "boot_index": 0, "delete_on_termination": True}
    ]


def test_the_image_is_the_first_device_and_volumes_are_data():
    mapped = devices.mapping([{"volume_id": "v1"}, {"snapshot_id": "s1", "volume_size": 4}], "i1")
    assert [(item["source_type"], item["boot_index"]) for item in mapped] == [
        ("image", 0),
        ("volume", -1),
        ("snapshot", -1),
    ]
    assert mapped[0]["destination_type"] == "local"


def test_local_disks_are_blank_and_end_with_the_server():
    swap, disk, empty = devices.mapping(
        [{"swap_size": 512}, {"ephemeral_size": 2, "ephemeral_format": "ext4"}, {"volume_size": 3}], None
    )
    local = {"source_type": "blank", "destination_type": "local", "boot_index": -1}
    assert swap == {**local, "delete_on_termination": True, "guest_format": "swap", "volume_size": 512}
    assert disk == {**local, "delete_on_termination": True, "guest_format": "ext4", "volume_size": 2}
    assert (empty["destination_type"], empty["volume_size"]) == ("volume", 3)


def test_an_image_may_become_a_volume():
    (device,) = devices.mapping([{"image": "i1", "volume_size": 8, "device_name": "vda"}], None)
    assert device.items() >= {"uuid": "i1", "source_type": "image", "destination_type": "volume"}.items()
    assert (device["boot_index"], device["device_name"]) == (0, "vda")


def test_the_former_notation_is_passed_on(cloud, context_of):
    cloud.answers("POST", "/servers", {"server": {"id": "s1"}}, status=202)
    given = {"device_name": "vda", "volume_id": "v1", "delete_on_termination": False}
    written = {"flavor": "f1", "block_device_mapping": [given], "user_data_format": "RAW"}
    ctx = context_of(SERVER.read_properties(written)[0])
    SERVER.create(ctx, ctx.properties)
    server = cloud.sent("POST")[0].body["server"]
    assert server["block_device_mapping"] == [given]
    assert "imageRef" not in server


# Validation.


def test_an_image_or_a_bootable_volume_is_required():
    message = "Neither image nor bootable volume is specified for instance web"
    assert faults() == [message]
    assert faults(block_device_mapping_v2=[{"volume_id": "v1", "boot_index": -1}]) == [message]
    assert faults(image="i1") == []
    assert faults(block_device_mapping_v2=[{"volume_id": "v1"}]) == []
    assert faults(block_device_mapping=[{"device_name": "vda", "volume_id": "v1"}]) == []


def test_properties_of_a_member_of_a_group_are_not_written_one_by_one():
    """Its image may not be known yet either."""
    resources = {"0": definition("0", "OS::Nova::Server", member=["definitions", "digest", "properties"])}
    for known in ({}, {"image": "i1"}):
        assert SERVER.validate_among("0", {"flavor": "f1", **known}, resources) == ()


def test_an_image_that_is_not_known_yet_is_no_fault():
    resources = {"web": definition("web", "OS::Nova::Server", image={"get_attr": ["a", "b"]})}
    assert SERVER.validate_among("web", {"flavor": "f1"}, resources) == ()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            {"networks": [{"fixed_ip": "10.0.0.1"}]},
            "At least one of the following properties must be specified: network, port, allocate_network, "
            "subnet",
        ),
        (
            {"networks": [{"port": "p1", "fixed_ip": "10.0.0.1"}]},
            "Cannot define the following properties at the same time: networks.port, networks.fixed_ip",
        ),
        (
            {"networks": [{"port": "p1"}], "security_groups": ["g"]},
            "Cannot define the following properties at the same time: security_groups, networks/port",
        ),
        (
            {"networks": [{"allocate_network": "auto"}, {"network": "n1"}]},
            'Can not use "allocate_network: auto" with further networks.',
        ),
        (
            {"block_device_mapping_v2": [{"volume_id": "v", "snapshot_id": "s"}]},
            "Cannot define the following properties at the same time: volume_id, snapshot_id",
        ),
        (
            {"block_device_mapping_v2": [{"device_name": "vdb"}]},
            "Either volume_id, snapshot_id, image_id, swap_size, ephemeral_size or ephemeral_format must be "
            "specified.",
        ),
        (
            {"block_device_mapping": [{"device_name": "vdb"}]},
            "Either volume_id or snapshot_id must be specified for device mapping vdb",
        ),
        (
            {"software_config_transport": "ZAQAR_MESSAGE"},
            "ZAQAR_MESSAGE is not supported here.",
        ),
    ],
)
def test_conflicting_properties_are_reported(written, message):
    assert faults(image="i1", **written) == [message]


def test_former_names_of_properties_are_translated():
    written = {"flavor": "f", "networks": [{"uuid": "n1"}], "block_device_mapping_v2": [{"image_id": "i1"}]}
    properties, _ = SERVER.read_properties(written)
    assert properties["networks"] == [{"network": "n1"}]
    assert properties["block_device_mapping_v2"] == [{"image": "i1"}]


# Implicit requirements.


def required(**server):
    resources = {
        "web": definition("web", "OS::Nova::Server", **server),
        "net": definition("net", "OS::Neutron::Net"),
        "sub": definition("sub", "OS::Neutron::Subnet", network={"get_resource": "net"}),
        "other": definition("other", "OS::Neutron::Subnet", network="public"),
        "unknown": definition("unknown", "OS::Neutron::Subnet", network={"get_param": "p"}),
    }
    return sorted(SERVER.implicit_requires(resources["web"], resources))


def test_a_server_requires_the_subnets_of_its_networks():
    assert required(networks=[{"network": {"get_resource": "net"}}]) == ["sub"]
    assert required(networks=[{"uuid": {"get_resource": "net"}}]) == ["sub"]
    assert required(networks=[{"network": "public"}]) == ["other", "unknown"]
    assert required(networks=[{"network": {"get_param": "q"}}]) == ["other", "unknown"]
    assert required(networks=[{"network": {"get_attr": ["x", "net"]}}]) == ["other", "sub", "unknown"]
    assert required(networks=[{"port": {"get_resource": "port"}}]) == []


def test_a_server_whose_networks_nova_selects_requires_all_subnets():
    assert required() == ["other", "sub", "unknown"]
    assert required(networks=[{"allocate_network": "auto"}]) == ["other", "sub", "unknown"]


def test_the_definitions_of_a_template_are_read_once_for_all_its_servers():
    class Definitions(dict):
        reads = 0

        def values(self):
            type(self).reads += 1
            return super().values()

        def items(self):
            type(self).reads += 1
            return super().items()

    resources = Definitions({f"web{number}": definition(f"web{number}", SERVER.name) for number in range(9)})
    resources["sub"] = definition("sub", "OS::Neutron::Subnet")
    for server in list(dict.values(resources))[:-1]:
        assert list(SERVER.implicit_requires(server, resources)) == ["sub"]
    assert Definitions.reads == 1
