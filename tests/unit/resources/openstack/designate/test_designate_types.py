"""The types of Designate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.openstack.designate.record_set import RecordSet
from orchestrator.resources.openstack.designate.zone import Zone
from orchestrator.template.definition import ResourceDefinition
from orchestrator.testing.scripted_cloud import ScriptedCloud

PRIMARY = {"name": "example.org.", "email": "a@example.org"}
RECORDS = {"zone": "z1", "type": "A", "name": "www.example.org.", "records": ["192.0.2.1"]}


@pytest.fixture
def script() -> ScriptedCloud:
    return ScriptedCloud()


def hours_ago(hours: float) -> str:
    """Return a time as Designate writes it."""
    return (datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=hours)).isoformat()


def context(kind: ResourceType, script: ScriptedCloud, action: str = "CREATE", **given: Any) -> Context:
    properties, faults = kind.read_properties(given)
    assert faults == []
    return Context(
        name="it",
        physical_name="stack-it-abc",
        token="00000000-1",
        action=action,
        properties=properties,
        cloud=script.cloud,
    )


class TestZones:
    @pytest.mark.parametrize(
        ("given", "sent"),
        [
            (
                {**PRIMARY, "ttl": 60, "masters": ["ignored"], "attributes": {"a": "b"}},
                {**PRIMARY, "ttl": 60, "type": "PRIMARY", "attributes": {"a": "b"}},
            ),
            (
                {**PRIMARY, "ttl": 60, "type": "SECONDARY", "primaries": ["192.0.2.1"]},
                {"name": "example.org.", "type": "SECONDARY", "masters": ["192.0.2.1"]},
            ),
        ],
    )
    def test_properties_of_the_other_type_are_ignored(self, script, given, sent):
        kind = Zone()
        script.answers("POST", "/zones", {"id": "z1"}, status=202)
        ctx = context(kind, script, **given)
        assert kind.create(ctx, ctx.properties).physical_id == "z1"
        assert script.sent("POST")[0].body == sent

    def test_masters_and_primaries_are_the_same(self):
        _, faults = Zone().read_properties({**PRIMARY, "masters": ["a"], "primaries": ["b"]})
        assert faults

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"name": "a."}, "Property email is required for zone type PRIMARY"),
            (
                {"name": "a.", "type": "SECONDARY", "email": "x"},
                "Property masters is required for zone type SECONDARY",
            ),
        ],
    )
    def test_each_type_has_required_properties(self, given, message):
        kind = Zone()
        definition = ResourceDefinition("z", kind.name, {"properties": given}, frozenset(), {}, frozenset())
        (fault,) = kind.validate_among("z", kind.read_properties(given)[0], {"z": definition})
        assert fault.message == message
        body = {"properties": {**given, "email": {"get_param": "x"}, "primaries": {"get_param": "y"}}}
        definition = ResourceDefinition("z", kind.name, body, frozenset(), {}, frozenset())
        assert kind.validate_among("z", kind.read_properties(given)[0], {"z": definition}) == ()

    def test_the_zone_of_a_lost_response_is_found_by_its_name(self, script):
        kind = Zone()
        ctx = context(kind, script, **PRIMARY)
        zone = {"id": "z1", "name": "example.org.", "created_at": hours_ago(0)}
        target = r"/zones\?limit=500&name=example.org."
        script.answers("GET", target, {"zones": [zone]})
        assert kind.find(ctx, ctx.token) == ["z1"]
        script.answers("GET", target, {"zones": [{**zone, "created_at": hours_ago(1)}]})
        assert kind.find(ctx, ctx.token) is None

    @pytest.mark.parametrize("action", ["CREATE", "UPDATE"])
    def test_a_pending_zone_is_awaited(self, script, action):
        kind = Zone()
        ctx = context(kind, script, action, **PRIMARY)
        script.answers("GET", "/zones/z1", {"status": "PENDING"})
        assert not kind.observe(ctx, "z1").ready
        script.answers("GET", "/zones/z1", {"status": "ACTIVE"})
        assert kind.observe(ctx, "z1").ready

    def test_a_zone_in_error_is_created_again(self, script):
        kind = Zone()
        script.answers("GET", "/zones/z1", {"status": "ERROR"})
        observation = kind.observe(context(kind, script, **PRIMARY), "z1")
        assert observation.error == 'Went to status ERROR due to "Error in zone"'
        assert observation.replaceable

    def test_a_deleted_zone_is_absent(self, script):
        kind = Zone()
        ctx = context(kind, script, "DELETE", **PRIMARY)
        script.answers("DELETE", "/zones/z1", status=404)
        kind.delete(ctx, "z1")
        script.answers("GET", "/zones/z1", {"status": "PENDING", "action": "DELETE"})
        assert kind.observe(ctx, "z1").exists
        for status, body in ((404, {}), (200, {"status": "DELETED"})):
            script.answers("GET", "/zones/z1", body, status=status)
            assert not kind.observe(ctx, "z1").exists

    def test_an_update_sends_changed_properties(self, script):
        kind = Zone()
        script.answers("PATCH", "/zones/z1", {})
        ctx = context(kind, script, "UPDATE", **PRIMARY)
        kind.update(ctx, "z1", ctx.properties, frozenset({"email", "ttl", "description", "masters"}))
        assert script.sent("PATCH")[0].body == {"email": "a@example.org", "description": None}

    def test_the_default_port_is_no_difference(self, script):
        kind = Zone()
        ctx = context(kind, script, "CHECK", name="a.", type="SECONDARY", primaries=["192.0.2.1"])
        zone = {"status": "ACTIVE", "name": "a.", "type": "SECONDARY", "masters": ["192.0.2.1:53"]}
        script.answers("GET", "/zones/z1", zone)
        assert kind.observe(ctx, "z1").properties["masters"] == ["192.0.2.1"]
        script.answers("GET", "/zones/z1", {**zone, "masters": ["192.0.2.1:54"]})
        assert kind.observe(ctx, "z1").properties["masters"] == ["192.0.2.1:54"]

    def test_the_serial_number_is_live(self, script):
        kind = Zone()
        assert kind.attributes["serial"].live
        script.answers("GET", "/zones/z1", {"serial": 5})
        read = kind.read_attributes(context(kind, script, **PRIMARY), "z1", frozenset({"serial"}))
        assert read["serial"] == 5

    @pytest.mark.parametrize("name", ["name", "type", "attributes"])
    def test_name_type_and_attributes_replace_it(self, name):
        assert Zone().change({}, {}, frozenset({name})) == "replace"


class TestRecordSets:
    def test_a_record_set_belongs_to_its_zone(self, script):
        kind = RecordSet()
        script.answers("POST", "/zones/z1/recordsets", {"id": "r1"}, status=202)
        ctx = context(kind, script, **RECORDS, ttl=60)
        created = kind.create(ctx, ctx.properties)
        assert (created.physical_id, created.data) == ("r1", {"zone": "z1"})
        sent = {name: value for name, value in RECORDS.items() if name != "zone"}
        assert script.sent("POST")[0].body == {**sent, "ttl": 60}

    def test_the_default_name_is_in_the_zone(self, script):
        kind = RecordSet()
        script.answers("GET", "/zones/z1", {"name": "example.org."})
        script.answers("POST", "/zones/z1/recordsets", {"id": "r1"}, status=202)
        ctx = context(kind, script, zone="z1", type="TXT", records=["x"])
        kind.create(ctx, ctx.properties)
        assert script.sent("POST")[0].body["name"] == "stack-it-abc.example.org."

    def test_the_record_set_of_a_lost_response_is_found_by_name_and_type(self, script):
        kind = RecordSet()
        ctx = context(kind, script, **RECORDS)
        target = r"/zones/z1/recordsets\?limit=500&name=www.example.org.&type=A"
        recordset = {"id": "r1", "name": "www.example.org.", "type": "A", "created_at": hours_ago(0)}
        script.answers("GET", target, {"recordsets": [recordset]})
        assert kind.find(ctx, ctx.token) == ["r1"]
        script.answers("GET", target, {"recordsets": [{**recordset, "created_at": hours_ago(1)}]})
        assert kind.find(ctx, ctx.token) is None
        script.answers("GET", target, {}, status=404)  # there is no zone
        assert kind.find(ctx, ctx.token) is None

    def test_a_record_set_in_error_is_created_again(self, script):
        kind = RecordSet()
        script.answers("GET", "/zones/z1/recordsets/r1", {"status": "ERROR"})
        observation = kind.observe(context(kind, script, **RECORDS), "r1")
        assert observation.error == 'Went to status ERROR due to "Error in RecordSet"'

    def test_the_order_and_the_quotes_of_records_are_no_difference(self, script):
        kind = RecordSet()
        ctx = context(kind, script, "CHECK", zone="z1", type="TXT", name="a.", records=["x", "y z"])
        found = {"status": "ACTIVE", "name": "a.", "type": "TXT", "records": ['"y z"', '"x"']}
        script.answers("GET", "/zones/z1/recordsets/r1", found)
        assert kind.observe(ctx, "r1").properties["records"] == ["x", "y z"]
        script.answers("GET", "/zones/z1/recordsets/r1", {**found, "records": ["x"]})
        assert kind.observe(ctx, "r1").properties["records"] == ["x"]

    def test_a_removed_time_to_live_is_that_of_the_zone(self, script):
        kind = RecordSet()
        script.answers("PUT", "/zones/z1/recordsets/r1", {})
        ctx = context(kind, script, "UPDATE", **RECORDS)
        kind.update(ctx, "r1", ctx.properties, frozenset({"ttl", "records"}))
        assert script.sent("PUT")[0].body == {"ttl": None, "records": ["192.0.2.1"]}

    @pytest.mark.parametrize("name", ["name", "type", "zone"])
    def test_name_type_and_zone_replace_it(self, name):
        assert RecordSet().change({}, {}, frozenset({name})) == "replace"
