"""Values that Heat accepts or refuses by the schemas of its types."""

from __future__ import annotations

import pytest

from orchestrator.resources.registry import load_registry


def messages(type_name, values):
    return [fault.message for fault in load_registry()[type_name].read_properties(values)[1]]


def server(**values):
    return "OS::Nova::Server", {"flavor": "f", "image": "i", **values}


def server_with_port(**extras):
    return server(networks=[{"network": "n", "port_extra_properties": extras}])


@pytest.mark.parametrize(
    ("type_name", "values"),
    [
        ("OS::Cinder::QoSSpecs", {"name": "gold", "specs": {"a": 1}}),
        ("OS::Cinder::Volume", {"size": 1, "multiattach": True}),
        server(admin_user="ubuntu"),
        server(block_device_mapping_v2=[{"volume_id": "v", "disk_bus": "sata"}]),
        server(block_device_mapping_v2=[{"ephemeral_size": 1, "ephemeral_format": "ext2"}]),
        server(block_device_mapping_v2=[{"ephemeral_size": 1, "ephemeral_format": "ntfs"}]),
        server_with_port(
            **{"binding:vnic_type": "direct", "allowed_address_pairs": [{"ip_address": "10.0.0.0/8"}]}
        ),
    ],
)
def test_values_that_heat_accepts_are_accepted(type_name, values):
    assert messages(type_name, values) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (server_with_port(**{"binding:vnic_type": "nonsense"}), '"nonsense" is not an allowed value'),
        (server_with_port(allowed_address_pairs=[{"ip_address": "nonsense"}]), "not a valid IP address"),
        (
            server_with_port(allowed_address_pairs=[{"ip_address": "10.0.0.1", "mac_address": "x"}]),
            "MAC address",
        ),
        (
            (
                "OS::Cinder::EncryptedVolumeType",
                {"provider": "luks", "volume_type": "t", "cipher": "rot13"},
            ),
            '"rot13" is not an allowed value',
        ),
    ],
)
def test_values_that_heat_refuses_are_refused(given, message):
    (found,) = messages(*given)
    assert message in found
