"""Cinder's types on a cloud."""

from __future__ import annotations

import pytest

from orchestrator.clients.openstack.block_storage import VOLUME_TYPES
from orchestrator.clients.openstack.compute import FLAVORS
from orchestrator.clients.openstack.networking.network import NETWORKS
from orchestrator.errors import ProviderConflict, ProviderError
from orchestrator.resources.openstack.cinder import failed_detachments
from orchestrator.resources.openstack.cinder.encrypted_volume_type import EncryptedVolumeType
from orchestrator.resources.openstack.cinder.qos_association import QoSAssociation
from orchestrator.resources.openstack.cinder.qos_specs import QoSSpecs
from orchestrator.resources.openstack.cinder.quota import Quota
from orchestrator.resources.openstack.cinder.volume import Volume
from orchestrator.resources.openstack.cinder.volume_attachment import VolumeAttachment
from orchestrator.resources.openstack.cinder.volume_type import VolumeType
from orchestrator.resources.openstack.nova.server.server_type import Server
from tests.openstack.driver import Driver


@pytest.fixture
def server(member):
    """Return the id of a server."""
    services = member.openstack
    (network,) = services.network.search(NETWORKS, name="private")
    given = {
        "flavor": next(item["id"] for item in services.compute.search(FLAVORS) if item["name"] == "m1.tiny"),
        "image": next(item["id"] for item in services.image.listed("/images", "images")),
        "networks": [{"network": network["id"]}],
        "user_data_format": "RAW",
    }
    return member.create(Server, given)


def test_a_volume_is_created_found_updated_and_deleted(member):
    volume = member.create(Volume, {"size": 1, "metadata": {"tier": "db"}})
    assert member.find(volume) == [volume]
    assert member.drift(volume) == {}
    attributes = member.attributes(volume, "show")
    assert (attributes["status"], attributes["size"]) == ("available", 1)
    assert attributes["metadata_values"] == {"tier": "db"}
    member.update(volume, size=2, name=member.name(), description="d", metadata={"tier": "web"})
    attributes = member.attributes(volume)
    assert (attributes["size"], attributes["display_description"]) == (2, "d")
    assert attributes["metadata_values"] == {"tier": "web"}
    member.update(volume, read_only=True)
    assert member.observe(volume).properties["read_only"]
    assert member.find(volume) == [volume]
    member.delete(volume)
    assert member.openstack.block_storage.current_volume(volume) is None


def test_a_volume_without_a_backend_fails_with_the_cause_and_the_request(driver):
    cinder = driver.openstack.block_storage
    name = driver.name()
    nowhere = cinder.create(VOLUME_TYPES, {"name": name, "extra_specs": {"volume_backend_name": "elsewhere"}})
    with pytest.raises(AssertionError, match=r"schedule allocate volume:.*\(Request-ID: req-"):
        driver.create(Volume, {"size": 1, "volume_type": name})
    driver.clean_up()
    cinder.remove(VOLUME_TYPES, nowhere["id"])


def test_a_volume_does_not_shrink(member):
    volume = member.create(Volume, {"size": 2})
    with pytest.raises(ProviderError, match="Shrinking volume is not supported"):
        member.update(volume, size=1)


def test_a_volume_starts_from_another_volume_and_from_an_image(member):
    first = member.create(Volume, {"size": 1})
    member.create(Volume, {"size": 1, "source_volid": first})
    image = next(item["id"] for item in member.openstack.image.listed("/images", "images"))
    bootable = member.create(Volume, {"size": 1, "image": image})
    assert member.attributes(bootable)["bootable"] == "true"


@pytest.fixture
def volumes(member):
    """Return a driver for volumes: an attachment has the id of its volume."""
    driver = Driver(member.cloud, member.prefix, member.project_id)
    yield driver
    member.clean_up()  # the attachments first
    driver.clean_up()


def test_an_attachment_is_made_moved_and_removed(member, server, volumes):
    volume, other = (volumes.create(Volume, {"size": 1}) for _ in range(2))
    attachment = member.create(VolumeAttachment, {"instance_uuid": server, "volume_id": volume})
    assert member.find(attachment) == [attachment]
    assert volumes.attributes(volume)["status"] == "in-use"
    moved = member.update(attachment, volume_id=other)
    assert volumes.attributes(volume)["status"] == "available"
    assert volumes.attributes(other)["status"] == "in-use"
    member.delete(moved)
    assert volumes.attributes(other)["status"] == "available"


