"""OS::Swift::Container and AWS::S3::Bucket."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import ProviderError, ProviderInUse
from orchestrator.resources.aws.s3.bucket import Bucket
from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.openstack.swift.container import Container
from orchestrator.testing.scripted_cloud import ScriptedCloud

TOKEN = "00000000-1"
TOKEN_HEADER = "X-Container-Meta-Orchestrator-Token"
NAME = "stack-it-abc"


@pytest.fixture
def script() -> ScriptedCloud:
    """A Swift that accepts new containers and has none."""
    script = ScriptedCloud()
    script.answers("PUT", "/.*", status=201)
    script.answers("HEAD", "/.*", status=404)
    script.answers("POST", "", status=204)
    return script


def context(kind: ResourceType, script: ScriptedCloud, action: str = "CREATE", **given: Any) -> Context:
    properties, faults = kind.read_properties(given)
    assert faults == []
    return Context(
        name="it",
        physical_name=NAME,
        token=TOKEN,
        action=action,
        properties=properties,
        data={"token": TOKEN},
        cloud=script.cloud,
    )


def has(script: ScriptedCloud, token: str = TOKEN, **headers: str) -> None:
    script.answers("HEAD", "/.*", status=204, headers={TOKEN_HEADER: token, **headers})


def test_metadata_and_access_lists_are_headers(script):
    kind = Container()
    given = {
        "X-Container-Read": ".r:*",
        "X-Container-Write": "p:u",
        "X-Container-Meta": {"a": 1, "b": "ü"},
        "X-Account-Meta": {"c": "d"},
    }
    ctx = context(kind, script, **given)
    created = kind.create(ctx, ctx.properties)
    assert created.physical_id == NAME
    put, post = script.requests
    assert put.path == f"/{NAME}"
    assert put.headers == {
        "X-Container-Read": ".r:*",
        "X-Container-Write": "p:u",
        "X-Container-Meta-a": "1",
        "X-Container-Meta-b": "Ã¼",  # UTF-8
        TOKEN_HEADER: TOKEN,
    }
    assert (post.path, post.headers) == ("", {"X-Account-Meta-c": "d"})


def test_the_container_of_a_lost_response_is_found_by_its_token(script):
    kind = Container()
    ctx = context(kind, script, name="mine")
    assert kind.find(ctx, TOKEN) is None
    has(script, "other")
    assert kind.find(ctx, TOKEN) is None
    has(script)
    assert kind.find(ctx, TOKEN) == "mine"


def test_a_create_whose_account_has_no_metadata_yet_is_repeated(script):
    kind = Container()
    ctx = context(kind, script, **{"X-Account-Meta": {"a": "b"}})
    has(script)
    script.answers("HEAD", "", status=204)
    assert kind.find(ctx, TOKEN) is None
    script.answers("HEAD", "", status=204, headers={"X-Account-Meta-A": "b"})
    assert kind.find(ctx, TOKEN) == NAME


def test_a_difference_is_reported(script):
    kind = Container()
    ctx = context(kind, script, "CHECK", **{"X-Container-Read": "x", "X-Container-Meta": {"A": 1, "b": "2"}})
    has(script, **{"X-Container-Read": "x", "X-Container-Meta-A": "1", "X-Container-Meta-B": "2"})
    observed = kind.observe(ctx, NAME).properties
    assert observed == {"X-Container-Read": "x", "X-Container-Meta": {"A": 1, "b": "2"}}
    has(script, **{"X-Container-Meta-A": "3"})
    observed = kind.observe(ctx, NAME).properties
    assert observed == {"X-Container-Read": None, "X-Container-Meta": {"A": "3"}}


def test_attributes_follow_from_the_url(script):
    kind = Container()
    ctx = context(kind, script)
    has(script, **{"X-Container-Object-Count": "2", "X-Container-Bytes-Used": "7"})
    assert kind.observe(ctx, NAME).attributes == {
        "DomainName": "swift",
        "WebsiteURL": f"http://swift:8080/v1/AUTH_p1/{NAME}",
        "RootURL": "http://swift:8080/v1/AUTH_p1",
    }
    live = kind.read_attributes(ctx, NAME, frozenset({"ObjectCount"}))
    assert (live["ObjectCount"], live["BytesUsed"]) == (2, 7)
    assert TOKEN_HEADER.lower() not in live["HeadContainer"]


def test_attributes_of_a_missing_container_are_null(script):
    kind = Container()
    names = frozenset({"ObjectCount", "show"})
    assert kind.read_attributes(context(kind, script), NAME, names) == {"ObjectCount": None, "show": None}


@pytest.mark.parametrize("name", list(Container.properties))
def test_every_change_replaces(name):
    assert Container().change({}, {}, frozenset({name})) == "replace"


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"name": "a/b"}, "name"),
        ({"X-Container-Meta": {"a b": "c"}}, "X-Container-Meta"),
        ({"X-Account-Meta": {"a": "b\r\nX-Evil: c"}}, "X-Account-Meta"),
    ],
)
def test_names_and_headers_that_swift_cannot_have_are_faults(given, where):
    (fault,) = Container().validate(given, 60.0)
    assert fault.property == where


def test_a_value_that_ends_a_header_is_not_sent(script):
    kind = Container()
    ctx = context(kind, script, **{"X-Container-Read": "a\nX-Evil: b"})
    with pytest.raises(ProviderError, match="control characters"):
        kind.create(ctx, ctx.properties)
    assert script.requests == []


def test_a_delete_accepts_a_missing_container(script):
    kind = Container()
    ctx = context(kind, script, "DELETE")
    kind.delete(ctx, NAME)
    assert not kind.observe(ctx, NAME).exists


def test_objects_prevent_a_delete(script):
    has(script)
    script.answers("DELETE", f"/{NAME}", status=409)
    script.answers("GET", rf"/{NAME}\?.*", [{"name": "a"}])
    for kind, reason in (
        (Container(), f"Deleting non-empty container ({NAME}) when PurgeOnDelete is False"),
        (Bucket(), f"The bucket you tried to delete is not empty ({NAME})."),
    ):
        with pytest.raises(ProviderError) as caught:
            kind.delete(context(kind, script, "DELETE"), NAME)
        assert str(caught.value) == f"{reason} is not supported for resource."
        assert caught.value.kind == "ResourceActionNotSupported"


def test_a_conflict_without_objects_passes(script):
    kind = Container()
    has(script)
    script.answers("DELETE", f"/{NAME}", status=409)
    script.answers("GET", rf"/{NAME}\?.*", [])
    with pytest.raises(ProviderInUse):
        kind.delete(context(kind, script, "DELETE"), NAME)


def test_a_purge_deletes_objects_in_steps(script):
    kind = Container()
    has(script)
    script.answers("DELETE", f"/{NAME}", status=409, times=1)
    ctx = context(kind, script, "DELETE", PurgeOnDelete=True)
    kind.delete(ctx, NAME)
    assert kind.observe(ctx, NAME).step == "purge"
    script.answers("GET", rf"/{NAME}\?.*", [])
    script.answers("GET", rf"/{NAME}\?.*", [{"name": "a/b c"}], times=1)
    script.answers("DELETE", "/.*", status=204)
    kind.advance(ctx, NAME, ctx.properties, "purge")
    assert [request.path for request in script.sent("DELETE")][1:] == [f"/{NAME}/a%2Fb%20c", f"/{NAME}"]


def test_a_container_that_a_replacement_took_over_is_left_alone(script):
    kind = Container()
    has(script, "00000000-2")
    ctx = context(kind, script, "DELETE")
    kind.delete(ctx, NAME)
    assert script.sent("DELETE") == []
    assert not kind.observe(ctx, NAME).exists


def test_a_rollback_takes_the_container_back(script):
    kind = Container()
    has(script, "00000000-2")
    ctx = context(kind, script, "UPDATE", **{"X-Container-Read": "x"})
    kind.reclaim(ctx, NAME, ctx.properties)
    (put,) = script.sent("PUT")
    assert put.headers == {"X-Container-Read": "x", TOKEN_HEADER: TOKEN}
    has(script)
    kind.reclaim(ctx, NAME, ctx.properties)
    assert len(script.sent("PUT")) == 1


@pytest.mark.parametrize(
    ("access", "read", "write"),
    [
        (None, "project:user", "project:user"),
        ("Private", "project:user", "project:user"),
        ("PublicRead", ".r:*", "project:user"),
        ("PublicReadWrite", ".r:*", ".r:*"),
        ("AuthenticatedRead", "project", "project:user"),
        ("BucketOwnerRead", "project:user", "project:user"),
        ("BucketOwnerFullControl", "project:user", "project:user"),
    ],
)
def test_a_bucket_has_amazons_access_lists(script, access, read, write):
    kind = Bucket()
    ctx = context(kind, script, **({"AccessControl": access} if access else {}))
    kind.create(ctx, ctx.properties)
    (put,) = script.sent("PUT")
    assert (put.headers["X-Container-Read"], put.headers["X-Container-Write"]) == (read, write)


def test_a_bucket_has_tags_and_may_be_a_website(script):
    kind = Bucket()
    website = {"IndexDocument": "index.html", "ErrorDocument": "error.html"}
    tags = [{"Key": "a", "Value": "b"}]
    ctx = context(kind, script, WebsiteConfiguration=website, Tags=tags)
    kind.create(ctx, ctx.properties)
    headers = script.sent("PUT")[0].headers
    assert headers["X-Container-Meta-Web-Index"] == "index.html"
    assert headers["X-Container-Meta-Web-Error"] == "error.html"
    assert headers["X-Container-Meta-S3-Tag-a"] == "b"
