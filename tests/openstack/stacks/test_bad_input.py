"""Input that a cloud does not accept: refused with its location where a look-up finds it, otherwise a failure
with resource, message and request id of the service.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from api.response.errors import STATUSES
from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.block_storage import VOLUME_TYPES
from orchestrator.clients.openstack.compute import FLAVORS
from orchestrator.clients.openstack.networking.network import NETWORKS
from orchestrator.errors import InvalidTemplate, OrchestratorError
from orchestrator.resources.openstack.nova.server import state
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of, ref
from tests.scenarios.warm_database import Kept

REQUEST_ID = re.compile(r"\(Request-ID: req-[0-9a-f-]{36}\)")
Resources = Mapping[str, Any]


def refused(world: CloudWorld, resources: Resources, status: int = 400) -> dict[str, str]:
    """Return the faults of a template that is refused, by their location."""
    with pytest.raises(OrchestratorError) as caught:
        world.create("s", resources)
    assert STATUSES[type(caught.value)] == status
    if not isinstance(caught.value, InvalidTemplate):
        return {"": str(caught.value)}
    return {fault.path: fault.message for fault in caught.value.diagnostics}


def failed(world: CloudWorld, resources: Resources, name: str, state: str = "CREATE_FAILED") -> str:
    """Create a stack that fails; return the reason of the resource, which the stack's contains."""
    uuid = world.create("s", resources)
    world.settle_by_time(uuid, state)
    reason: str = world.resource(name).status_reason
    assert f"resources.{name}: " in reason
    assert reason in world.stack_row("s").status_reason
    world.delete("s")
    world.settle_by_time(uuid, "DELETE_COMPLETE")
    return reason


def server(**properties: Any) -> dict[str, Any]:
    given = {"image": "cirros", "flavor": "m1.tiny", "networks": [{"network": "private"}], **properties}
    return of("OS::Nova::Server", **given)


def test_unknown_names_are_refused_together(world: CloudWorld) -> None:
    unknown = {"image": "no-image", "flavor": "no-flavor", "key_name": "no-key"}
    faults = refused(world, {"vm": server(**unknown, networks=[{"network": "no-net"}])})
    place = "resources.vm.properties"
    assert faults == {
        f"{place}.flavor": f"Property error: {place}.flavor: Error validating value 'no-flavor': "
        "The Flavor (no-flavor) could not be found.",
        f"{place}.image": f"Property error: {place}.image: Error validating value 'no-image': "
        "No image matching {'name': 'no-image'}.",
        f"{place}.key_name": f"Property error: {place}.key_name: Error validating value 'no-key': "
        "The Key (no-key) could not be found.",
        f"{place}.networks[0].network": f"Property error: {place}.networks[0].network: Error validating value"
        " 'no-net': Unable to find network with name or id 'no-net'",
    }


def test_an_ambiguous_name_is_refused(world: CloudWorld) -> None:
    made = [world.openstack.network.create(NETWORKS, {"name": "twin"})["id"] for _ in range(2)]
    (fault,) = refused(world, {"port": of("OS::Neutron::Port", network="twin")}).items()
    assert fault[0] == "resources.port.properties.network"
    assert "Multiple network matches found for name 'twin', use an ID to be more specific." in fault[1]
    for id_ in made:
        world.openstack.network.remove(NETWORKS, id_)


def test_a_port_without_an_address_left(world: CloudWorld) -> None:
    pool = [{"start": "10.84.0.2", "end": "10.84.0.2"}]
    resources = {
        "net": of("OS::Neutron::Net"),
        "subnet": of("OS::Neutron::Subnet", network=ref("net"), cidr="10.84.0.0/24", allocation_pools=pool),
        "first": of("OS::Neutron::Port", network=ref("net")),
        "second": of("OS::Neutron::Port", network=ref("net")) | {"depends_on": "first"},
    }
    reason = failed(world, resources, "second")
    assert "No more IP addresses available on network" in reason
    assert REQUEST_ID.search(reason)