def test_a_volume_in_use_grows(member, server, volumes):
    volume = volumes.create(Volume, {"size": 1})
    attachment = member.create(VolumeAttachment, {"instance_uuid": server, "volume_id": volume})
    volumes.update(volume, size=2)
    attributes = volumes.attributes(volume)
    assert (attributes["size"], attributes["status"]) == (2, "in-use")
    volumes.update(volume, read_only=True)
    assert volumes.attributes(volume)["status"] == "in-use"
    member.delete(attachment)


def test_a_detachment_that_has_failed_at_cinder_is_repeated(driver, member, server, volumes, monkeypatch):
    monkeypatch.setattr(failed_detachments, "STUCK_SECONDS", 0.0)
    monkeypatch.setattr(failed_detachments, "DETACHING_SECONDS", 0.0)
    volume = volumes.create(Volume, {"size": 1})
    attachment = member.create(VolumeAttachment, {"instance_uuid": server, "volume_id": volume})
    storage = driver.openstack.block_storage
    storage.post(f"/volumes/{volume}/action", {"os-reset_status": {"status": "detaching"}})
    (known,) = member.openstack.block_storage.attachments(volume)
    with pytest.raises(ProviderConflict, match="using the Compute API"):
        member.openstack.block_storage.delete_attachment(known["id"])
    member.delete(attachment)
    assert volumes.attributes(volume)["status"] == "available"
    assert storage.attachments(volume) == []


@pytest.fixture
def projects(driver):
    """Return a driver for projects: the quotas of a project have its id."""
    other = Driver(driver.cloud, driver.prefix, driver.project_id)
    yield other
    driver.clean_up()
    other.clean_up()


def test_types_encryption_and_qos_are_administered(driver):
    name = driver.name()
    first = driver.create(VolumeType, {"name": name, "metadata": {"a": "1"}, "is_public": False})
    assert driver.find(first) == [first]
    driver.update(first, metadata={"b": "2"}, projects=[driver.project_id], description="d")
    assert driver.drift(first) == {}
    driver.update(first, is_public=True, projects=[])
    assert driver.drift(first) == {}
    driver.update(first, is_public=False, projects=[driver.project_id])
    assert driver.drift(first) == {}
    encryption = {"volume_type": first, "provider": "luks", "key_size": 256, "cipher": "aes-xts-plain64"}
    # The encryption has the id of the type: it is operated on its own.
    resource = driver.prepare(EncryptedVolumeType, encryption)
    resource.type.create(resource.ctx, resource.ctx.properties)
    assert resource.type.find(resource.ctx, resource.ctx.token) == first
    resource.type.update(resource.ctx, first, {**resource.ctx.properties, "key_size": 128}, frozenset())
    assert resource.type.observe(resource.ctx, first).properties["key_size"] == 128
    resource.type.delete(resource.ctx, first)
    assert not resource.type.observe(resource.ctx, first).exists
    specs = driver.create(QoSSpecs, {"specs": {"read_iops_sec": "10", "old": "1"}})
    assert driver.find(specs) == [specs]
    driver.update(specs, specs={"read_iops_sec": "20"})
    assert driver.drift(specs) == {}
    association = driver.prepare(QoSAssociation, {"qos_specs": specs, "volume_types": [first]})
    created = association.type.create(association.ctx, association.ctx.properties)
    assert association.type.observe(association.ctx, created.physical_id).ready
    association.type.delete(association.ctx, created.physical_id)
    assert driver.openstack.block_storage.associated_types(specs) == set()


def test_quotas_are_set_and_reset(driver, projects):
    project = projects.create("OS::Keystone::Project", {"name": driver.name()})
    quota = driver.create(Quota, {"project": project, "volumes": 3})
    assert driver.find(quota) == [project]
    driver.update(quota, volumes=4, gigabytes=5)
    assert driver.drift(quota) == {}
