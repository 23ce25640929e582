"""OS::Nova::KeyPair."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.errors import ProviderConflict, ProviderSilent
from orchestrator.resources.openstack.nova.keypair import KeyPair


def props(**values):
    return {"name": "key", "save_private_key": False, **values}


def stored(age: float = 0.0, **values):
    created = datetime.now(UTC) - timedelta(seconds=age)
    return {
        "keypair": {"name": "key", "public_key": "ssh-rsa A", "created_at": created.isoformat(), **values}
    }


def test_a_public_key_is_imported(cloud, context_of):
    given = props(public_key="ssh-rsa A", type="ssh")
    cloud.answers("POST", "/os-keypairs", {"keypair": {"name": "key", "public_key": "ssh-rsa A"}})
    created = KeyPair().create(context_of(given), given)
    assert (created.physical_id, created.secret) == ("key", False)
    sent = {"keypair": {"name": "key", "public_key": "ssh-rsa A", "type": "ssh"}}
    assert cloud.requests[-1].body == sent


@pytest.mark.parametrize(("save", "shown"), [(True, "PEM"), (False, "")])
def test_a_generated_private_key_is_shown_only_if_it_is_stored(cloud, context_of, save, shown):
    answer = {"keypair": {"name": "key", "public_key": "ssh-rsa A", "private_key": "PEM"}}
    cloud.answers("POST", "/os-keypairs", answer)
    cloud.answers("GET", "/os-keypairs/key", stored())
    ctx = context_of(props(save_private_key=save))
    created = KeyPair().create(ctx, ctx.properties)
    assert created.secret is save
    observation = KeyPair().observe(replace(ctx, data=created.data), "key")
    assert observation.attributes == {"public_key": "ssh-rsa A", "private_key": shown}


def test_a_taken_name_is_a_conflict_with_novas_message(cloud, context_of):
    answer = {"conflictingRequest": {"message": "Key pair 'key' already exists.", "code": 409}}
    cloud.answers("POST", "/os-keypairs", answer, status=409)
    with pytest.raises(ProviderConflict, match="Key pair 'key' already exists"):
        KeyPair().create(context_of(props()), props())


@pytest.mark.parametrize(("age", "found"), [(5, "key"), (3600, None)])
def test_a_key_pair_of_a_lost_create_is_recognized_by_its_age(cloud, context_of, age, found):
    cloud.answers("GET", "/os-keypairs/key", stored(age))
    ctx = context_of(props(), elapsed_seconds=8.0)
    assert KeyPair().find(ctx, ctx.token) == found


def test_a_key_pair_with_a_lost_private_key_is_created_again(cloud, context_of):
    cloud.answers("GET", "/os-keypairs/key", stored())
    observation = KeyPair().observe(context_of(props(save_private_key=True)), "key")
    assert observation.replaceable
    assert "private key was lost" in observation.error


def test_a_release_deletes_the_key_pair_and_a_rollback_imports_it(cloud, context_of):
    ctx = context_of(props(), data={"public_key": "ssh-rsa A"})
    cloud.answers("DELETE", "/os-keypairs/key", None, status=202)
    cloud.answers("POST", "/os-keypairs", {"keypair": {"name": "key"}})
    KeyPair().release(ctx, "key")
    assert not KeyPair().observe(ctx, "key").exists
    KeyPair().reclaim(ctx, "key", props())
    assert [request.body for request in cloud.sent("POST")] == [
        {"keypair": {"name": "key", "public_key": "ssh-rsa A"}}
    ]


def test_names_are_quoted_in_paths(cloud, context_of):
    KeyPair().observe(context_of(props(name="my key/1")), "my key/1")
    assert cloud.requests[-1].path == "/os-keypairs/my%20key%2F1"


def test_a_missing_key_pair_is_deleted_and_absent(context_of):
    ctx = context_of(props(), action="DELETE")
    KeyPair().delete(ctx, "key")
    assert not KeyPair().observe(ctx, "key").exists


def test_another_users_key_pair_is_addressed_by_the_user(cloud, context_of):
    ctx = context_of(props(user="alice-id"))
    cloud.answers("POST", "/os-keypairs", {"keypair": {"name": "key"}})
    KeyPair().create(ctx, ctx.properties)
    KeyPair().delete(ctx, "key")
    assert cloud.sent("POST")[0].body["keypair"]["user_id"] == "alice-id"
    assert cloud.requests[-1].target == "/os-keypairs/key?user_id=alice-id"


def test_an_outage_is_not_an_absent_key_pair(cloud, context_of):
    cloud.answers("GET", "/os-keypairs/key", {"error": {"message": "boom"}}, status=500)
    with pytest.raises(ProviderSilent):
        KeyPair().observe(context_of(props()), "key")


def test_the_raw_view_is_a_live_attribute(cloud, context_of):
    cloud.answers("GET", "/os-keypairs/key", stored())
    shown = KeyPair().read_attributes(context_of(props()), "key", frozenset({"show"}))
    assert shown["show"]["public_key"] == "ssh-rsa A"