def test_a_server_without_a_host(world: CloudWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "ERROR_SECONDS", 0.0)  # the error is final at once
    flavor = world.openstack.compute.create(
        FLAVORS, {"name": "giant", "ram": 64, "vcpus": 100_000, "disk": 1, "id": "giant"}
    )
    reason = failed(world, {"vm": server(flavor="giant")}, "vm")
    assert "No valid host was found" in reason
    assert REQUEST_ID.search(reason)
    world.openstack.compute.remove(FLAVORS, flavor["id"])


def test_a_volume_without_a_backend(world: CloudWorld) -> None:
    cinder = world.openstack.block_storage
    nowhere = cinder.create(
        VOLUME_TYPES, {"name": "nowhere", "extra_specs": {"volume_backend_name": "elsewhere"}}
    )
    reason = failed(world, {"disk": of("OS::Cinder::Volume", size=1, volume_type="nowhere")}, "disk")
    assert 'due to "schedule allocate volume:Could not find any available weighted backend."' in reason
    assert REQUEST_ID.search(reason)
    cinder.remove(VOLUME_TYPES, nowhere["id"])


def test_a_volume_that_the_backend_does_not_create(world: CloudWorld) -> None:
    world.cloud.faults.set({"volume_create": {"error": "broken"}})
    reason = failed(world, {"disk": of("OS::Cinder::Volume", size=1)}, "disk")
    assert "create volume from backend storage:Driver failed to create the volume.; schedule" in reason
    assert REQUEST_ID.search(reason)


def test_a_volume_that_the_hypervisor_does_not_attach(world: CloudWorld) -> None:
    world.cloud.faults.set({"attach_volume": {"error": "broken"}})
    pair = {"instance_uuid": ref("vm"), "volume_id": ref("disk")}
    resources = {
        "vm": server(),
        "disk": of("OS::Cinder::Volume", size=1),
        "use": of("OS::Cinder::VolumeAttachment", **pair),
    }
    reason = failed(world, resources, "use")
    assert "Volume attachment failed" in reason
    assert REQUEST_ID.search(reason)


@pytest.mark.parametrize(
    ("service", "path", "quota", "resource", "message"),
    [
        (
            "network",
            "/quotas",
            "port",
            of("OS::Neutron::Port", network="private"),
            "Quota exceeded for resou",
        ),
        ("compute", "/os-quota-sets", "instances", server(), "Quota exceeded for instances"),
        (
            "block_storage",
            "/os-quota-sets",
            "volumes",
            of("OS::Cinder::Volume", size=1),
            "VolumeLimitExceeded",
        ),
    ],
)
def test_without_quota_a_resource_waits_and_says_why(
    world: CloudWorld, service: str, path: str, quota: str, resource: dict[str, Any], message: str
) -> None:
    api = getattr(world.openstack, service)
    key, target = "quota" if service == "network" else "quota_set", f"{path}/{world.caller.project_id}"
    before = api.get(target)[key][quota]
    used = sum(1 for kind, _ in world.objects() if kind.endswith(f".{quota.removesuffix('s')}"))
    api.put(target, {key: {quota: used}})
    uuid = world.create("s", {"it": resource}, timeout_mins=1)
    world.retry(2)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    (node,) = world.nodes(label="it", state="waiting")
    assert message in node.last_error
    assert REQUEST_ID.search(node.last_error)
    world.elapse(61, "action")
    world.retry(4)
    assert world.state(uuid) == "CREATE_FAILED"
    reason = world.stack_row("s").status_reason
    assert "Timed out" in reason
    assert message in reason
    api.put(target, {key: {quota: before}})
    world.update("s", {"it": resource})
    world.settle(uuid, "UPDATE_COMPLETE")
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")


def test_conflicting_properties_are_refused(world: CloudWorld) -> None:
    faults = refused(world, {"vm": server(networks=[{"network": "private", "uuid": "private"}])})
    place = "resources.vm.properties.networks[0].network"
    assert list(faults) == [place]
    assert "Cannot define the following properties at the same time: networks.network" in faults[place]


