"""Volume types, their encryption, QoS specs, their associations, and quotas."""

from __future__ import annotations

import pytest

from orchestrator.resources.openstack.cinder.encrypted_volume_type import EncryptedVolumeType
from orchestrator.resources.openstack.cinder.qos_association import QoSAssociation
from orchestrator.resources.openstack.cinder.qos_specs import QoSSpecs
from orchestrator.resources.openstack.cinder.quota import Quota
from orchestrator.resources.openstack.cinder.volume_type import VolumeType


def given(type_, **values):
    properties, faults = type_().read_properties(values)
    assert faults == []
    return properties


def serve_type(cloud, *, public=True, specs=None, projects=()):
    body = {"id": "t1", "name": "fast", "is_public": public, "extra_specs": specs or {}, "description": None}
    cloud.answers("GET", "/types/t1", {"volume_type": body})
    cloud.answers("GET", "/types/t1/extra_specs", {"extra_specs": specs or {}})
    access = [{"project_id": project} for project in projects]
    cloud.answers("GET", "/types/t1/os-volume-type-access", {"volume_type_access": access})


def test_specs_and_projects_of_a_volume_type_are_a_step(cloud, context_of):
    props = given(VolumeType, name="fast", is_public=False, projects=["p2"], metadata={"a": True})
    ctx = context_of(props)
    cloud.answers("POST", "/types", {"volume_type": {"id": "t1"}})
    assert VolumeType().create(ctx, props).physical_id == "t1"
    serve_type(cloud, public=False, specs={"old": "1"}, projects=("p1",))
    assert VolumeType().observe(ctx, "t1").step == "configure"
    cloud.answers("POST", "/types/t1/.*", {})
    cloud.answers("DELETE", "/types/t1/extra_specs/old", None, status=202)
    VolumeType().advance(ctx, "t1", props, "configure")
    assert [request.body for request in cloud.sent("POST", "/types/t1/.*")] == [
        {"extra_specs": {"a": "True"}},
        {"addProjectAccess": {"project": "p2"}},
        {"removeProjectAccess": {"project": "p1"}},
    ]
    serve_type(cloud, public=False, specs={"a": "True"}, projects=("p2",))
    assert VolumeType().observe(ctx, "t1").ready


def test_the_name_of_a_volume_type_is_updated(cloud, context_of):
    props = given(VolumeType, name="faster", description="d")
    cloud.answers("PUT", "/types/t1", {})
    VolumeType().update(context_of(props), "t1", props, frozenset({"name", "description"}))
    assert cloud.sent("PUT")[0].body == {"volume_type": {"name": "faster", "description": "d"}}


def test_a_lost_volume_type_is_found_by_its_name(cloud, context_of):
    listed = [{"id": "t0", "name": "slow"}, {"id": "t1", "name": "fast", "is_public": True}]
    cloud.answers("GET", r"/types\?.*", {"volume_types": listed})
    assert VolumeType().find(context_of(given(VolumeType, name="fast")), "t") == ["t1"]
    assert VolumeType().find(context_of(given(VolumeType, name="fast", is_public=False)), "t") is None


def test_a_public_volume_type_has_no_projects():
    (fault,) = VolumeType().validate({"is_public": True, "projects": ["p"]}, 1.0)
    assert fault.message == 'Can not specify property "projects" if the volume type is public.'


def test_encryption_is_added_changed_and_removed(cloud, context_of):
    props = given(
        EncryptedVolumeType, volume_type="t1", provider="luks", cipher="aes-xts-plain64", key_size=256
    )
    ctx = context_of(props)
    cloud.answers("POST", "/types/t1/encryption", {"encryption": {"volume_type_id": "t1"}})
    assert EncryptedVolumeType().create(ctx, props).physical_id == "t1"
    wanted = {
        "provider": "luks",
        "control_location": "front-end",
        "cipher": "aes-xts-plain64",
        "key_size": 256,
    }
    assert cloud.sent("POST")[0].body == {"encryption": wanted}
    stored = {"volume_type_id": "t1", "encryption_id": "e1", **wanted}
    cloud.answers("GET", "/types/t1/encryption", stored)
    assert EncryptedVolumeType().find(ctx, ctx.token) == "t1"
    assert EncryptedVolumeType().observe(ctx, "t1").properties == wanted
    cloud.answers("PUT", "/types/t1/encryption/e1", {})
    EncryptedVolumeType().update(ctx, "t1", props, frozenset({"cipher"}))
    cloud.answers("DELETE", "/types/t1/encryption/e1", None, status=202)
    EncryptedVolumeType().delete(ctx, "t1")
    assert cloud.sent("PUT")
    assert cloud.sent("DELETE")


