"""Look-ups of each service: the requests, the ids, and Heat's faults."""

from __future__ import annotations

from typing import Any, Final

import pytest

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.errors import Misconfigured, ProviderBusy
from orchestrator.lookups import kinds
from orchestrator.lookups.kinds import LookupFault, can_look_up, look_up
from orchestrator.schema.custom import CLOUD
from orchestrator.testing.scripted_cloud import ScriptedCloud

ID: Final = "5a2c3f66-6d5c-4c0f-9f3c-0a7a3f0c1e11"
OTHER: Final = "5a2c3f66-6d5c-4c0f-9f3c-0a7a3f0c1e12"
NETWORKS: Final = r"/networks\?limit=500&name=private"


@pytest.fixture
def script() -> ScriptedCloud:
    """A cloud without any object."""
    made = ScriptedCloud()
    made.answers("GET", ".*", {}, status=404)
    made.answers("GET", r"/[a-z0-9/-]+\?.*", {})
    return made


def found(script: ScriptedCloud, kind: str, value: str) -> str:
    return look_up(OpenStack(script.cloud), kind, value)


def fault(script: ScriptedCloud, kind: str, value: str) -> str:
    with pytest.raises(LookupFault) as caught:
        found(script, kind, value)
    return str(caught.value)


def objects(key: str, *names: str) -> dict[str, Any]:
    ids = (ID, OTHER)
    return {key: [{"id": ids[index], "name": name} for index, name in enumerate(names)]}


def test_a_floating_ip_is_looked_up_by_its_address(script: ScriptedCloud) -> None:
    found_ips = {"floatingips": [{"id": ID}]}
    script.answers("GET", r"/floatingips\?limit=500&floating_ip_address=1.2.3.4&fields=id", found_ips)
    assert found(script, "neutron.floating_ip", "1.2.3.4") == ID
    assert fault(script, "neutron.floating_ip", "1.2.3.5") == "The floatingip (1.2.3.5) could not be found."


@pytest.mark.parametrize(
    ("kind", "target", "key"),
    [
        ("nova.flavor", r"/flavors\?limit=500", "flavors"),
        ("nova.server", r"/servers\?limit=500&name=it", "servers"),
        ("glance.image", r"/images\?limit=500&name=it", "images"),
        ("neutron.network", r"/networks\?limit=500&name=it", "networks"),
        ("neutron.qos_policy", r"/qos/policies\?limit=500&name=it", "policies"),
        ("cinder.volume", r"/volumes\?limit=500&name=it", "volumes"),
        ("cinder.vtype", r"/types\?limit=500", "volume_types"),
        ("octavia.pool", r"/lbaas/pools\?limit=500&name=it", "pools"),
        ("octavia.l7policy", r"/lbaas/l7policies\?limit=500&name=it", "l7policies"),
        ("keystone.project", r"/projects\?name=it", "projects"),
        ("keystone.service", r"/services\?name=it", "services"),
    ],
)
def test_an_object_is_found_by_its_name_with_a_single_request(script, kind, target, key):
    script.answers("GET", target, objects(key, "it", "it2"))
    assert found(script, kind, "it") == ID
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("kind", "path", "key"),
    [
        ("nova.server", "servers", "server"),
        ("neutron.port", "ports", "port"),
        ("neutron.security_group", "security-groups", "security_group"),
        ("cinder.snapshot", "snapshots", "snapshot"),
        ("keystone.user", "users", "user"),
    ],
)
def test_an_object_is_found_by_its_id_with_a_single_request(script, kind, path, key):
    script.answers("GET", f"/{path}/{ID}", {key: {"id": ID, "name": "it"}})
    assert found(script, kind, ID) == ID
    assert len(script.requests) == 1


def test_an_image_is_found_by_its_id(script):
    script.answers("GET", f"/images/{ID}", {"id": ID, "name": "it"})
    assert found(script, "glance.image", ID) == ID


def test_a_name_in_the_form_of_an_id_is_found(script):
    script.answers("GET", rf"/networks\?limit=500&name={ID}", {"networks": [{"id": OTHER, "name": ID}]})
    assert found(script, "neutron.network", ID) == OTHER


def test_a_flavor_is_found_by_any_id_and_a_listed_id_wins_over_a_name(script):
    script.answers("GET", r"/flavors\?.*", {"flavors": [{"id": "2", "name": "1"}, {"id": "1", "name": "m1"}]})
    assert found(script, "nova.flavor", "1") == "1"
    script.answers("GET", "/flavors/hidden", {"flavor": {"id": "hidden", "name": "h"}})
    assert found(script, "nova.flavor", "hidden") == "hidden"


