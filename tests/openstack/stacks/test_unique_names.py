"""Objects whose given name is unique in their service: a replacement with the same name, its rollback, and
objects of other owners (`orchestrator.resources.base.Unique`). All registered types take part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.resources.base import ResourceType
from tests.contract.conftest import all_types
from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.requests import Requests
from tests.openstack.stacks.templates import of
from tests.openstack.stacks.unique_names import NAMED, Named
from tests.scenarios.world import HOUR

TYPES = all_types()
UNIQUE = {name: type_ for name, type_ in TYPES.items() if type_.unique is not None}
DOCS = Path(__file__).parents[3] / "docs" / "openstack-types.md"
PREPARED = set[str]()  # types whose requirements exist
FAILING = {"bad": {**of("OS::Heat::TestResource", fail=True), "depends_on": ["it"]}}
# Types with a given name of which a service accepts two objects.
FREE_NAMES = frozenset(
    {
        *(f"OS::Neutron::{kind}" for kind in ("AddressScope", "MeteringLabel", "Net", "Port", "ProviderNet")),
        *(f"OS::Neutron::{kind}" for kind in ("QoSPolicy", "Router", "SecurityGroup", "Segment", "Subnet")),
        *(f"OS::Neutron::{kind}" for kind in ("SubnetPool", "Trunk")),
        *(f"OS::Octavia::{kind}" for kind in ("AvailabilityZoneProfile", "FlavorProfile", "L7Policy")),
        "OS::Octavia::LoadBalancer",
        *(f"OS::Barbican::{kind}" for kind in ("CertificateContainer", "GenericContainer", "Order")),
        *(f"OS::Barbican::{kind}" for kind in ("RSAContainer", "Secret")),
        *("OS::Nova::Server", "OS::Nova::ServerGroup", "OS::Cinder::Volume"),
        *("OS::Keystone::Endpoint", "OS::Keystone::Service"),
        *("OS::Heat::DeployedServer", "OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment"),
    }
)


@pytest.fixture(params=NAMED, ids=lambda one: f"{one.type}-{next(iter(one.properties))}")
def named(request: pytest.FixtureRequest, world: CloudWorld) -> Iterator[Named]:
    """Return a resource of each type in turn, whose requirements exist. Remove all other objects of the test.

    The requirements stay: their ids are cached.
    """
    one: Named = request.param
    if one.others and one.type not in PREPARED:
        world.settle(world.create("base", one.others), "CREATE_COMPLETE")
        PREPARED.add(one.type)
    before = world.objects()
    table = world.cloud.state.table(one.kind)
    one.known.update(row["id"] for row in table if one.matches(row))
    yield one
    for kind, id_ in world.objects() - before:
        world.cloud.state.table(kind).remove(id_)
    for row in list(filter(one.is_own, table)):
        table.save({**row, "encryption": None, "qos_specs_id": None})
    one.known.clear()


def created(world: CloudWorld, named: Named, name: str = "s", **options: Any) -> str:
    """Return a complete stack."""
    uuid = world.create(name, named.resources(), **options)
    world.settle(uuid, "CREATE_COMPLETE")
    return uuid


def replace(world: CloudWorld, named: Named, **options: Any) -> None:
    """Ask for an update that replaces the resource."""
    if not named.replacing:
        world.mark("s", "it")
    others = options.pop("others", {})
    world.update("s", {**named.resources(changed=True), **others}, **options)


def deleted(world: CloudWorld, uuid: str, name: str = "s") -> None:
    """Delete a stack."""
    world.delete(name)
    world.settle(uuid, "DELETE_COMPLETE")


def test_a_replacement_of_the_same_name_is_the_only_object(world: CloudWorld, named: Named) -> None:
    uuid = created(world, named)
    [before], row = named.objects(world), world.resource("it")
    replace(world, named)
    world.settle(uuid, "UPDATE_COMPLETE")
    [after] = named.objects(world)
    assert world.resource("it").uuid != row.uuid
    assert (before != after) == bool(named.replacing and named.shown not in ("headers", "port_range_min"))
    world.act("s", "check")
    world.settle(uuid, "CHECK_COMPLETE")
    deleted(world, uuid)
    assert named.objects(world) == []


def test_a_rollback_leaves_the_object_of_the_old_definition(world: CloudWorld, named: Named) -> None:
    uuid = created(world, named, disable_rollback=False)
    before = named.objects(world)
    replace(world, named, others=FAILING, disable_rollback=False)
    world.settle(uuid, "ROLLBACK_COMPLETE")
    assert named.objects(world) == before
    world.act("s", "check")
    world.settle(uuid, "CHECK_COMPLETE")
    deleted(world, uuid)
    assert named.objects(world) == []


@pytest.mark.long
def test_a_replacement_of_a_failed_replacement_is_the_only_object(world: CloudWorld, named: Named) -> None:
    uuid = created(world, named)
    replace(world, named, others=FAILING)
    world.settle(uuid, "UPDATE_FAILED")
    world.mark("s", "it")
    world.update("s", named.resources(changed=True))
    world.settle(uuid, "UPDATE_COMPLETE")
    assert len(named.objects(world)) == 1
    world.update("s", named.resources())
    world.settle(uuid, "UPDATE_COMPLETE")
    assert len(named.objects(world)) == 1
    deleted(world, uuid)
    assert named.objects(world) == []


def test_an_object_of_another_stack_stays(world: CloudWorld, named: Named) -> None:
    if not named.is_refused:
        pytest.skip("the service accepts a second create")
    created(world, named, "other")
    before = named.objects(world)
    uuid = world.create("s", named.resources())
    world.settle(uuid, "CREATE_FAILED")
    assert named.objects(world) == before
    world.update("s", named.resources())
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED", (world.causes(), named.objects(world))
    deleted(world, uuid)
    assert named.objects(world) == before


def test_an_object_of_another_stack_stays_if_the_create_has_no_answer(
    world: CloudWorld, named: Named
) -> None:
    if not UNIQUE[named.type].unique.searched:
        pytest.skip("objects have a token")
    created(world, named, "other")
    before = named.objects(world)
    service = UNIQUE[named.type].service
    world.cloud.faults.set({"api": [{"service": service, "method": "POST", "drop": True, "times": 1}]})
    uuid = world.create("s", named.resources())
    world.settle(uuid, "CREATE_FAILED")
    deleted(world, uuid)
    assert named.objects(world) == before


def test_an_object_that_followed_a_lost_object_stays(world: CloudWorld, named: Named) -> None:
    if not named.is_refused:
        pytest.skip("the service accepts a second create")
    uuid = created(world, named)
    table = world.cloud.state.table(named.kind)
    [row] = [row for row in table if named.matches(row)]
    if row.get("encryption"):
        table.save({**row, "encryption": None})
    else:
        table.remove(row["id"])
    followed = world.create("other", named.resources(changed=True))
    world.settle(followed, "CREATE_COMPLETE")
    before = named.objects(world)
    deleted(world, uuid)
    assert named.objects(world) == before
    deleted(world, followed, "other")
    assert named.objects(world) == []


def test_a_retained_object_keeps_its_name(world: CloudWorld, named: Named) -> None:
    if not named.is_refused:
        pytest.skip("the service accepts a second create")
    resources = {"it": {**named.resources()["it"], "deletion_policy": "Retain"}}
    uuid = world.create("s", resources)
    world.settle(uuid, "CREATE_COMPLETE")
    before = named.objects(world)
    replace(world, named)
    world.settle(uuid, "UPDATE_FAILED")
    assert named.objects(world) == before


def test_a_replacement_waits_while_a_delete_without_an_answer_may_arrive(
    world: CloudWorld, requests: Requests
) -> None:
    named = NAMED[0]
    uuid = created(world, named)
    world.cloud.faults.set({"api": [{"service": "nova", "method": "DELETE", "drop": True, "times": 1}]})
    requests.sent.clear()
    replace(world, named)
    world.retry(4)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    sent = [line.split()[0] for line in requests.sent if "/os-keypairs" in line]
    assert (sent.count("DELETE"), sent.count("POST")) == (2, 0)
    world.elapse(HOUR, "lost lease")
    world.settle(uuid, "UPDATE_COMPLETE")
    assert named.objects(world) == [named.replacing["public_key"]]
    deleted(world, uuid)


def test_every_type_with_a_unique_name_takes_part() -> None:
    taking_part = {one.type for one in NAMED}
    assert taking_part == {name for name, type_ in UNIQUE.items() if type_.unique.rule != "refuse"}
    keys = {(one.type, next(iter(one.properties))) for one in NAMED}
    assert keys <= {(name, key[0]) for name in taking_part for key in UNIQUE[name].unique.keys}


def test_every_type_with_a_given_name_declares_whether_it_is_unique() -> None:
    given = {
        name
        for name, type_ in TYPES.items()
        if type_.calls_out and {"name", "id", "flavorid"} & type_.properties.keys()
    }
    assert given - UNIQUE.keys() == FREE_NAMES


def test_the_keys_of_a_unique_name_are_properties() -> None:
    for name, type_ in UNIQUE.items():
        for key in type_.unique.keys:
            assert set(key) <= type_.properties.keys(), name


def test_the_documentation_has_the_rule_of_every_type() -> None:
    text = DOCS.read_text()
    table = text[text.index("## Unique names") :].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w:]+)` \| (.+?) \| ([\w ]+) \|", table, re.MULTILINE)
    assert sorted(rows) == sorted((name, keys(type_), type_.unique.rule) for name, type_ in UNIQUE.items())


def keys(type_: ResourceType) -> str:
    """Return the keys as the documentation has them."""
    return "; ".join(", ".join(f"`{one}`" for one in key) for key in type_.unique.keys)
