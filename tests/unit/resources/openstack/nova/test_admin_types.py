"""Flavors, server groups, quotas and host aggregates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.resources.openstack.nova.flavor import Flavor
from orchestrator.resources.openstack.nova.host_aggregate import HostAggregate
from orchestrator.resources.openstack.nova.quota import Quota
from orchestrator.resources.openstack.nova.server_group import ServerGroup
from orchestrator.resources.software_api import id_of
from orchestrator.template.definition import ResourceDefinition


def given(type_, **values):
    properties, faults = type_().read_properties(values)
    assert faults == []
    return properties


def faults_among(type_, **written):
    definition = ResourceDefinition("q", type_.name, {"properties": written}, frozenset(), {}, frozenset())
    return [fault.message for fault in type_().validate_among("q", written, {"q": definition})]


def serve_flavor(cloud, *, public=True, specs=None, projects=()):
    flavor = {
        "id": "f1",
        "name": "stack-thing-abcdefghijkl",
        "ram": 64,
        "vcpus": 1,
        "os-flavor-access:is_public": public,
    }
    cloud.answers("GET", "/flavors/[^/]*", {"flavor": flavor})
    cloud.answers("GET", "/flavors/[^/]*/os-extra_specs", {"extra_specs": specs or {}})
    access = [{"flavor_id": "f1", "tenant_id": project} for project in projects]
    cloud.answers("GET", "/flavors/[^/]*/os-flavor-access", {"flavor_access": access})


def test_a_flavor_is_created_under_the_id_of_its_token(cloud, context_of):
    ctx = context_of(given(Flavor, ram=64, vcpus=1, disk=2, ephemeral=1, is_public=False))
    cloud.answers("POST", "/flavors", lambda request: {"flavor": request.body["flavor"]})
    created = Flavor().create(ctx, ctx.properties)
    assert created.physical_id == id_of(ctx.token)
    assert cloud.sent("POST")[0].body["flavor"] == {
        "name": "stack-thing-abcdefghijkl",
        "id": id_of(ctx.token),
        "ram": 64,
        "vcpus": 1,
        "disk": 2,
        "swap": 0,
        "OS-FLV-EXT-DATA:ephemeral": 1,
        "rxtx_factor": 1.0,
        "os-flavor-access:is_public": False,
    }
    serve_flavor(cloud)
    assert Flavor().find(ctx, ctx.token) == ["f1"]


def test_a_foreign_flavor_with_the_given_id_is_not_ours(cloud, context_of):
    serve_flavor(cloud)
    ctx = context_of(given(Flavor, ram=128, vcpus=1, flavorid="f1"))
    assert Flavor().find(ctx, ctx.token) is None


def test_specs_and_projects_of_a_flavor_are_a_step(cloud, context_of):
    props = given(Flavor, ram=64, vcpus=1, is_public=False, tenants=["p2", "p3"], extra_specs={"a": 1})
    serve_flavor(cloud, public=False, specs={"b": "2"}, projects=("p1", "p2"))
    ctx = context_of(props, action="UPDATE")
    assert Flavor().observe(ctx, "f1").step == "configure"
    cloud.answers("DELETE", ".*", None)
    cloud.answers("POST", ".*", {})
    Flavor().advance(ctx, "f1", props, "configure")
    assert cloud.sent("DELETE")[0].path == "/flavors/f1/os-extra_specs/b"
    assert [request.body for request in cloud.sent("POST")] == [
        {"extra_specs": {"a": "1"}},
        {"addTenantAccess": {"tenant": "p3"}},
        {"removeTenantAccess": {"tenant": "p1"}},
    ]
    serve_flavor(cloud, public=False, specs={"a": "1"}, projects=("p2", "p3"))
    observation = Flavor().observe(ctx, "f1")
    assert observation.ready
    assert observation.attributes == {"is_public": False, "extra_specs": {"a": "1"}}


def test_a_public_flavor_has_no_projects():
    faults = Flavor().validate({"is_public": True, "tenants": ["p"]}, 1.0)
    assert [fault.message for fault in faults] == [
        'Can not specify property "tenants" if the flavor is public.'
    ]


@pytest.mark.parametrize(
    ("rules", "version", "group"),
    [
        (None, "2.15", {"name": "g", "policies": ["soft-affinity"]}),
        (
            {"max_server_per_host": 2},
            "2.64",
            {"name": "g", "policy": "soft-affinity", "rules": {"max_server_per_host": 2}},
        ),
    ],
)
def test_rules_of_a_server_group_require_a_newer_nova(cloud, context_of, rules, version, group):
    values = {"name": "g", "policies": ["soft-affinity"], **({"rules": rules} if rules else {})}
    ctx = context_of(given(ServerGroup, **values))
    cloud.answers("POST", "/os-server-groups", {"server_group": {"id": "g1"}})
    assert ServerGroup().create(ctx, ctx.properties).physical_id == "g1"
    request = cloud.sent("POST")[0]
    assert (request.microversion, request.body["server_group"]) == (version, group)


def test_an_empty_server_group_with_the_name_is_found(cloud, context_of):
    ctx = context_of(given(ServerGroup))
    groups = [
        {"id": "g1", "name": ctx.physical_name, "policies": ["affinity"], "members": []},
        {"id": "g2", "name": ctx.physical_name, "policies": ["anti-affinity"], "members": ["s"]},
        {"id": "g3", "name": ctx.physical_name, "policies": ["anti-affinity"], "members": []},
    ]
    cloud.answers("GET", "/os-server-groups", {"server_groups": groups})
    assert ServerGroup().find(ctx, ctx.token) == ["g3"]


def test_quotas_are_set_and_reset(cloud, context_of):
    ctx = context_of(given(Quota, project="p9", cores=4, instances=-1))
    cloud.answers("PUT", "/os-quota-sets/p9", {"quota_set": {}})
    assert Quota().create(ctx, ctx.properties).physical_id == "p9"
    assert cloud.sent("PUT")[0].body == {"quota_set": {"cores": 4, "instances": -1}}
    cloud.answers("GET", "/os-quota-sets/p9", {"quota_set": {"id": "p9", "cores": 4, "instances": -1}})
    assert Quota().find(ctx, ctx.token) == "p9"
    assert Quota().observe(ctx, "p9").properties == {"cores": 4, "instances": -1}
    cloud.answers("DELETE", "/os-quota-sets/p9", None, status=202)
    Quota().delete(ctx, "p9")
    assert cloud.sent("DELETE")


def test_a_quota_is_required():
    (message,) = faults_among(Quota, project="p")
    assert message.startswith("At least one of the following properties must be specified: cores, fixed_ips,")
    assert faults_among(Quota, project="p", ram=1) == []


def serve_aggregate(cloud, hosts=(), **metadata):
    aggregate = {"id": 7, "name": "a", "hosts": list(hosts), "metadata": metadata, "availability_zone": "z"}
    cloud.answers("GET", "/os-aggregates/7", {"aggregate": aggregate})


def test_hosts_and_metadata_of_an_aggregate_are_a_step(cloud, context_of):
    props = given(HostAggregate, name="a", availability_zone="z", hosts=["h2"], metadata={"ssd": True})
    ctx = context_of(props)
    cloud.answers("POST", "/os-aggregates", {"aggregate": {"id": 7}})
    assert HostAggregate().create(ctx, props).physical_id == "7"
    serve_aggregate(cloud, ["h1"], availability_zone="z", old="1")
    assert HostAggregate().observe(ctx, "7").step == "configure"
    cloud.answers("POST", "/os-aggregates/7/action", {})
    HostAggregate().advance(ctx, "7", props, "configure")
    assert [request.body for request in cloud.sent("POST", ".*/action")] == [
        {"set_metadata": {"metadata": {"old": None, "ssd": "True"}}},
        {"remove_host": {"host": "h1"}},
        {"add_host": {"host": "h2"}},
    ]
    serve_aggregate(cloud, ["h2"], availability_zone="z", ssd="True")
    assert HostAggregate().observe(ctx, "7").ready


def test_an_aggregate_is_emptied_before_it_is_deleted(cloud, context_of):
    serve_aggregate(cloud, ["h1"])
    cloud.answers("POST", "/os-aggregates/7/action", {})
    cloud.answers("DELETE", "/os-aggregates/7", None)
    HostAggregate().delete(context_of(given(HostAggregate, name="a")), "7")
    assert [request.method for request in cloud.requests] == ["GET", "POST", "DELETE"]


@pytest.mark.parametrize(("age", "found"), [(3, ["7"]), (900, None)])
def test_an_older_aggregate_with_the_name_is_not_ours(cloud, context_of, age, found):
    created = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
    listed = {"aggregates": [{"id": 7, "name": "a", "created_at": created}]}
    cloud.answers("GET", "/os-aggregates", listed)
    ctx = context_of(given(HostAggregate, name="a"), elapsed_seconds=5.0)
    assert HostAggregate().find(ctx, ctx.token) == found
