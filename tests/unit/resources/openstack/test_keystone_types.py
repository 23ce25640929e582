"""Keystone's types, with a Keystone in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.errors import ProviderConflict, ProviderError, ProviderNotFound, ProviderSilent
from orchestrator.resources.openstack.keystone.catalog_service import CatalogService
from orchestrator.resources.openstack.keystone.domain import Domain
from orchestrator.resources.openstack.keystone.endpoint import Endpoint
from orchestrator.resources.openstack.keystone.group import Group
from orchestrator.resources.openstack.keystone.project import Project
from orchestrator.resources.openstack.keystone.region import Region
from orchestrator.resources.openstack.keystone.role import Role
from orchestrator.resources.openstack.keystone.user import User
from tests.unit.resources.openstack.double_cloud import Answer, refusal

NAMED = (Project, User, Group, Role, Domain)
SERVICE = {"service": "service-1", "interface": "public", "url": "http://x/"}


def stored(keystone, item):
    return keystone.objects[item.kind.collection.plural][item.physical_id]


class TestEveryType:
    @pytest.mark.parametrize(
        ("kind", "properties"),
        [
            *((kind, {}) for kind in NAMED),
            (Region, {}),
            (CatalogService, {"type": "t"}),
            (Endpoint, SERVICE),
        ],
    )
    def test_it_is_created_found_shown_and_deleted(self, kind, properties, keystone, made):
        item = made(kind, **properties)
        assert item.physical_id in keystone.objects[kind.collection.plural]
        assert item.kind.find(item.ctx, item.ctx.token) == [item.physical_id]
        assert item.kind.find(item.ctx, "other token") is None
        assert item.show()["id"] == item.physical_id
        assert "orchestrator_token" not in item.show()
        item.delete()
        assert item.physical_id not in keystone.objects[kind.collection.plural]
        item.kind.delete(item.ctx, item.physical_id)
        assert not item.check().exists

    @pytest.mark.parametrize("kind", [*NAMED, CatalogService, Endpoint])
    def test_the_physical_name_is_the_default_name(self, kind, keystone, made):
        item = made(
            kind, **({"type": "t"} if kind is CatalogService else SERVICE if kind is Endpoint else {})
        )
        assert stored(keystone, item)["name"] == "stack-it-abcdef"
        assert "name" not in item.check().properties
        item.update(name="mine")
        assert stored(keystone, item)["name"] == "mine"
        assert item.check().properties["name"] == "mine"
        item.update(name=None)
        assert stored(keystone, item)["name"] == "stack-it-abcdef"

    @pytest.mark.parametrize("kind", NAMED)
    def test_a_name_in_use_is_a_conflict_and_not_adopted(self, kind, made, make):
        made(kind, name="mine")
        other = make(kind, name="mine")
        other.ctx = replace(other.ctx, token="00000000-2")
        with pytest.raises(
            ProviderConflict, match=r"Conflict occurred .*\(HTTP 409 from keystone\) \(Request-ID: req-1\)"
        ):
            other.create()
        assert other.kind.find(other.ctx, other.ctx.token) is None

    def test_a_refusal_for_a_member_has_keystones_words(self, double, make):
        text = "You are not authorized to perform the requested action: identity:create_project."
        double.faults.append(lambda request: refusal(403, text) if request.method == "POST" else None)
        with pytest.raises(
            ProviderError, match=r"identity:create_project\. \(HTTP 403 from keystone\)"
        ) as raised:
            make(Project).create()
        assert raised.value.kind == "Forbidden"

    def test_the_object_of_a_lost_response_is_found(self, double, keystone, make):
        def lose(request):
            if request.method == "POST":
                keystone(request)
                return Answer("", 504)
            return None

        double.faults.append(lose)
        item = make(Project, name="mine")
        with pytest.raises(ProviderSilent):
            item.create()
        (found,) = item.kind.find(item.ctx, item.ctx.token)
        assert keystone.objects["projects"][found]["name"] == "mine"

    @pytest.mark.parametrize("kind", [Project, User, Group])
    def test_another_domain_is_refused_by_keystone(self, kind, made):
        item = made(kind)
        with pytest.raises(ProviderError, match="Cannot change Domain ID"):
            item.update(domain="other")


class TestProjects:
    def test_every_property_reaches_keystone(self, keystone, made):
        parent = made(Project, name="parent")
        item = made(
            Project,
            name="p",
            domain="default",
            description="text",
            enabled=False,
            parent=parent.physical_id,
            tags=["a", "b"],
        )
        values = stored(keystone, item)
        assert (values["name"], values["domain_id"], values["description"]) == ("p", "default", "text")
        assert (values["enabled"], values["parent_id"], values["tags"]) == (
            False,
            parent.physical_id,
            ["a", "b"],
        )

    def test_it_has_attributes(self, made):
        item = made(Project, name="p")
        assert item.check().attributes == {
            "name": "p",
            "parent_id": None,
            "domain_id": "default",
            "enabled": True,
            "is_domain": None,
        }

    def test_it_is_updated_in_place(self, keystone, double, made):
        item = made(Project, tags=["a"])
        item.update(description="new", enabled=False, tags=[])
        assert stored(keystone, item) | {"description": "new", "enabled": False, "tags": []} == stored(
            keystone, item
        )
        (patch,) = (one for one in double.requests if one.method == "PATCH")
        assert patch.body == {"project": {"description": "new", "enabled": False, "tags": []}}

    def test_the_order_of_tags_is_no_difference(self, keystone, made):
        item = made(Project, tags=["b", "a"])
        stored(keystone, item)["tags"] = ["a", "b"]
        assert item.check().properties["tags"] == ["b", "a"]
        stored(keystone, item)["tags"] = ["a"]
        assert item.check().properties["tags"] == ["a"]

    def test_a_new_parent_replaces_it(self, make):
        item = make(Project)
        assert item.kind.change({}, {"parent": "x"}, frozenset({"parent"})) == "replace"


class TestUsers:
    @pytest.fixture
    def roles(self, keystone):
        return [keystone.add("roles", name=name) for name in "ab"]

    @pytest.fixture
    def project(self, keystone):
        return keystone.add("projects", name="p", domain_id="default")

    @pytest.fixture
    def groups(self, keystone):
        return [keystone.add("groups", name=name, domain_id="default") for name in "xyz"]

    def test_every_property_reaches_keystone(self, keystone, double, made, project):
        item = made(
            User, name="u", description="text", email="u@x", password="secret", default_project=project
        )
        values = stored(keystone, item)
        assert (values["name"], values["description"], values["email"]) == ("u", "text", "u@x")
        assert values["default_project_id"] == project
        assert double.requests[0].body["user"]["password"] == "secret"
        assert "password" not in item.check().properties
        assert double.count("GET", "role_assignments") == 0  # nothing to compare

    def test_it_has_attributes(self, made, project):
        item = made(User, name="u", default_project=project, enabled=False)
        assert item.check().attributes == {
            "name": "u",
            "default_project_id": project,
            "domain_id": "default",
            "enabled": False,
            "password_expires_at": None,
        }

    def test_a_new_password_is_sent(self, double, made):
        item = made(User, password="one")
        item.update(password="two")
        assert double.requests[-2].body == {"user": {"password": "two"}}

    def test_groups_and_roles_are_a_step_after_the_create(self, keystone, make, roles, project, groups):
        item = make(User, groups=groups[:2], roles=[{"role": roles[0], "project": project}])
        item._record(item.kind.create(item.ctx, item.ctx.properties))
        assert keystone.members == set()
        observation = item.observe("CREATE")
        assert (observation.ready, observation.step) == (False, "link")
        assert item.settle().ready
        assert keystone.members == {(groups[0], item.physical_id), (groups[1], item.physical_id)}
        assert keystone.assignments == {("projects", project, "users", item.physical_id, roles[0])}

    def test_a_role_in_a_domain(self, keystone, made, roles):
        item = made(User, roles=[{"role": roles[0], "domain": "default"}])
        assert keystone.assignments == {("domains", "default", "users", item.physical_id, roles[0])}

    def test_an_update_exchanges_links_and_leaves_those_of_others(
        self, keystone, made, roles, project, groups
    ):
        item = made(User, groups=groups[:2], roles=[{"role": roles[0], "project": project}])
        foreign = ("domains", "default", "users", item.physical_id, roles[0])
        keystone.assignments.add(foreign)
        keystone.members.add((groups[2], item.physical_id))
        item.update(groups=[groups[1]], roles=[{"role": roles[1], "project": project}])
        assert keystone.members == {(groups[1], item.physical_id), (groups[2], item.physical_id)}
        assert keystone.assignments == {
            foreign,
            ("projects", project, "users", item.physical_id, roles[1]),
        }

    def test_removed_properties_sever_all_managed_links(self, keystone, made, roles, project, groups):
        item = made(User, groups=groups, roles=[{"role": roles[0], "project": project}])
        item.update(groups=None, roles=None)
        assert (keystone.members, keystone.assignments) == (set(), set())

    def test_links_of_an_interrupted_update_are_severed_by_the_next(self, keystone, double, made, groups):
        item = made(User, groups=[groups[0]])
        double.faults.append(
            lambda request: refusal(403, "no") if request.path[:2] == ("groups", groups[2]) else None
        )
        with pytest.raises(ProviderError):
            item.update(groups=[groups[1], groups[2]])
        assert (groups[1], item.physical_id) in keystone.members
        double.faults.clear()
        item.update(groups=[groups[0]])
        assert keystone.members == {(groups[0], item.physical_id)}

    def test_a_lost_link_is_a_difference(self, keystone, made, roles, project, groups):
        given = [{"role": roles[0], "project": project}]
        item = made(User, groups=groups[:2], roles=given)
        assert item.check().properties["roles"] == given
        keystone.assignments.clear()
        keystone.members.discard((groups[0], item.physical_id))
        observed = item.check().properties
        assert (observed["roles"], observed["groups"]) == ([], [groups[1]])

    def test_a_missing_group_fails_it(self, make):
        with pytest.raises(ProviderNotFound, match="Could not find group-99"):
            make(User, groups=["group-99"]).create()


class TestGroups:
    def test_it_has_roles(self, keystone, made):
        role = keystone.add("roles", name="r")
        item = made(Group, name="g", description="d", roles=[{"role": role, "domain": "default"}])
        assert keystone.assignments == {("domains", "default", "groups", item.physical_id, role)}
        item.update(description="new", roles=[])
        assert keystone.assignments == set()
        assert stored(keystone, item)["description"] == "new"


class TestDomains:
    def test_it_is_disabled_before_it_is_deleted(self, double, made):
        item = made(Domain, description="text")
        item.delete()
        methods = [one.method for one in double.requests if one.path == ("domains", item.physical_id)]
        assert methods[-3:] == ["PATCH", "DELETE", "GET"]

    def test_it_is_updated_in_place(self, keystone, made):
        item = made(Domain)
        item.update(description="text", enabled=False)
        assert stored(keystone, item)["description"] == "text"
        assert not stored(keystone, item)["enabled"]


class TestRoles:
    def test_it_may_belong_to_a_domain(self, keystone, made):
        assert stored(keystone, made(Role, domain="default"))["domain_id"] == "default"
        assert "domain_id" not in stored(keystone, made(Role, name="other"))
        assert Role().change({}, {"domain": "x"}, frozenset({"domain"})) == "replace"


class TestRegions:
    def test_its_id_is_percent_encoded(self, keystone, made):
        item = made(Region, id="north east")
        assert item.physical_id == "north%20east"
        assert item.kind.find(item.ctx, item.ctx.token) == ["north%20east"]
        item.update(description="text")
        assert stored(keystone, item)["description"] == "text"
        item.delete()

    def test_an_id_in_use_is_a_conflict_and_not_adopted(self, keystone, make):
        keystone.add("regions", id="north")
        item = make(Region, id="north")
        with pytest.raises(ProviderConflict):
            item.create()
        assert item.kind.find(item.ctx, item.ctx.token) is None

    def test_it_belongs_to_another(self, keystone, made):
        parent = made(Region, id="north")
        item = made(Region, parent_region="north", enabled=False)
        assert stored(keystone, item)["parent_region_id"] == parent.physical_id
        item.update(parent_region=None)
        assert stored(keystone, item)["parent_region_id"] is None

    def test_a_removed_description_is_empty(self, keystone, made):
        item = made(Region, description="text")
        item.update(description=None)
        assert stored(keystone, item)["description"] == ""


class TestServicesAndEndpoints:
    def test_an_endpoint_belongs_to_a_service_in_a_region(self, keystone, made):
        service = made(CatalogService, type="t", name="s", description="d", enabled=False)
        region = made(Region, id="north")
        item = made(Endpoint, **SERVICE | {"service": service.physical_id}, region=region.physical_id)
        values = stored(keystone, item)
        assert (values["service_id"], values["region_id"]) == (service.physical_id, "north")
        assert (values["interface"], values["url"], values["enabled"]) == ("public", "http://x/", True)

    def test_they_are_updated_in_place(self, keystone, made):
        service = made(CatalogService, type="t")
        service.update(type="u", description="d")
        assert stored(keystone, service)["type"] == "u"
        item = made(Endpoint, **SERVICE)
        item.update(interface="admin", url="http://y/", enabled=False)
        values = stored(keystone, item)
        assert (values["interface"], values["url"], values["enabled"]) == ("admin", "http://y/", False)