def test_the_types_of_a_service_that_is_missing_in_the_region_are_refused(
    kept_stacks: Kept, simulated_cloud: SimulatedCloud, login: Cloud
) -> None:
    kept_stacks.empty()
    world = CloudWorld(kept_stacks.url, simulated_cloud, login, region_name="Elsewhere")
    faults = refused(world, {"net": of("OS::Neutron::Net")})
    assert list(faults) == ["resources.net.type"]
    assert list(faults.values()) == [
        "HEAT-E99001 Service neutron is not available for resource type OS::Neutron::Net, reason: neutron "
        "network endpoint is not in service catalog."
    ]
    world.close()


def test_the_types_of_a_missing_service_are_refused(world: CloudWorld) -> None:
    caller = world.caller
    assert caller.login is not None
    offered = frozenset(one for one in caller.login.endpoints if one[0] != "load-balancer")
    login = replace(caller.login, endpoints=offered)
    world.context = replace(world.context, caller=replace(caller, login=login))
    faults = refused(world, {"lb": of("OS::Octavia::LoadBalancer", vip_subnet="private-subnet")})
    assert "Service octavia is not available for resource type OS::Octavia::LoadBalancer" in str(faults)


@pytest.mark.parametrize(
    ("resource", "policy"),
    [
        (of("OS::Nova::Flavor", ram=64, vcpus=1, disk=1), "resource_types:OS::Nova::Flavor"),
        (of("OS::Keystone::Project"), "OS::Keystone::Project"),
    ],
    ids=["flavor", "project"],
)
def test_a_member_may_not_use_types_of_administrators(
    member_world: CloudWorld, resource: dict[str, Any], policy: str
) -> None:
    faults = refused(member_world, {"it": resource}, 403)
    assert faults == {"": f"You are not authorized to use {policy}."}


def test_a_member_may_not_use_a_foreign_project(member_world: CloudWorld) -> None:
    reason = failed(member_world, {"it": of("OS::Neutron::Net", tenant_id="f" * 32)}, "it")
    assert "other than the authenticated project in request is not allowed for the current user" in reason
    assert "(HTTP 400 from neutron)" in reason
    assert REQUEST_ID.search(reason)


def test_the_network_of_a_foreign_project_is_refused(member_world: CloudWorld, world: CloudWorld) -> None:
    foreign = world.openstack.network.create(NETWORKS, {"name": "foreign", "project_id": "f" * 32})["id"]
    faults = refused(member_world, {"port": of("OS::Neutron::Port", network=foreign)})
    assert list(faults) == ["resources.port.properties.network"]
    assert f"Unable to find network with name or id '{foreign}'" in str(faults)
    world.openstack.network.remove(NETWORKS, foreign)


def test_revoked_credentials_fail_the_resource_and_an_update_renews_them(world: CloudWorld) -> None:
    uuid = world.create("s", {"net": of("OS::Neutron::Net")})
    world.settle(uuid, "CREATE_COMPLETE")
    trusts = world.cloud.keystone.delegations.trusts
    for trust in list(trusts):
        trusts.remove(trust["id"])
    world.act("s", "check")
    world.settle_by_time(uuid, "CHECK_FAILED")
    reason = world.stack_row("s").status_reason
    assert (
        "net: could not be observed: AuthorizationFailure: the stack's credentials are no longer valid"
        in reason
    )
    assert REQUEST_ID.search(reason)
    world.update("s", {"net": of("OS::Neutron::Net", name="again")})
    world.settle(uuid, "UPDATE_COMPLETE")
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")


def test_a_repeated_delete_renews_revoked_credentials(world: CloudWorld) -> None:
    uuid = world.create("s", {"net": of("OS::Neutron::Net")})
    world.settle(uuid, "CREATE_COMPLETE")
    trusts = world.cloud.keystone.delegations.trusts
    for trust in list(trusts):
        trusts.remove(trust["id"])
    world.delete("s")
    world.settle_by_time(uuid, "DELETE_FAILED")
    assert "AuthorizationFailure: " in world.stack_row("s").status_reason
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
