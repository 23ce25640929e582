"""Roles of users and groups as resources, with a Keystone in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.resources.openstack.keystone.group import Group
from orchestrator.resources.openstack.keystone.role_assignment import (
    GroupRoleAssignment,
    UserRoleAssignment,
)
from orchestrator.resources.openstack.keystone.user import User


class TestRoleAssignments:
    @pytest.fixture
    def things(self, keystone):
        return {
            "user": keystone.add("users", name="u"),
            "other": keystone.add("users", name="o"),
            "group": keystone.add("groups", name="g"),
            "project": keystone.add("projects", name="p"),
            "role": keystone.add("roles", name="r"),
            "second": keystone.add("roles", name="s"),
        }

    def roles(self, things, role="role"):
        return [{"role": things[role], "project": things["project"]}]

    @pytest.mark.parametrize(
        ("kind", "subject"), [(UserRoleAssignment, "user"), (GroupRoleAssignment, "group")]
    )
    def test_roles_are_assigned_and_revoked(self, kind, subject, keystone, things, made):
        item = made(kind, **{subject: things[subject]}, roles=self.roles(things))
        assert item.physical_id == things[subject]
        assert item.check().reference_id == "it"
        assert keystone.assignments == {
            ("projects", things["project"], f"{subject}s", things[subject], things["role"])
        }
        item.update(roles=self.roles(things, "second"))
        assert {link[-1] for link in keystone.assignments} == {things["second"]}
        item.delete()
        assert keystone.assignments == set()
        assert things[subject] in keystone.objects[f"{subject}s"]

    def test_a_new_user_receives_the_roles_of_the_former(self, keystone, things, made):
        item = made(UserRoleAssignment, user=things["user"], roles=self.roles(things))
        item.update(user=things["other"])
        assert {link[3] for link in keystone.assignments} == {things["other"]}
        assert item.physical_id == things["other"]

    def test_assignments_of_others_are_kept(self, keystone, things, made):
        foreign = ("domains", "default", "users", things["user"], things["role"])
        keystone.assignments.add(foreign)
        item = made(UserRoleAssignment, user=things["user"], roles=self.roles(things))
        item.delete()
        assert keystone.assignments == {foreign}

    def test_they_are_gone_with_the_user(self, keystone, things, made, double):
        item = made(UserRoleAssignment, user=things["user"], roles=self.roles(things))
        keystone._one("DELETE", "users", things["user"], None)
        assert not item.check().exists
        item.delete()
        assert double.count("DELETE") == 0

    def test_they_are_revoked_without_stored_data(self, keystone, things, made):
        item = made(UserRoleAssignment, user=things["user"], roles=self.roles(things))
        item.ctx = replace(item.ctx, data={})
        item.delete()
        assert keystone.assignments == set()

    def test_a_repeated_create_needs_no_search(self, things, make):
        item = make(UserRoleAssignment, user=things["user"])
        assert item.kind.find(item.ctx, item.ctx.token) is None
        assert item.create().ready

    @pytest.mark.parametrize("kind", [User, Group, UserRoleAssignment, GroupRoleAssignment])
    def test_a_role_needs_a_single_scope(self, kind):
        (both,) = kind().validate({"roles": [{"role": "r", "project": "p", "domain": "d"}]}, 60.0)
        assert both.message == ("Cannot define the following properties at the same time: project, domain.")
        (neither,) = kind().validate({"roles": [{"role": "r"}]}, 60.0)
        assert neither.message == "Either project or domain must be specified for role r"
        assert not kind().validate({"roles": [{"role": "r", "domain": "d"}]}, 60.0)
