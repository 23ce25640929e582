"""A resource of each type with a unique given name, and the change that replaces it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.json_types import JsonObject
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import TASKS, of, ref

NAME: Final = "unique"
FIRST_KEY: Final = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDN first"
SECOND_KEY: Final = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDO second"
IN_DOMAIN: Final = {"name": NAME, "domain": "default"}


def named(column: str, value: Any = NAME) -> Callable[[JsonObject], bool]:
    """Return a rule that recognizes objects with a name."""
    return lambda row: bool(row[column] == value)


BY_NAME: Final = named("name")


@dataclass(frozen=True)
class Named:
    """A resource with a given name, and the objects of this name in the simulated cloud."""

    type: str
    kind: str  # of the objects
    properties: Mapping[str, Any]
    replacing: Mapping[str, Any] = field(default_factory=dict)  # {}: only a mark replaces the resource
    shown: str = "name"  # a column of the object that follows from the definition
    matches: Callable[[JsonObject], bool] = BY_NAME
    others: Mapping[str, Any] = field(default_factory=dict)  # resources of a stack beside it
    is_refused: bool = True  # a second object of the name, at once
    known: set[str] = field(default_factory=set)  # ids of objects that were there before

    def resources(self, *, changed: bool = False) -> dict[str, Any]:
        """Return the resources of a template."""
        return {"it": of(self.type, **{**self.properties, **(self.replacing if changed else {})})}

    def objects(self, world: CloudWorld) -> list[Any]:
        """Return a column of the objects with the name."""
        world.cloud.schedule.run_due()
        return [row[self.shown] for row in world.cloud.state.table(self.kind) if self.is_own(row)]

    def is_own(self, row: JsonObject) -> bool:
        """Return whether an object has the name."""
        return self.matches(row) and row["id"] not in self.known


ZONE: Final = of("OS::Designate::Zone", name="base.example.org.", email="a@example.org")
PROFILES: Final = {
    f"profile{number}": of(
        "OS::Octavia::AvailabilityZoneProfile",
        name=f"zones-{number}",
        availability_zone_data=f'{{"compute_zone": "nova{number}"}}',
    )
    for number in (1, 2)
}
FLAVOR_PROFILES: Final = {
    f"profile{number}": of(
        "OS::Octavia::FlavorProfile", name=f"flavors-{number}", flavor_data=f'{{"n": {number}}}'
    )
    for number in (1, 2)
}


def balanced(place: str) -> dict[str, Any]:
    """Return a load balancer with a listener and a pool."""
    balancer = f"balancer-{place}"
    parts = {"loadbalancer": ref("balancer"), "protocol": "HTTP"}
    return {
        "balancer": of("OS::Octavia::LoadBalancer", name=balancer, vip_subnet="private-subnet"),
        "listener": of("OS::Octavia::Listener", name=f"listener-{place}", protocol_port=80, **parts),
        "pool": of("OS::Octavia::Pool", name=f"pool-{place}", lb_algorithm="ROUND_ROBIN", **parts),
    }


SIZE: Final = {"ram": 64, "vcpus": 1}

NAMED: Final = (
    Named(
        "OS::Nova::KeyPair",
        "nova.key_pair",
        {"name": NAME, "public_key": FIRST_KEY},
        {"public_key": SECOND_KEY},
        "public_key",
    ),
    Named("OS::Nova::Flavor", "nova.flavor", {"name": NAME, **SIZE}, {"ram": 128}, "ram"),
    Named("OS::Nova::Flavor", "nova.flavor", {"flavorid": NAME, **SIZE}, {"ram": 128}, "ram", named("id")),
    Named("OS::Nova::HostAggregate", "nova.aggregate", {"name": NAME}),
    Named("OS::Cinder::VolumeType", "cinder.type", {"name": NAME}),
    Named(
        "OS::Cinder::EncryptedVolumeType",
        "cinder.type",
        {"volume_type": "base", "provider": "luks"},
        matches=lambda row: row["name"] == "base" and row["encryption"] is not None,
        others={"base": of("OS::Cinder::VolumeType", name="base")},
    ),
    Named("OS::Cinder::QoSSpecs", "cinder.qos_specs", {"name": NAME, "specs": {"a": "b"}}),
    Named("OS::Keystone::Domain", "keystone.domain", {"name": NAME}),
    Named(
        "OS::Keystone::Project",
        "keystone.project",
        IN_DOMAIN,
        {"parent": "base"},
        "parent_id",
        others={"base": of("OS::Keystone::Project", name="base", domain="default")},
    ),
    Named("OS::Keystone::User", "keystone.user", IN_DOMAIN),
    Named("OS::Keystone::Group", "keystone.group", IN_DOMAIN),
    Named("OS::Keystone::Role", "keystone.role", {"name": NAME}),
    Named("OS::Keystone::Region", "keystone.region", {"id": NAME}, matches=named("id"), shown="id"),
    Named(
        "OS::Designate::Zone",
        "designate.zone",
        {"name": "unique.example.org.", "email": "a@example.org", "attributes": {"tier": "1"}},
        {"attributes": {"tier": "2"}},
        "attributes",
        named("name", "unique.example.org."),
    ),
    Named(
        "OS::Designate::RecordSet",
        "designate.recordset",
        {"name": "www.base.example.org.", "zone": "base.example.org.", "type": "A", "records": ["192.0.2.1"]},
        matches=named("name", "www.base.example.org."),
        others={"base": ZONE},
    ),
    Named(
        "OS::Mistral::Workflow",
        "mistral.workflow",
        {"name": NAME, "type": "direct", "tasks": TASKS},
    ),
    Named(
        "OS::Mistral::CronTrigger",
        "mistral.cron_trigger",
        {"name": NAME, "pattern": "0 1 * * *", "workflow": {"name": "base"}},
        {"pattern": "0 2 * * *"},
        "pattern",
        others={"base": of("OS::Mistral::Workflow", name="base", type="direct", tasks=TASKS)},
    ),
    Named(
        "OS::Octavia::AvailabilityZone",
        "octavia.availability_zone",
        {"name": NAME, "availability_zone_profile": "zones-1"},
        {"availability_zone_profile": "zones-2"},
        "availability_zone_profile_id",
        others=PROFILES,
    ),
    Named(
        "OS::Octavia::Flavor",
        "octavia.flavor",
        {"name": NAME, "flavor_profile": "flavors-1"},
        {"flavor_profile": "flavors-2"},
        "flavor_profile_id",
        others=FLAVOR_PROFILES,
    ),
    Named(
        "OS::Swift::Container",
        "swift.container",
        {"name": NAME, "X-Container-Meta": {"colour": "green"}},
        {"X-Container-Meta": {"colour": "blue"}},
        "headers",
        is_refused=False,
    ),
    Named(
        "OS::Cinder::QoSAssociation",
        "cinder.type",
        {"qos_specs": "specs-1", "volume_types": ["associated"]},
        {"qos_specs": "specs-2"},
        "qos_specs_id",
        lambda row: row["name"] == "associated" and row["qos_specs_id"] is not None,
        {
            "specs1": of("OS::Cinder::QoSSpecs", name="specs-1", specs={"a": "1"}),
            "specs2": of("OS::Cinder::QoSSpecs", name="specs-2", specs={"a": "2"}),
            "type": of("OS::Cinder::VolumeType", name="associated"),
        },
        is_refused=False,
    ),
    Named(
        "OS::Neutron::SecurityGroupRule",
        "neutron.security_group_rule",
        {"security_group": "ruled", "port_range_min": 4242, "port_range_max": 4242, "description": "a"},
        {"description": "b"},
        "port_range_min",
        lambda row: row["port_range_min"] == 4242,
        {"group": of("OS::Neutron::SecurityGroup", name="ruled")},
        is_refused=False,
    ),
    Named(
        "OS::Neutron::RouterInterface",
        "neutron.port",
        {"subnet": "routed", "router": "router-1"},
        {"router": "router-2"},
        "device_id",
        lambda row: "interface" in row["device_owner"] and row["fixed_ips"][0]["ip_address"] == "10.44.0.1",
        {
            "net": of("OS::Neutron::Net"),
            "subnet": of("OS::Neutron::Subnet", name="routed", network=ref("net"), cidr="10.44.0.0/24"),
            "router1": of("OS::Neutron::Router", name="router-1"),
            "router2": of("OS::Neutron::Router", name="router-2"),
        },
        is_refused=False,
    ),
    Named(
        "OS::Octavia::Listener",
        "octavia.listener",
        {"loadbalancer": "balancer-a", "protocol_port": 4242, "protocol": "HTTP"},
        {"protocol": "TCP"},
        "protocol",
        named("protocol_port", 4242),
        balanced("a"),
        is_refused=False,
    ),
    Named(
        "OS::Octavia::Pool",
        "octavia.pool",
        {"listener": "listener-b", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "name": NAME},
        {"protocol": "PROXY"},
        "protocol",
        others=balanced("b"),
        is_refused=False,
    ),
    Named(
        "OS::Octavia::PoolMember",
        "octavia.member",
        {"pool": "pool-c", "address": "10.10.1.77", "protocol_port": 4242, "monitor_port": 1},
        shown="monitor_port",
        matches=named("protocol_port", 4242),
        others=balanced("c"),
        is_refused=False,
    ),
    Named(
        "OS::Octavia::HealthMonitor",
        "octavia.healthmonitor",
        {"pool": "pool-d", "type": "HTTP", "delay": 4242, "timeout": 3, "max_retries": 3},
        {"type": "TCP"},
        "type",
        named("delay", 4242),
        balanced("d"),
        is_refused=False,
    ),
    *(
        Named(
            f"OS::{service}::Quota",
            f"{service.lower()}.quota",
            {"project": f"limited-{service}", quota: 12345},
            matches=lambda row, quota=quota: row.get(quota) == 12345,
            shown=quota,
            others={"project": of("OS::Keystone::Project", name=f"limited-{service}", domain="default")},
            is_refused=False,
        )
        for service, quota in (("Nova", "cores"), ("Cinder", "volumes"), ("Octavia", "pool"))
    ),
    *(
        Named(
            f"OS::Keystone::{kind}RoleAssignment",
            "keystone.assignment",
            {kind.lower(): f"assigned-{kind}", "roles": [{"role": f"for-{kind}", "project": "demo"}]},
            matches=lambda row, kind=kind: row["actor"].startswith(f"{kind.lower()}s/"),
            shown="target",
            others={
                "subject": of(f"OS::Keystone::{kind}", name=f"assigned-{kind}", domain="default"),
                "role": of("OS::Keystone::Role", name=f"for-{kind}"),
            },
            is_refused=False,
        )
        for kind in ("User", "Group")
    ),
)