def test_a_key_pair_and_a_region_are_found_by_their_name_only(script):
    script.answers("GET", "/os-keypairs/a%20key", {"keypair": {"name": "a key"}})
    script.answers("GET", "/regions/North", {"region": {"id": "North"}})
    assert found(script, "nova.keypair", "a key") == "a key"
    assert found(script, "keystone.region", "North") == "North"


def test_a_host_is_one_of_the_compute_services(script):
    script.answers("GET", r"/os-services\?.*", {"services": [{"host": "h1"}, {"host": "h2"}]})
    assert found(script, "nova.host", "h2") == "h2"
    assert fault(script, "nova.host", "h3") == "The Host (h3) could not be found."


def test_a_name_of_keystone_may_name_its_domain(script):
    script.answers("GET", r"/domains\?.*", {"domains": [{"id": OTHER, "name": "Ours"}]})
    script.answers("GET", rf"/users\?domain_id={OTHER}&name=ada", objects("users", "ada"))
    assert found(script, "keystone.user", "ada{Ours}") == ID


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nova.flavor", "The Flavor (it) could not be found."),
        ("nova.keypair", "The Key (it) could not be found."),
        ("nova.server", "The Server (it) could not be found."),
        ("glance.image", "No image matching {'name': 'it'}."),
        ("neutron.network", "Unable to find network with name or id 'it'"),
        ("nova.network", "Unable to find network with name or id 'it'"),
        ("neutron.qos_policy", "Unable to find policy with name or id 'it'"),
        ("cinder.volume", "The Volume (it) could not be found."),
        ("cinder.vtype", "The VolumeType (it) could not be found."),
        ("keystone.role", "The KeystoneRole (it) could not be found."),
        ("keystone.region", "The KeystoneRegion (it) could not be found."),
        ("keystone.service", "The KeystoneService (it) could not be found."),
    ],
)
def test_an_unknown_name_is_a_fault_in_heats_words(script, kind, message):
    assert fault(script, kind, "it") == message


@pytest.mark.parametrize(
    ("kind", "path", "key", "message"),
    [
        (
            "neutron.network",
            "networks",
            "networks",
            "Multiple network matches found for name 'it', use an ID to be more specific.",
        ),
        ("glance.image", "images", "images", "No image unique match found for {'name': 'it'}."),
        ("cinder.volume", "volumes", "volumes", "Multiple physical resources were found with name (it)."),
        (
            "keystone.service",
            "services",
            "services",
            "Keystone has more than one service with same name it. Please use service id instead of name",
        ),
    ],
)
def test_an_ambiguous_name_is_a_fault(script, kind, path, key, message):
    script.answers("GET", rf"/{path}\?.*", objects(key, "it", "it"))
    assert fault(script, kind, "it") == message


class Scoped(ScriptedCloud):
    """A cloud whose session knows its project."""

    def get_project_id(self):
        return "mine"


def test_of_equal_names_in_several_projects_the_own_object_is_meant():
    script = Scoped()
    groups = [
        {"id": "1", "name": "default", "project_id": "other"},
        {"id": "2", "name": "default", "project_id": "mine"},
        {"id": "3", "name": "default", "project_id": "third"},
    ]
    script.answers("GET", r"/security-groups\?.*", lambda _request: {"security_groups": groups})
    assert found(script, "neutron.security_group", "default") == "2"
    groups[2]["project_id"] = "mine"
    assert fault(script, "neutron.security_group", "default").startswith("Multiple security_group matches")
    groups[1]["project_id"] = groups[2]["project_id"] = "third"
    assert fault(script, "neutron.security_group", "default").startswith("Multiple security_group matches")


def test_a_service_that_is_busy_is_no_fault(script):
    script.answers("GET", ".*", {"message": "later"}, status=503)
    with pytest.raises(ProviderBusy):
        found(script, "neutron.network", "it")


def test_every_look_up_is_a_constraint_of_heat_and_others_are_unknown():
    assert kinds._BUILT_IN.keys() - CLOUD == {"neutron.floating_ip"}  # only for `Resolve` rules
    assert not can_look_up("trove.flavor")
    with pytest.raises(Misconfigured, match=r"there is no look-up trove\.flavor"):
        look_up(OpenStack(ScriptedCloud().cloud), "trove.flavor", "x")
