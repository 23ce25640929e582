"""Look-ups on a cloud: names, ids, and the faults of unknown and ambiguous names."""

from __future__ import annotations

import pytest

from orchestrator.errors import ProviderError
from orchestrator.lookups.kinds import LookupFault, look_up
from tests.openstack.driver import Driver

UNKNOWN = {
    "nova.flavor": "The Flavor ({}) could not be found.",
    "nova.keypair": "The Key ({}) could not be found.",
    "nova.server": "The Server ({}) could not be found.",
    "glance.image": "No image matching {{'name': '{}'}}.",
    "neutron.network": "Unable to find network with name or id '{}'",
    "neutron.port": "Unable to find port with name or id '{}'",
    "neutron.qos_policy": "Unable to find policy with name or id '{}'",
    "neutron.router": "Unable to find router with name or id '{}'",
    "neutron.security_group": "Unable to find security_group with name or id '{}'",
    "neutron.subnet": "Unable to find subnet with name or id '{}'",
    "neutron.subnetpool": "Unable to find subnetpool with name or id '{}'",
    "neutron.address_scope": "Unable to find address_scope with name or id '{}'",
    "neutron.segment": "Unable to find segment with name or id '{}'",
    "cinder.volume": "The Volume ({}) could not be found.",
    "cinder.snapshot": "The VolumeSnapshot ({}) could not be found.",
    "cinder.vtype": "The VolumeType ({}) could not be found.",
    "cinder.qos_specs": "The QoSSpecs ({}) could not be found.",
    "keystone.domain": "The KeystoneDomain ({}) could not be found.",
    "keystone.group": "The KeystoneGroup ({}) could not be found.",
    "keystone.project": "The KeystoneProject ({}) could not be found.",
    "keystone.region": "The KeystoneRegion ({}) could not be found.",
    "keystone.role": "The KeystoneRole ({}) could not be found.",
    "keystone.service": "The KeystoneService ({}) could not be found.",
    "keystone.user": "The KeystoneUser ({}) could not be found.",
}
ABSENT_ID = "5a2c3f66-6d5c-4c0f-9f3c-0a7a3f0c1e11"


def found(driver: Driver, kind: str, value: str) -> str:
    return driver.request(lambda: look_up(driver.openstack, kind, value))


@pytest.mark.parametrize("kind", list(UNKNOWN))
def test_an_unknown_name_or_id_is_a_fault(driver: Driver, kind: str) -> None:
    for value in (driver.name(), ABSENT_ID):
        with pytest.raises(LookupFault) as caught:
            found(driver, kind, value)
        assert str(caught.value) == UNKNOWN[kind].format(value)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("keystone.project", "demo"), ("keystone.role", "member"), ("keystone.domain", "Default")],
)
def test_an_object_of_keystone_is_found_by_name_and_id(driver: Driver, kind: str, name: str) -> None:
    id_ = found(driver, kind, name)
    assert found(driver, kind, id_) == id_


def test_a_network_is_found_by_name_and_id_until_the_name_is_ambiguous(driver: Driver) -> None:
    name = driver.name()
    id_ = driver.create("OS::Neutron::Net", {"name": name})
    assert [found(driver, "neutron.network", value) for value in (name, id_)] == [id_, id_]
    driver.create("OS::Neutron::Net", {"name": name})
    with pytest.raises(LookupFault, match="Multiple network matches found for name"):
        found(driver, "neutron.network", name)


def test_a_name_of_the_own_project_wins_for_an_administrator(driver: Driver) -> None:
    # every project has a group of this name
    assert found(driver, "neutron.security_group", "default")


def test_a_member_may_not_look_up_projects(member: Driver) -> None:
    with pytest.raises(ProviderError) as caught:
        found(member, "keystone.project", "service")
    assert caught.value.kind == "Forbidden"
