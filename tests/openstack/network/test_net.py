"""OS::Neutron::Net on a cloud."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.network import NETWORKS
from orchestrator.resources.openstack.neutron.networks.net import Net
from tests.openstack.driver import Driver


def test_a_network_is_created_changed_and_deleted(driver: Driver) -> None:
    net = driver.create(Net, {"tags": ["b", "a"], "value_specs": {"mtu": 1400}})
    attributes = driver.attributes(net, "show", "segments", "status")
    assert attributes["status"] == "ACTIVE"
    assert attributes["mtu"] == 1400
    assert attributes["name"] == driver.resources[net].ctx.physical_name
    assert sorted(attributes["show"]["tags"]) == ["a", "b"]
    assert attributes["show"]["description"] == ""
    assert attributes["segments"]
    assert driver.drift(net) == {}
    assert driver.find(net) == [net]
    driver.update(
        net, name=driver.name(), tags=["c"], admin_state_up=False, shared=True, dns_domain="a.test."
    )
    assert driver.drift(net) == {}
    driver.update(net, name=None, tags=None, shared=None)
    assert driver.attributes(net)["name"] == driver.resources[net].ctx.physical_name
    assert driver.find(net) == [net]
    driver.delete(net)
    assert driver.openstack.network.find(NETWORKS, net) is None


def test_a_member_creates_a_network(member: Driver) -> None:
    member.delete(member.create(Net, {"name": member.name()}))


def test_drift_of_a_network_is_reported(driver: Driver) -> None:
    net = driver.create(Net, {"tags": ["a"]})
    driver.openstack.network.update(NETWORKS, net, {"name": "other", "admin_state_up": False})
    assert driver.drift(net) == {"admin_state_up": False}
    assert (driver.observe(net).properties or {})["name"] == "other"
