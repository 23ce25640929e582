"""Samples of the types of Octavia."""

from __future__ import annotations

from orchestrator.testing.samples import Sample

SAMPLES = (
    Sample("OS::Octavia::AvailabilityZone", answers={"name": "replace"}),
    Sample(
        "OS::Octavia::AvailabilityZoneProfile",
        {"availability_zone_data": '{"compute_zone": "a"}'},
        changes={"availability_zone_data": '{"compute_zone": "b"}'},
    ),
    Sample(
        "OS::Octavia::FlavorProfile",
        {"flavor_data": '{"loadbalancer_topology": "SINGLE"}'},
        changes={"flavor_data": '{"loadbalancer_topology": "ACTIVE_STANDBY"}'},
    ),
    Sample("OS::Octavia::PoolMember", answers={"monitor_address": "update", "monitor_port": "update"}),
)
