"""Zones and record sets of Designate, on the simulated cloud: the real control plane has none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.clients.openstack.platform_services.dns import RECORD_SETS, ZONES
from orchestrator.errors import ProviderConflict, ProviderError
from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.conftest import DIRECTORY
from tests.openstack.driver import Driver
from tests.openstack.network.ground import lives

pytestmark = pytest.mark.skipif(bool(DIRECTORY), reason="the control plane has no Designate")
ZONE, RECORDS = "OS::Designate::Zone", "OS::Designate::RecordSet"


def test_a_zone_is_created_changed_checked_and_deleted(driver: Driver) -> None:
    name = f"{driver.name()}.org."
    given = {"name": name, "email": "a@example.org", "attributes": {"pool": "gold"}}
    zone = lives(driver, ZONE, given, {"ttl": 300, "description": "d"}, {"email": "b@example.org"})
    first = driver.attributes(zone, "serial")["serial"]
    driver.update(zone, description=None)
    assert (driver.openstack.dns.find(ZONES, zone) or {})["description"] is None
    assert driver.attributes(zone, "serial")["serial"] > first
    with pytest.raises(ProviderConflict, match="Duplicate Zone"):
        driver.create(ZONE, given)
    driver.delete(zone)
    assert driver.openstack.dns.find(ZONES, zone) is None


def test_a_secondary_zone_has_primary_servers(driver: Driver) -> None:
    given = {
        "name": f"{driver.name()}.org.",
        "type": "SECONDARY",
        "email": "ignored@example.org",
        "primaries": ["192.0.2.1", "192.0.2.2:5353"],
    }
    zone = lives(driver, ZONE, given, {"primaries": ["192.0.2.3"]})
    assert (driver.openstack.dns.find(ZONES, zone) or {})["masters"] == ["192.0.2.3:53"]


def test_a_record_set_is_created_changed_checked_and_deleted(driver: Driver) -> None:
    name = f"{driver.name()}.org."
    zone = driver.create(ZONE, {"name": name, "email": "a@example.org"})
    given = {"zone": name, "type": "A", "name": f"www.{name}", "records": ["192.0.2.1", "192.0.2.2"]}
    records = lives(driver, RECORDS, given, {"records": ["192.0.2.3"], "ttl": 60}, {"ttl": None})
    dns = driver.openstack.dns
    assert (dns.find(RECORD_SETS, records, parent=zone) or {})["ttl"] is None
    driver.delete(records)
    assert dns.find(RECORD_SETS, records, parent=zone) is None
    unnamed = driver.create(RECORDS, {"zone": zone, "type": "TXT", "records": ["text"]})
    assert (dns.find(RECORD_SETS, unnamed, parent=zone) or {})["name"].endswith(f".{name}")
    resource = driver.resources[unnamed]
    driver.delete(zone)  # ends its record sets
    ctx = replace(resource.ctx, action="DELETE", properties={})
    resource.type.delete(ctx, unnamed)
    assert not resource.type.observe(ctx, unnamed).exists


def test_designate_names_the_fault_of_a_record(driver: Driver) -> None:
    name = f"{driver.name()}.org."
    zone = driver.create(ZONE, {"name": name, "email": "a@example.org"})
    given = {"zone": zone, "type": "A", "name": name, "records": ["nowhere"]}
    with pytest.raises(ProviderError, match=r"does not match schema.*'nowhere' is not a 'ipv4'"):
        driver.create(RECORDS, given)


def test_a_zone_that_the_name_servers_refuse_is_in_error(
    driver: Driver, simulated_cloud: SimulatedCloud
) -> None:
    simulated_cloud.faults.set({"zone": {"error": "no server", "times": 1}})
    with pytest.raises(AssertionError, match='Went to status ERROR due to "Error in zone"'):
        driver.create(ZONE, {"name": f"{driver.name()}.org.", "email": "a@example.org"})
    simulated_cloud.faults.set({})
