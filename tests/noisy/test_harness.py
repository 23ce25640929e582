"""The noisy cloud itself: objects, calls and faults are reported as they are."""

from __future__ import annotations

from tests.noisy.project import Project
from tests.noisy.templates import Place, server, volume


def test_a_stack_is_created_updated_and_deleted_in_every_place(project: Project, place: Place) -> None:
    """Without faults, each step makes exactly the calls that it needs."""
    project.created("s", **place.body("a"))
    assert project.cloud.labels() == ["a"] * place.count
    project.update("s", **place.body("b"))
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.labels() == ["b"] * place.count
    assert project.cloud.performed("create") == place.count
    assert project.cloud.performed("update") == place.count
    project.delete("s")
    project.settle("s", "GONE")
    assert not project.cloud.objects()
    assert project.cloud.performed("delete") == place.count


def test_two_services_are_independent(project: Project) -> None:
    """Objects of different services are listed separately, and a reference to an id works."""
    resources = {"disk": volume("d"), "server": server("a", volume={"get_resource": "disk"})}
    project.created("s", resources)
    assert project.cloud.one()["properties"]["volume"] == project.cloud.one("storage")["id"]


def test_a_lost_answer_does_not_duplicate_the_object(project: Project) -> None:
    """A create whose answer is lost is found by its token."""
    project.cloud.fault("silent", "create", times=1)
    project.created("s", {"server": server()})
    assert len(project.cloud.objects()) == 1
    assert project.cloud.performed("create") == 1