def test_a_type_without_encryption_has_none(cloud, context_of):
    cloud.answers("GET", "/types/t1/encryption", {})
    props = given(EncryptedVolumeType, volume_type="t1", provider="luks")
    assert not EncryptedVolumeType().observe(context_of(props), "t1").exists


def test_specs_are_created_under_the_physical_name_and_updated_by_key(cloud, context_of):
    props = given(QoSSpecs, specs={"read_iops": 10})
    ctx = context_of(props)
    cloud.answers("POST", "/qos-specs", {"qos_specs": {"id": "q1"}})
    assert QoSSpecs().create(ctx, props).physical_id == "q1"
    assert cloud.sent("POST")[0].body == {"qos_specs": {"name": ctx.physical_name, "read_iops": "10"}}
    listed = {"qos_specs": [{"id": "q1", "name": ctx.physical_name}]}
    cloud.answers("GET", r"/qos-specs\?.*", listed)
    assert QoSSpecs().find(ctx, ctx.token) == ["q1"]
    cloud.answers("GET", "/qos-specs/q1", {"qos_specs": {"id": "q1", "specs": {"old": "1"}}})
    cloud.answers("PUT", "/qos-specs/q1.*", {})
    QoSSpecs().update(ctx, "q1", props, frozenset({"specs"}))
    assert [request.body for request in cloud.sent("PUT")] == [
        {"keys": ["old"]},
        {"qos_specs": {"read_iops": "10"}},
    ]


def serve_associations(cloud, *types):
    cloud.answers("GET", "/qos-specs/q1", {"qos_specs": {"id": "q1", "specs": {}}})
    associations = [{"id": type_id, "name": type_id} for type_id in types]
    cloud.answers("GET", "/qos-specs/q1/associations", {"qos_associations": associations})


@pytest.mark.parametrize("lost", [False, True])
def test_an_association_covers_its_own_types_only(cloud, context_of, lost):
    props = given(QoSAssociation, qos_specs="q1", volume_types=["t1", "t2"])
    cloud.answers("GET", r"/qos-specs/q1/(dis)?associate\?.*", None, status=202)
    ctx = context_of(props)
    created = QoSAssociation().create(ctx, props)
    assert created.physical_id == "q1"
    serve_associations(cloud, "t1", "foreign")
    assert QoSAssociation().find(ctx, ctx.token) == "q1"
    assert QoSAssociation().observe(ctx, "q1").step == "associate"
    serve_associations(cloud, "t1", "t2", "foreign")
    assert QoSAssociation().observe(ctx, "q1").ready
    ctx = context_of(props, data={} if lost else created.data, action="DELETE")
    QoSAssociation().delete(ctx, "q1")
    withdrawn = [str(request.target) for request in cloud.sent("GET", ".*disassociate.*")]
    assert withdrawn == [f"/qos-specs/q1/disassociate?vol_type_id={name}" for name in ("t1", "t2")]
    serve_associations(cloud, "foreign")
    assert not QoSAssociation().observe(ctx, "q1").exists


def test_an_update_withdraws_former_types(cloud, context_of):
    props = given(QoSAssociation, qos_specs="q1", volume_types=["t2"])
    cloud.answers("GET", r"/qos-specs/q1/(dis)?associate\?.*", None, status=202)
    serve_associations(cloud, "t1", "foreign")
    ctx = context_of(props, data={"types": ["t1"]}, action="UPDATE")
    QoSAssociation().update(ctx, "q1", props, frozenset({"volume_types"}))
    assert [
        request.target.rpartition("=")[2] for request in cloud.sent("GET", ".*associate.*vol_type.*")
    ] == [
        "t1",
        "t2",
    ]


def test_quotas_are_set_found_and_reset(cloud, context_of):
    props = given(Quota, project="p9", volumes=3, gigabytes=-1)
    ctx = context_of(props)
    cloud.answers("PUT", "/os-quota-sets/p9", {})
    cloud.answers("GET", "/os-quota-sets/p9", {"quota_set": {"volumes": 3, "gigabytes": -1, "backups": 1}})
    cloud.answers("DELETE", "/os-quota-sets/p9", None)
    assert Quota().create(ctx, props).physical_id == "p9"
    assert cloud.sent("PUT")[0].body == {"quota_set": {"gigabytes": -1, "volumes": 3}}
    assert Quota().find(ctx, ctx.token) == "p9"
    assert Quota().observe(ctx, "p9").properties == {"volumes": 3, "gigabytes": -1, "backups": 1}
    Quota().delete(ctx, "p9")
    assert cloud.sent("DELETE")
