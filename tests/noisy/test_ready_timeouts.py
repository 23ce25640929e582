"""The time to become ready is limited by the environment; past it an object counts as in error."""

from __future__ import annotations

from tests.noisy.project import Project
from tests.noisy.templates import server

LIMIT = {"resource_registry": {"resources": {"server": {"ready_timeout": 1}}}}


def test_a_server_that_is_late_is_created_again(project: Project) -> None:
    """The first server never becomes ready: it is deleted, and the second completes the create."""
    project.cloud.fault("hold", "create", times=1)
    project.created("s", {"server": server()}, environment=LIMIT)
    assert len(project.cloud.objects()) == 1
    assert project.cloud.performed("create") == 2
    assert project.cloud.performed("delete") == 1


def test_the_number_of_late_servers_is_limited(project: Project) -> None:
    """After the first attempt and five retries the create fails, and names the time limit."""
    project.cloud.fault("hold", "create")
    project.create("s", {"server": server()}, environment=LIMIT)
    shown = project.settle("s", "CREATE_FAILED")
    assert "ready" in shown["stack_status_reason"]
    assert project.cloud.performed("create") == 6
    assert len(project.cloud.objects()) <= 1
    project.cloud.clear()
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.objects()) == 1


def test_an_update_that_is_late_fails(project: Project) -> None:
    """An update in place has the same limit; the next update recovers the server."""
    project.created("s", {"server": server("a")}, environment=LIMIT)
    project.cloud.fault("hold", "update", times=1)
    project.update("s", {"server": server("b")}, environment=LIMIT)
    project.cloud.until(lambda: not project.status("s").endswith("IN_PROGRESS"))
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.labels() == ["b"]


def test_time_in_an_outage_does_not_count(project: Project) -> None:
    """A server that could not be observed for longer than the limit is not deleted."""
    project.cloud.fault("hold", "create", times=1)
    with project.cloud.outage("network"):
        project.create("s", {"server": server()}, environment=LIMIT)
        booting = project.cloud.await_objects(1, "BUILD")[0]["id"]
    with project.cloud.outage("compute"):
        project.cloud.finish(booting)
        project.cloud.await_calls("show", "busy", 6)
    project.settle("s", "CREATE_COMPLETE")
    assert project.cloud.performed("create") == 1
