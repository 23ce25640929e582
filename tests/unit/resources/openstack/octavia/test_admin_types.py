"""Flavors, availability zones, their profiles and quotas of Octavia."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import FLAVOR_PROFILES, FLAVORS, ZONES
from orchestrator.resources.openstack.octavia.availability_zone import AvailabilityZone
from orchestrator.resources.openstack.octavia.flavor import Flavor
from orchestrator.resources.openstack.octavia.flavor_profile import FlavorProfile
from orchestrator.resources.openstack.octavia.quota import Quota
from tests.unit.resources.openstack.neutron.operation import NAME, TOKEN
from tests.unit.resources.openstack.octavia.operation import Operation

DATA = '{"loadbalancer_topology": "SINGLE"}'


def test_a_flavor_and_its_profile():
    profile = Operation(FlavorProfile, flavor_data=DATA, provider_name="amphora")
    profile.accepts("POST", FLAVOR_PROFILES)
    assert profile.create().physical_id == "x1"
    sent = {"name": NAME, "flavor_data": DATA, "provider_name": "amphora"}
    assert profile.bodies("POST") == [{"flavorprofile": sent}]
    flavor = Operation(Flavor, flavor_profile="f")
    flavor.accepts("POST", FLAVORS)
    flavor.create()
    sent = {"name": NAME, "description": "", "enabled": True, "flavor_profile_id": "f"}
    assert flavor.bodies("POST") == [{"flavor": sent}]


def test_a_profile_is_found_by_name_and_data():
    profile = Operation(FlavorProfile, flavor_data=DATA)
    spaced = '{"loadbalancer_topology":  "SINGLE"}'
    profile.lists(
        FLAVOR_PROFILES,
        {"id": "a", "name": NAME, "flavor_data": spaced},
        {"id": "b", "name": NAME, "flavor_data": "{}"},
    )
    assert profile.type.find(profile.ctx, TOKEN) == ["a"]
    assert profile.type.equal("flavor_data", DATA, spaced)


def test_the_id_of_a_zone_is_its_name():
    zone = Operation(AvailabilityZone, availability_zone_profile="z")
    zone.script.answers("POST", "/lbaas/availabilityzones", {"availability_zone": {"name": "az1"}})
    assert zone.create().physical_id == "az1"
    actual = {"name": "az1", "enabled": False, "description": "", "availability_zone_profile_id": "z"}
    zone.script.answers("GET", "/lbaas/availabilityzones/az1", {"availability_zone": actual})
    seen = zone.observe(id_="az1")
    assert seen.properties == {"enabled": False, "description": ""}
    assert seen.attributes == {"availability_zone_profile_id": "z"}
    assert zone.type.change({}, {}, frozenset({"name"})) == "replace"
    zone.accepts("PUT", ZONES, "az1")
    zone.update("enabled", id_="az1")
    assert zone.bodies("PUT") == [{"availability_zone": {"enabled": True}}]


def test_quotas():
    quota = Operation(Quota, project="p", pool=5)
    quota.script.answers("PUT", "/lbaas/quotas/p", {"quota": {}}, status=202)
    quota.script.answers("GET", "/lbaas/quotas/p", {"quota": {"pool": 5, "listener": -1}})
    quota.script.answers("DELETE", "/lbaas/quotas/p", status=204)
    assert quota.create().physical_id == "p"
    assert quota.bodies("PUT") == [{"quota": {"pool": 5}}]
    assert quota.type.find(quota.ctx, TOKEN) == "p"
    assert quota.observe(id_="p").properties == {"pool": 5, "listener": -1}
    quota.delete("p")
