"""After its timeout a stack is FAILED with the cause; the next operation starts from the observed state."""

from __future__ import annotations

import pytest

from tests.noisy.project import Project
from tests.noisy.templates import CHILD, GROUP, ROOT, SCALING_GROUP, Place, in_places, server

TIMED_OUT = "Timed out"


def test_an_outage_beyond_the_timeout_fails_the_create(project: Project, place: Place) -> None:
    """The reason contains the timeout and the cause; afterwards an update completes the stack."""
    with project.cloud.outage("compute"):
        project.create("s", **place.body())
        project.cloud.await_calls("", "busy", 2)
        project.pass_timeout("s")
        reason = project.settle("s", "CREATE_FAILED")["stack_status_reason"]
        assert TIMED_OUT in reason
        assert "compute answered 503" in reason
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.objects()) == project.cloud.performed("create") == place.count


def test_an_outage_beyond_the_timeout_fails_the_update(project: Project, place: Place) -> None:
    """The next update continues in place, without a replacement."""
    project.created("s", **place.body("a"))
    before = project.cloud.ids()
    with project.cloud.outage("compute"):
        project.update("s", **place.body("b"))
        project.cloud.await_calls("", "busy", 2)
        project.pass_timeout("s")
        reason = project.settle("s", "UPDATE_FAILED")["stack_status_reason"]
        assert TIMED_OUT in reason
        assert "compute answered 503" in reason
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids(label="b") == before
    assert project.cloud.performed("create") == place.count


def test_an_outage_beyond_the_timeout_fails_the_delete(project: Project) -> None:
    """The delete can be repeated, and deletes the server once."""
    project.created("s", {"server": server()})
    with project.cloud.outage("compute"):
        project.delete("s")
        project.cloud.await_calls("delete", "busy", 2)
        project.pass_timeout("s")
        reason = project.settle("s", "DELETE_FAILED")["stack_status_reason"]
        assert TIMED_OUT in reason
    project.delete("s")
    project.settle("s", "GONE")
    assert not project.cloud.objects()
    assert project.cloud.performed("delete") == 1


@pytest.fixture
def timed_out(project: Project, place: Place) -> list[str]:
    """The ids of servers that never became ready, in a stack whose create timed out."""
    project.cloud.fault("hold", "create", times=place.count)
    project.create("s", **place.body())
    ids = [item["id"] for item in project.cloud.await_objects(place.count, "BUILD")]
    project.pass_timeout("s")
    reason = project.settle("s", "CREATE_FAILED")["stack_status_reason"]
    assert TIMED_OUT in reason
    return ids


@in_places(ROOT, GROUP)
def test_a_server_that_becomes_ready_late_is_kept(
    project: Project, place: Place, timed_out: list[str]
) -> None:
    """An update observes the server of the failed create before it decides on a replacement."""
    for id_ in timed_out:
        project.cloud.finish(id_)
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids() == set(timed_out)
    assert project.cloud.performed("create") == place.count


def test_a_replacement_after_the_timeout_does_not_wait(
    project: Project, place: Place, timed_out: list[str]
) -> None:
    """A new flavor replaces a server that is still not ready."""
    project.update("s", **place.body(flavor="large"))
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.ids(flavor="large")) == len(project.cloud.objects()) == place.count
    assert project.cloud.performed("delete") == place.count


@in_places(CHILD, SCALING_GROUP)
def test_a_mark_after_the_timeout_replaces_the_server(
    project: Project, place: Place, timed_out: list[str]
) -> None:
    """A server that is not ready is marked after the failure, and replaced by the next update."""
    stack = place.stack(project, "s")
    for name in project.resources(stack):
        project.mark_unhealthy(stack, name)
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.objects()) == place.count
    assert not project.cloud.ids() & set(timed_out)


@in_places(ROOT, CHILD)
def test_a_check_after_the_timeout_ends(project: Project, place: Place, timed_out: list[str]) -> None:
    """A check reports a server that is not ready, and neither waits for it nor hides the failure."""
    stack = place.stack(project, "s")
    project.act("s", "check")
    names = project.resources(stack)

    def observed() -> bool:
        return all(project.resource(stack, name)["observed"] == "not-ready" for name in names)

    project.cloud.until(observed)
    assert project.status("s") == "CREATE_FAILED"
    assert project.cloud.ids() == set(timed_out)


@in_places(ROOT, GROUP)
def test_a_delete_after_the_timeout_does_not_wait(
    project: Project, place: Place, timed_out: list[str]
) -> None:
    """Servers that are not ready are deleted once each."""
    project.delete("s")
    project.settle("s", "GONE")
    assert not project.cloud.objects()
    assert project.cloud.performed("delete") == place.count
