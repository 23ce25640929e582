"""OS::Cinder::VolumeAttachment."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.errors import ProviderBusy, ProviderError
from orchestrator.resources.openstack.cinder.volume_attachment import VolumeAttachment

ATTACHMENT = VolumeAttachment()
PROPS = {"instance_uuid": "s1", "volume_id": "v1", "mountpoint": "/dev/vdc"}
DATA = {"server": "s1", "volume": "v1"}


def serve(cloud, status, *servers, listed=(), volume="v1", age=0.0):
    """Answer as cinder for the volume, changed `age` seconds ago, and as nova for the server s1."""
    attachments = [{"server_id": server} for server in servers]
    changed = (datetime.now(UTC) - timedelta(seconds=age)).replace(tzinfo=None).isoformat()
    shown = {"id": volume, "status": status, "attachments": attachments, "updated_at": changed}
    body = {"volume": shown}
    cloud.answers("GET", f"/volumes/{volume}", body)
    items = [{"id": item, "volumeId": item} for item in listed]
    cloud.answers("GET", "/servers/s1/os-volume_attachments", {"volumeAttachments": items})


def test_an_attachment_is_complete_when_both_services_agree(cloud, context_of):
    cloud.answers("POST", "/servers/s1/os-volume_attachments", {"volumeAttachment": {"id": "v1"}})
    ctx = context_of(PROPS)
    created = ATTACHMENT.create(ctx, PROPS)
    assert (created.physical_id, created.data) == ("v1", DATA)
    assert cloud.sent("POST")[0].body == {"volumeAttachment": {"volumeId": "v1", "device": "/dev/vdc"}}
    ctx = context_of(PROPS, data=DATA)
    for status, servers, listed, ready in (
        ("reserved", (), ("v1",), False),
        ("attaching", (), ("v1",), False),
        ("in-use", ("s1",), (), False),
        ("in-use", ("s1",), ("v1",), True),
    ):
        serve(cloud, status, *servers, listed=listed)
        observation = ATTACHMENT.observe(ctx, "v1")
        assert (observation.ready, observation.error) == (ready, "")


def test_a_failed_attachment_makes_the_volume_available_and_is_tried_again(cloud, context_of):
    serve(cloud, "available")
    observation = ATTACHMENT.observe(context_of(PROPS, data=DATA), "v1")
    assert observation.error == 'Volume attachment failed - Unknown status available due to "Unknown"'
    assert observation.replaceable


def test_a_failed_attachment_names_the_request_to_nova(cloud, context_of):
    serve(cloud, "available")
    actions = [
        {"action": "reboot", "request_id": "req-3", "start_time": "2026-01-03"},
        {"action": "attach_volume", "request_id": "req-2", "start_time": "2026-01-02"},
        {"action": "attach_volume", "request_id": "req-1", "start_time": "2026-01-01"},
    ]
    cloud.answers("GET", "/servers/s1/os-instance-actions", {"instanceActions": actions})
    observation = ATTACHMENT.observe(context_of(PROPS, data=DATA), "v1")
    assert observation.error.endswith('due to "Unknown" (Request-ID: req-2)')


@pytest.mark.parametrize(("action", "data"), [("DELETE", DATA), ("UPDATE", {**DATA, "detaching": True})])
def test_a_failed_detachment_names_the_request_to_nova(cloud, context_of, action, data):
    serve(cloud, "in-use", "s1", listed=("v1",))
    actions = [{"action": "detach_volume", "request_id": "req-1", "start_time": "2026-01-01"}]
    cloud.answers("GET", "/servers/s1/os-instance-actions", {"instanceActions": actions})
    ctx = context_of(PROPS, data=data, action=action, elapsed_seconds=60.0)
    expected = "Volume detachment failed - the volume is still in use (Request-ID: req-1)"
    assert ATTACHMENT.observe(ctx, "v1").error == expected


def test_a_lost_attachment_is_found_among_the_servers_volumes(cloud, context_of):
    ctx = context_of(PROPS)
    serve(cloud, "in-use", "s1", listed=("v1",))
    assert ATTACHMENT.find(ctx, ctx.token) == "v1"
    serve(cloud, "available")
    assert ATTACHMENT.find(ctx, ctx.token) is None


def test_a_busy_volume_is_attached_later(cloud, context_of):
    refusal = {"badRequest": {"message": "status must be available"}}
    cloud.answers("POST", "/servers/s1/os-volume_attachments", refusal, status=400)
    serve(cloud, "detaching")
    with pytest.raises(ProviderBusy, match="volume is detaching"):
        ATTACHMENT.create(context_of(PROPS), PROPS)
    serve(cloud, "error")
    with pytest.raises(ProviderError, match="must be available") as caught:
        ATTACHMENT.create(context_of(PROPS), PROPS)
    assert not isinstance(caught.value, ProviderBusy)


def test_a_detachment_waits_for_both_services(cloud, context_of):
    cloud.answers("DELETE", "/servers/s1/os-volume_attachments/v1", None, status=202)
    ctx = context_of(PROPS, data=DATA, action="DELETE")
    ATTACHMENT.delete(ctx, "v1")
    for status, servers, listed, exists in (
        ("detaching", ("s1",), ("v1",), True),
        ("available", (), ("v1",), True),
        ("available", (), (), False),
    ):
        serve(cloud, status, *servers, listed=listed)
        assert ATTACHMENT.observe(ctx, "v1").exists is exists


def test_a_detachment_without_effect_is_an_error(cloud, context_of):
    serve(cloud, "in-use", "s1", listed=("v1",))
    ctx = context_of(PROPS, data=DATA, action="DELETE", elapsed_seconds=20.0)
    assert "still in use" in ATTACHMENT.observe(ctx, "v1").error


def test_an_attachment_that_nova_does_not_know_is_removed(cloud, context_of):
    """Cinder gave nova no answer: the server is gone, and the volume still attached."""
    serve(cloud, "in-use", "s1")
    cloud.answers("GET", r"/attachments\?.*", {"attachments": [{"id": "a1", "instance": "s1"}, {"id": "a2"}]})
    cloud.answers("DELETE", "/attachments/a1", {"attachments": []})
    assert ATTACHMENT.observe(context_of(PROPS, data=DATA, action="DELETE"), "v1").step == ""
    ctx = context_of(PROPS, data=DATA, action="DELETE", elapsed_seconds=20.0)
    step = ATTACHMENT.observe(ctx, "v1").step
    assert ATTACHMENT.advance(ctx, "v1", PROPS, step) is None
    assert [request.path for request in cloud.sent("DELETE")] == ["/attachments/a1"]
    serve(cloud, "available")
    assert not ATTACHMENT.observe(ctx, "v1").exists


def test_an_attachment_that_has_failed_at_cinder_is_removed_and_tried_again(cloud, context_of):
    cloud.answers("GET", r"/attachments\?.*", {"attachments": [{"id": "a1", "instance": "s1"}]})
    cloud.answers("DELETE", "/attachments/a1", {"attachments": []})
    ctx = context_of(PROPS, data=DATA, elapsed_seconds=20.0)
    serve(cloud, "attaching", listed=("v1",))
    assert ATTACHMENT.observe(ctx, "v1").step == ""
    serve(cloud, "attaching")
    ATTACHMENT.advance(ctx, "v1", PROPS, ATTACHMENT.observe(ctx, "v1").step)
    assert [request.path for request in cloud.sent("DELETE")] == ["/attachments/a1"]
    serve(cloud, "available")
    assert ATTACHMENT.observe(ctx, "v1").replaceable


@pytest.mark.parametrize(("age", "is_lost"), [(600.0, False), (1_000.0, True)])
def test_an_attachment_whose_request_nova_has_lost_fails_and_can_be_deleted(cloud, context_of, age, is_lost):
    serve(cloud, "reserved", listed=("v1",), age=age)
    observation = ATTACHMENT.observe(context_of(PROPS, data=DATA, elapsed_seconds=age), "v1")
    assert ("lost the request to attach volume v1 to server s1" in observation.error) is is_lost
    assert not observation.replaceable
    refusal = {"badRequest": {"message": "volume must be in use to detach"}}
    cloud.answers("DELETE", "/servers/s1/os-volume_attachments/v1", refusal, status=400)
    ctx = context_of(PROPS, data=DATA, action="DELETE", elapsed_seconds=90.0)
    with nullcontext() if is_lost else pytest.raises(ProviderBusy):
        ATTACHMENT.delete(ctx, "v1")
    assert ATTACHMENT.observe(ctx, "v1").exists is not is_lost


@pytest.mark.parametrize(
    ("age", "message", "repeated"),
    [(10.0, "Error", False), (20.0, None, False), (20.0, "Error", True), (200.0, None, True)],
)
def test_a_detachment_that_nova_has_given_up_is_repeated(cloud, context_of, age, message, repeated):
    ctx = context_of(PROPS, data=DATA, action="DELETE", elapsed_seconds=400.0)
    serve(cloud, "detaching", "s1", listed=("v1",), age=age)
    actions = [
        {"action": "detach_volume", "message": "Error", "start_time": "2026-11-01T00:00:00"},
        {"action": "detach_volume", "message": message, "start_time": "2026-11-02T00:00:00"},
        {"action": "reboot", "message": "Error", "start_time": "2026-11-03T00:00:00"},
    ]
    cloud.answers("GET", "/servers/s1/os-instance-actions", {"instanceActions": actions})
    if not repeated:
        assert ATTACHMENT.observe(ctx, "v1").step == ""
        return
    cloud.answers("POST", "/volumes/v1/action", None, status=202)
    cloud.answers("DELETE", "/servers/s1/os-volume_attachments/v1", None, status=202)
    ATTACHMENT.advance(ctx, "v1", PROPS, ATTACHMENT.observe(ctx, "v1").step)
    assert cloud.sent("POST")[0].body == {"os-roll_detaching": {}}
    assert len(cloud.sent("DELETE")) == 1


def test_an_attachment_of_a_missing_server_or_volume_is_absent(cloud, context_of):
    ctx = context_of(PROPS, data=DATA, action="DELETE")
    ATTACHMENT.delete(ctx, "v1")
    assert not ATTACHMENT.observe(ctx, "v1").exists


def test_an_update_detaches_then_attaches(cloud, context_of):
    after = {**PROPS, "volume_id": "v2"}
    cloud.answers("DELETE", "/servers/s1/os-volume_attachments/v1", None, status=202)
    ctx = context_of(after, data=DATA, action="UPDATE")
    updated = ATTACHMENT.update(ctx, "v1", after, frozenset({"volume_id"}))
    ctx = context_of(after, data=updated.data, action="UPDATE")
    serve(cloud, "detaching", "s1", listed=("v1",))
    assert ATTACHMENT.observe(ctx, "v1").step == ""
    serve(cloud, "available")
    assert ATTACHMENT.observe(ctx, "v1").step == "attach"
    cloud.answers("POST", "/servers/s1/os-volume_attachments", {"volumeAttachment": {"id": "v2"}})
    advanced = ATTACHMENT.advance(ctx, "v1", after, "attach")
    assert (advanced.physical_id, advanced.data) == ("v2", {"server": "s1", "volume": "v2"})
    serve(cloud, "in-use", "s1", listed=("v2",), volume="v2")
    assert ATTACHMENT.observe(context_of(after, data=advanced.data, action="UPDATE"), "v2").ready


def test_a_repeated_attach_step_attaches_once(cloud, context_of):
    serve(cloud, "in-use", "s1", listed=("v1",))
    ctx = context_of(PROPS, data={**DATA, "detaching": True}, action="UPDATE")
    assert ATTACHMENT.advance(ctx, "v1", PROPS, "attach").physical_id == "v1"
    assert not cloud.sent("POST")
