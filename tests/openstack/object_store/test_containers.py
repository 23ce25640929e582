"""Containers of Swift, on the simulated cloud: the real control plane has no Swift."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.errors import ProviderError
from tests.openstack.conftest import DIRECTORY
from tests.openstack.driver import Driver
from tests.openstack.network.ground import lives

pytestmark = pytest.mark.skipif(bool(DIRECTORY), reason="the control plane has no Swift")
TYPE = "OS::Swift::Container"


def test_a_container_is_created_checked_and_deleted(driver: Driver) -> None:
    given = {
        "name": driver.name() + " ü",
        "X-Container-Read": ".r:*",
        "X-Container-Meta": {"Colour": "grün", "number": 5},
        "X-Account-Meta": {"owner": "me"},
    }
    container = lives(driver, TYPE, given)
    store = driver.openstack.object_store
    found = store.container(container) or {}
    assert (found["x-container-meta-colour"], found["x-container-meta-number"]) == ("grün", "5")
    assert store.account()["x-account-meta-owner"] == "me"
    store.put_object(container, "a", b"123")
    attributes = driver.attributes(container, "ObjectCount", "BytesUsed", "HeadContainer")
    assert (attributes["ObjectCount"], attributes["BytesUsed"]) == (1, 3)
    assert attributes["WebsiteURL"] == f"{attributes['RootURL']}/{container}"
    assert attributes["DomainName"] == "127.0.0.1"
    assert "x-container-meta-orchestrator-token" not in attributes["HeadContainer"]
    store.delete_object(container, "a")
    driver.delete(container)
    assert store.container(container) is None


def test_objects_prevent_a_delete(driver: Driver) -> None:
    container = driver.create(TYPE)
    resource = driver.resources[container]
    store = driver.openstack.object_store
    store.put_object(container, "a/b", b"1")
    with pytest.raises(ProviderError) as caught:
        resource.type.delete(replace(resource.ctx, action="DELETE"), container)
    reason = f"Deleting non-empty container ({container}) when PurgeOnDelete is False"
    assert str(caught.value) == f"{reason} is not supported for resource."
    store.delete_object(container, "a/b")


def test_objects_are_deleted_with_the_container(driver: Driver) -> None:
    container = driver.create(TYPE, {"PurgeOnDelete": True})
    store = driver.openstack.object_store
    for number in range(120):
        store.put_object(container, f"folder/{number} %", b"1")
    driver.delete(container)
    assert store.container(container) is None


def test_a_replacement_of_the_same_name_keeps_the_container(driver: Driver) -> None:
    name = driver.name()
    first = driver.prepare(TYPE, {"name": name, "PurgeOnDelete": True})
    first.physical_id = first.type.create(first.ctx, first.ctx.properties).physical_id
    first.ctx = replace(first.ctx, data={"token": first.ctx.token}, action="DELETE")
    store = driver.openstack.object_store
    store.put_object(name, "a", b"1")
    second = driver.create(TYPE, {"name": name, "PurgeOnDelete": True, "X-Container-Read": ".r:*"})
    first.type.delete(first.ctx, name)
    assert not first.type.observe(first.ctx, name).exists
    assert store.objects(second) == ["a"]


def test_a_bucket_is_created_checked_and_deleted(driver: Driver) -> None:
    given = {
        "AccessControl": "AuthenticatedRead",
        "WebsiteConfiguration": {"IndexDocument": "index.html"},
        "Tags": [{"Key": "colour", "Value": "red"}],
    }
    bucket = lives(driver, "AWS::S3::Bucket", given)
    store = driver.openstack.object_store
    found = store.container(bucket) or {}
    assert (found["x-container-read"], found["x-container-write"]) == ("demo", "demo:admin")
    assert found["x-container-meta-web-index"] == "index.html"
    assert found["x-container-meta-s3-tag-colour"] == "red"
    assert driver.attributes(bucket)["WebsiteURL"].endswith(f"/{bucket}")
    store.put_object(bucket, "a", b"1")
    resource = driver.resources[bucket]
    with pytest.raises(ProviderError, match="The bucket you tried to delete is not empty"):
        resource.type.delete(replace(resource.ctx, action="DELETE"), bucket)
    store.delete_object(bucket, "a")
