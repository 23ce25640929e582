"""OS::Nova::KeyPair on a cloud."""

from __future__ import annotations

import pytest

from orchestrator.errors import ProviderConflict
from orchestrator.resources.openstack.nova.keypair import KeyPair


def test_a_key_pair_is_created_found_and_deleted(member):
    name = member.name()
    key = member.create(KeyPair, {"name": name, "save_private_key": True})
    attributes = member.attributes(key, "show")
    assert attributes["public_key"].startswith("ssh-")
    assert "PRIVATE KEY" in attributes["private_key"]
    assert attributes["show"]["name"] == name
    assert member.find(key) == [name]
    with pytest.raises(ProviderConflict, match="already exists"):
        member.create(KeyPair, {"name": name})
    member.delete(key)


def test_a_released_key_pair_is_imported_again(member):
    name = member.name()
    key = member.create(KeyPair, {"name": name})
    resource, public = member.resources[key], member.attributes(key)["public_key"]
    resource.type.release(resource.ctx, key)
    assert not member.observe(key).exists
    resource.type.reclaim(resource.ctx, key, resource.ctx.properties)
    assert member.attributes(key)["public_key"] == public
