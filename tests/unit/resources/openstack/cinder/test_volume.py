"""OS::Cinder::Volume."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from orchestrator.errors import ProviderBusy, ProviderError
from orchestrator.resources.openstack.cinder import volume_state as state
from orchestrator.resources.openstack.cinder.volume import Volume
from orchestrator.template.definition import ResourceDefinition

VOLUME = Volume()


def given(**values):
    properties, faults = VOLUME.read_properties({"size": 1, **values})
    assert faults == []
    return properties


def serve(cloud, status="available", **values):
    volume = {
        "id": "v1",
        "name": "stack-thing-abcdefghijkl",
        "description": None,
        "status": status,
        "size": 1,
        "metadata": {state.TOKEN: "t"},
        "volume_type": "fake",
        "attachments": [],
        **values,
    }
    cloud.answers("GET", "/volumes/v1", {"volume": volume})


def attached(server="s1"):
    return {"status": "in-use", "attachments": [{"server_id": server, "device": "/dev/vdb"}]}


class Change:
    """An update as the engine runs it."""

    def __init__(self, cloud, context_of, props, data=None, action="UPDATE"):
        self.cloud, self.context_of, self.props, self.action = cloud, context_of, props, action
        self.data = data or {}
        cloud.answers("POST", "/volumes/v1/action", None, status=202)

    @property
    def ctx(self):
        return self.context_of(self.props, action=self.action, data=self.data)

    def request(self, *changed):
        self.data = VOLUME.update(self.ctx, "v1", self.props, frozenset(changed)).data

    def observe(self):
        return VOLUME.observe(self.ctx, "v1")

    def step(self, name):
        assert self.observe().step == name
        result = VOLUME.advance(self.ctx, "v1", self.props, name)
        self.data = result.data if result else self.data

    @property
    def actions(self):
        return [sent.body for sent in self.cloud.sent("POST", "/volumes/v1/action")]


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ("image", "imageRef"),
        ("imageRef", "imageRef"),
        ("snapshot_id", "snapshot_id"),
        ("source_volid", "source_volid"),
    ],
)
def test_a_volume_starts_from_a_source(cloud, context_of, source, key):
    props = given(**{source: "x"}, volume_type="fake", metadata={"a": 1}, scheduler_hints={"same_host": "v0"})
    ctx = context_of(props)
    cloud.answers("POST", "/volumes", {"volume": {"id": "v1"}}, status=202)
    assert VOLUME.create(ctx, props).physical_id == "v1"
    body = cloud.sent("POST")[0].body
    assert body["OS-SCH-HNT:scheduler_hints"] == {"same_host": "v0"}
    assert body["volume"] == {
        key: "x",
        "size": 1,
        "volume_type": "fake",
        "name": ctx.physical_name,
        "metadata": {"a": "1", state.TOKEN: ctx.token},
    }


def test_a_lost_volume_is_found_by_its_metadata(cloud, context_of):
    cloud.answers("GET", r"/volumes/detail\?.*", {"volumes": [{"id": "v1"}, {"id": "v2"}]})
    ctx = context_of(given())
    assert VOLUME.find(ctx, ctx.token) == ["v1", "v2"]
    assert json.loads(cloud.requests[-1].query["metadata"]) == {state.TOKEN: ctx.token}


@pytest.mark.parametrize("status", sorted(state.TRANSIENT))
def test_a_create_waits_through_every_transient_status(cloud, context_of, status):
    serve(cloud, status)
    observation = VOLUME.observe(context_of(given()), "v1")
    assert (observation.ready, observation.error) == (False, "")


def test_an_available_volume_is_ready_and_hides_the_token(cloud, context_of):
    serve(cloud, metadata={state.TOKEN: "t", "a": "1", "readonly": "False"})
    observation = VOLUME.observe(context_of(given(metadata={"a": 1}), data={"settled": True}), "v1")
    assert observation.ready
    assert observation.attributes["metadata"] == '{"a": "1"}'
    assert observation.attributes["metadata_values"] == {"a": "1"}
    assert observation.properties == {"name": None, "description": None, "metadata": {"a": "1"}, "size": 1}
    shown = VOLUME.read_attributes(context_of(given()), "v1", frozenset({"show"}))["show"]
    assert shown["metadata"] == {"a": "1", "readonly": "False"}


def test_a_volume_in_error_is_created_again(cloud, context_of):
    serve(cloud, "error")
    observation = VOLUME.observe(context_of(given()), "v1")
    assert observation.error == 'Went to status error due to "Unknown"'
    assert observation.replaceable


def message(text="create:broken", request="req-1", at=None):
    at = at or datetime.now(UTC).replace(tzinfo=None).isoformat()
    return {"user_message": text, "request_id": request, "created_at": at}


def test_messages_name_the_causes_of_an_error(cloud, context_of):
    serve(cloud, "error")
    newest_first = [message("schedule:no backend", "req-2"), message(), message()]
    cloud.answers("GET", "/messages.*", {"messages": newest_first})
    observation = VOLUME.observe(context_of(given()), "v1")
    expected = 'Went to status error due to "create:broken; schedule:no backend" (Request-ID: req-2)'
    assert observation.error == expected
    (sent,) = cloud.sent("GET", "/messages.*")
    assert sent.query == {"resource_uuid": "v1", "limit": 20}


def test_messages_of_an_earlier_operation_are_no_cause(cloud, context_of):
    serve(cloud, "error")
    cloud.answers("GET", "/messages.*", {"messages": [message(at="2026-01-01T00:00:00.000000")]})
    observation = VOLUME.observe(context_of(given(), action="UPDATE"), "v1")
    assert observation.error == 'Went to status error due to "Unknown"'


def test_a_change_without_effect_has_the_cause_of_the_message(cloud, context_of):
    serve(cloud, size=1)
    cloud.answers("GET", "/messages.*", {"messages": [message("extend volume:no space")]})
    ctx = context_of(given(size=2), action="UPDATE", data={"size": 2, "extended": 2})
    expected = "Extending the volume to 2 GiB failed: extend volume:no space (Request-ID: req-1)"
    assert VOLUME.observe(ctx, "v1").error == expected


def test_a_check_asks_for_no_messages(cloud, context_of):
    serve(cloud, "error")
    assert VOLUME.observe(context_of(given(), action="CHECK"), "v1").error
    assert not cloud.sent("GET", "/messages.*")


def test_an_unknown_status_is_an_error(cloud, context_of):
    serve(cloud, "novel")
    observation = VOLUME.observe(context_of(given()), "v1")
    assert observation.error == 'Volume is not built - Unknown status novel due to "Unknown"'


def test_a_backup_is_restored_into_the_new_volume(cloud, context_of):
    props, _ = VOLUME.read_properties({"backup_id": "b1", "read_only": True})
    change = Change(cloud, context_of, props, action="CREATE")
    cloud.answers("GET", "/backups/b1", {"backup": {"id": "b1", "size": 3}})
    cloud.answers("POST", "/volumes", {"volume": {"id": "v1"}}, status=202)
    change.data = VOLUME.create(change.ctx, props).data
    assert cloud.sent("POST", "/volumes")[0].body["volume"]["size"] == 3
    cloud.answers("POST", "/backups/b1/restore", {"restore": {}}, status=202)
    serve(cloud)
    change.step("restore")
    serve(cloud, "restoring-backup")
    assert not change.observe().ready
    serve(cloud)
    change.step("set_read_only")
    serve(cloud, metadata={"readonly": "True"})
    assert change.observe().ready
    assert cloud.sent("POST", "/backups/b1/restore")[0].body == {"restore": {"volume_id": "v1"}}


def test_a_found_volume_recovers_its_steps(cloud, context_of):
    change = Change(cloud, context_of, given(read_only=True), action="CREATE")
    serve(cloud)
    change.step("recover")
    change.step("set_read_only")
    assert change.actions == [{"os-update_readonly_flag": {"readonly": True}}]


def test_name_description_and_metadata_are_changed_at_once(cloud, context_of):
    serve(cloud)
    cloud.answers("PUT", "/volumes/v1.*", {})
    change = Change(cloud, context_of, given(name="n", description="d", metadata={"a": "b"}))
    change.request("name", "description", "metadata")
    assert [sent.body for sent in cloud.sent("PUT")] == [
        {"volume": {"name": "n", "description": "d"}},
        {"metadata": {"a": "b", state.TOKEN: change.ctx.token}},
    ]
    assert change.observe().ready


def test_a_volume_grows(cloud, context_of):
    change = Change(cloud, context_of, given(size=2))
    serve(cloud)
    change.request("size")
    change.step("extend")
    serve(cloud, "extending")
    assert not change.observe().ready
    serve(cloud, size=2)
    assert change.observe().ready
    assert change.actions == [{"os-extend": {"new_size": 2}}]


def test_a_volume_does_not_shrink(cloud, context_of):
    serve(cloud, size=5)
    change = Change(cloud, context_of, given(size=2))
    with pytest.raises(ProviderError, match=r"^Shrinking volume is not supported\.$"):
        change.request("size")


def test_an_extension_without_effect_is_an_error(cloud, context_of):
    change = Change(cloud, context_of, given(size=2))
    serve(cloud)
    change.request("size")
    change.step("extend")
    assert change.observe().error == "Extending the volume to 2 GiB failed"


def test_a_volume_in_use_grows_while_attached(cloud, context_of):
    change = Change(cloud, context_of, given(size=2))
    serve(cloud, **attached())
    change.request("size")
    change.step("extend")
    assert cloud.sent("POST")[-1].microversion == "3.42"
    serve(cloud, size=2, **attached())
    assert change.observe().ready


def test_a_volume_in_use_is_detached_if_it_cannot_grow_while_attached(cloud, context_of):
    change = Change(cloud, context_of, given(size=2, read_only=True))
    serve(cloud, **attached())
    change.request("size", "read_only")
    refusal = {"badRequest": {"message": "must be available"}}
    cloud.answers("POST", "/volumes/v1/action", refusal, status=400, times=1)
    change.step("extend")
    cloud.answers("DELETE", "/servers/s1/os-volume_attachments/v1", None, status=202)
    change.step("detach")
    assert not change.observe().ready
    serve(cloud)
    change.step("extend")
    serve(cloud, size=2)
    change.step("set_read_only")
    serve(cloud, size=2, metadata={"readonly": "True"})
    cloud.answers("POST", "/servers/s1/os-volume_attachments", {"volumeAttachment": {"id": "v1"}})
    change.step("attach")
    serve(cloud, size=2, metadata={"readonly": "True"}, **attached())
    assert change.observe().ready
    request = cloud.sent("POST", "/servers/s1/os-volume_attachments")[0]
    assert request.body == {"volumeAttachment": {"volumeId": "v1", "device": "/dev/vdb"}}


def test_an_interrupted_update_attaches_again(cloud, context_of):
    data = {"size": 2, "attached": [{"server": "s1", "device": "/dev/vdb"}], "detaching": True}
    change = Change(cloud, context_of, given(size=3), data)
    serve(cloud, size=2)
    change.request("size")
    assert change.data["attached"] == data["attached"]


def test_a_type_is_changed_by_name(cloud, context_of):
    change = Change(cloud, context_of, given(volume_type="type-id"))
    serve(cloud)
    cloud.answers("GET", "/types/type-id", {"volume_type": {"id": "type-id", "name": "fast"}})
    change.request("volume_type")
    change.step("retype")
    serve(cloud, "retyping")
    assert not change.observe().ready
    serve(cloud, volume_type="fast")
    assert change.observe().ready
    assert change.actions == [{"os-retype": {"new_type": "fast", "migration_policy": "on-demand"}}]


# Deletion.


def test_a_volume_that_is_being_detached_is_deleted_later(cloud, context_of):
    cloud.answers("DELETE", "/volumes/v1", {"badRequest": {"message": "status must be"}}, status=400)
    serve(cloud, "detaching")
    with pytest.raises(ProviderBusy, match="volume is detaching"):
        VOLUME.delete(context_of(given(), action="DELETE"), "v1")


def test_a_volume_in_use_cannot_be_deleted(cloud, context_of):
    cloud.answers("DELETE", "/volumes/v1", {"badRequest": {"message": "status must be"}}, status=400)
    serve(cloud, **attached())
    cloud.answers("GET", r"/attachments\?.*", {"attachments": [{"id": "a1", "instance": "s1"}]})
    attachments = {"volumeAttachments": [{"volumeId": "v1"}]}
    cloud.answers("GET", "/servers/s1/os-volume_attachments", attachments)
    with pytest.raises(ProviderError, match="Volume in use") as caught:
        VOLUME.delete(context_of(given(), action="DELETE", elapsed_seconds=90.0), "v1")
    assert not isinstance(caught.value, ProviderBusy)


def test_a_volume_whose_server_is_gone_is_detached_and_deleted(cloud, context_of):
    """Cinder gave nova no answer when the server was deleted."""
    cloud.answers("DELETE", "/volumes/v1", {"badRequest": {"message": "status must be"}}, status=400)
    serve(cloud, **attached())
    cloud.answers("GET", r"/attachments\?.*", {"attachments": [{"id": "a1", "instance": "s1"}]})
    cloud.answers("DELETE", "/attachments/a1", {"attachments": []})
    with pytest.raises(ProviderBusy, match="still attached"):
        VOLUME.delete(context_of(given(), action="DELETE", elapsed_seconds=90.0), "v1")
    assert len(cloud.sent("DELETE", "/attachments/a1")) == 1


def test_a_failed_deletion_is_reported(cloud, context_of):
    serve(cloud, "error_deleting")
    assert "error_deleting" in VOLUME.observe(context_of(given(), action="DELETE"), "v1").error
    serve(cloud, "deleting")
    assert VOLUME.observe(context_of(given(), action="DELETE"), "v1").exists


def test_a_missing_volume_is_absent_and_deleted(context_of):
    ctx = context_of(given(), action="DELETE")
    VOLUME.delete(ctx, "v1")
    assert not VOLUME.observe(ctx, "v1").exists


# Snapshots.


def test_a_snapshot_is_one_backup_for_all_attempts(cloud, context_of):
    ctx = context_of(given(), action="SNAPSHOT")
    cloud.answers("GET", r"/backups/detail\?.*", {"backups": []})
    cloud.answers("POST", "/backups", {"backup": {"id": "b1"}}, status=202)
    assert VOLUME.snapshot(ctx, "v1") == {"backup_id": "b1"}
    serve(cloud)
    mark = cloud.sent("POST")[0].body["backup"]["description"]
    for status, ready in (("creating", False), ("available", True)):
        backup = {"id": "b1", "status": status, "description": mark}
        cloud.answers("GET", r"/backups/detail\?.*", {"backups": [backup]})
        assert VOLUME.observe(ctx, "v1").ready is ready
    assert VOLUME.snapshot(ctx, "v1") == {"backup_id": "b1"}
    assert VOLUME.restored({"size": 1, "image": "i"}, {"backup_id": "b1"}) == {"size": 1, "backup_id": "b1"}
    cloud.answers("DELETE", "/backups/b1", None, status=202)
    VOLUME.delete_snapshot(ctx, {"backup_id": "b1"})
    assert cloud.sent("DELETE", "/backups/b1")


# Validation.


def faults(**written):
    properties, _ = VOLUME.read_properties(written)
    resources = {
        "v": ResourceDefinition("v", VOLUME.name, {"properties": written}, frozenset(), {}, frozenset())
    }
    found = [*VOLUME.validate(properties, 1.0), *VOLUME.validate_among("v", properties, resources)]
    return [fault.message for fault in found]


def test_a_size_or_a_source_with_a_size_is_required():
    assert faults(size=1) == faults(snapshot_id="s") == faults(backup_id="b") == []
    (message,) = faults()
    assert message.startswith("If neither 'backup_id' nor 'size' is provided, one and only one of")
    assert faults(image="i")[0].endswith("currently specified options: ['image'].")


def test_several_sources_conflict():
    (message,) = faults(size=1, image="i", snapshot_id="s")
    assert message.startswith("If 'size' is provided, only one of")
