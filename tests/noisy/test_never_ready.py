"""A mark, a newer template or a delete takes over an object that never becomes ready."""

from __future__ import annotations

import pytest

from tests.noisy.project import Project
from tests.noisy.templates import CHILD, GROUP, ROOT, SCALING_GROUP, Place, in_places, server


@pytest.fixture
def held(project: Project, place: Place) -> list[str]:
    """The ids of servers that never become ready, in a stack whose create is in progress."""
    project.cloud.fault("hold", "create", times=place.count)
    project.create("s", **place.body())
    return [item["id"] for item in project.cloud.await_objects(place.count, "BUILD")]


def test_a_mark_replaces_a_server_during_its_create(project: Project, place: Place, held: list[str]) -> None:
    """A server is marked while it is created; it is deleted once, and a new server completes the create."""
    stack = place.stack(project, "s")
    for name in project.resources(stack):
        project.mark_unhealthy(stack, name)
    project.settle("s", "CREATE_COMPLETE")
    assert len(project.cloud.objects()) == place.count
    assert not project.cloud.ids() & set(held)
    assert project.cloud.performed("create") == 2 * place.count
    assert project.cloud.performed("delete") == place.count


def test_a_replacement_does_not_wait(project: Project, place: Place, held: list[str]) -> None:
    """A newer template that requires a replacement takes over the create of the old server."""
    project.update("s", **place.body(flavor="large"))
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.ids(flavor="large")) == len(project.cloud.objects()) == place.count
    assert project.cloud.performed("delete") == place.count


@in_places(ROOT, SCALING_GROUP)
def test_an_unchanged_create_continues(project: Project, place: Place, held: list[str]) -> None:
    """An empty update during a create sends no second create request."""
    project.patch("s")
    mark = project.cloud.mark
    project.cloud.await_calls("show", "ok", 2 * place.count, since=mark)
    for id_ in held:
        project.cloud.finish(id_)
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids() == set(held)
    assert project.cloud.performed("create") == place.count
    assert project.cloud.performed("delete") == 0


@in_places(CHILD, GROUP)
def test_a_delete_takes_over_a_create(project: Project, place: Place, held: list[str]) -> None:
    """The delete of a stack does not wait for its servers, and deletes each of them once."""
    project.delete("s")
    project.settle("s", "GONE")
    assert not project.cloud.objects()
    assert project.cloud.performed("delete") == place.count


def test_a_removed_resource_does_not_become_ready_first(project: Project) -> None:
    """A newer template without the server deletes the server during its create."""
    project.cloud.fault("hold", "create", times=1)
    project.create("s", {"server": server()})
    project.cloud.await_objects(1, "BUILD")
    project.update("s", {})
    project.settle("s", "UPDATE_COMPLETE")
    assert not project.cloud.objects()
    assert project.cloud.performed("delete") == 1


def test_a_replacement_takes_over_an_update(project: Project) -> None:
    """A newer template that requires a replacement does not wait for an update in place."""
    project.created("s", {"server": server("a")})
    project.cloud.fault("hold", "update", times=1)
    project.update("s", {"server": server("b")})
    project.cloud.await_objects(1, "UPDATING")
    project.update("s", {"server": server("b", flavor="large")})
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.one()["properties"]["flavor"] == "large"
    assert project.cloud.performed("delete") == 1


def test_a_mark_replaces_a_server_during_its_update(project: Project) -> None:
    """A server whose update never ends is marked, and replaced by a server with the new properties."""
    project.created("s", {"server": server("a")})
    project.cloud.fault("hold", "update", times=1)
    project.update("s", {"server": server("b")})
    old = project.cloud.await_objects(1, "UPDATING")[0]["id"]
    project.mark_unhealthy("s", "server")
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.labels() == ["b"]
    assert project.cloud.one()["id"] != old
    assert project.cloud.performed("delete") == 1


def test_an_unchanged_update_continues(project: Project) -> None:
    """An empty update over an open update sends no second update request."""
    project.created("s", {"server": server("a")})
    project.cloud.fault("hold", "update", times=1)
    project.update("s", {"server": server("b")})
    updating = project.cloud.await_objects(1, "UPDATING")[0]["id"]
    project.patch("s")
    mark = project.cloud.mark
    project.cloud.await_calls("show", "ok", 2, since=mark)
    project.cloud.finish(updating)
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids(label="b") == {updating}
    assert project.cloud.performed("update") == 1


def test_a_change_in_place_over_an_open_create_creates_no_second_object(project: Project) -> None:
    """A newer label is applied to the created server."""
    project.cloud.fault("hold", "create", times=1)
    project.create("s", {"server": server("a")})
    booting = project.cloud.await_objects(1, "BUILD")[0]["id"]
    project.update("s", {"server": server("b")})
    mark = project.cloud.mark
    project.cloud.await_calls("show", "ok", 2, since=mark)
    project.cloud.finish(booting)
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids(label="b") == {booting}
    assert project.cloud.performed("create") == 1


@in_places(ROOT, GROUP)
def test_servers_in_error_are_created_again(project: Project, place: Place) -> None:
    """A server that goes into error is deleted, and created again."""
    project.cloud.fault("break", "create", times=2)
    project.created("s", **place.body())
    assert len(project.cloud.objects()) == place.count
    assert project.cloud.performed("create") == place.count + 2
    assert project.cloud.performed("delete") == 2


def test_the_number_of_attempts_is_limited(project: Project) -> None:
    """After the first attempt and five retries the create fails with the error of the object."""
    project.cloud.fault("break", "create")
    project.create("s", {"server": server()})
    shown = project.settle("s", "CREATE_FAILED")
    assert "is in error" in shown["stack_status_reason"]
    assert project.cloud.performed("create") == 6
    project.cloud.clear()
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.objects()) == 1
