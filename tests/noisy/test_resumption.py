"""A stack that timed out in an outage continues by itself when the service answers, if its policy permits."""

from __future__ import annotations

from tests.noisy.project import Project
from tests.noisy.templates import GROUP, ROOT, Place, in_places, server


@in_places(ROOT, GROUP)
def test_a_create_that_timed_out_is_resumed(project: Project, place: Place) -> None:
    """With `resume`, the stack becomes complete without a request, and each server is created once."""
    with project.cloud.outage("compute"):
        project.create("s", **place.body(), resume=True)
        project.cloud.await_calls("", "busy", 4)
        project.pass_timeout("s")
        reason = project.settle("s", "CREATE_FAILED")["stack_status_reason"]
        assert "Timed out" in reason
    project.cloud.until(lambda: project.status("s").endswith("_COMPLETE"))
    assert len(project.cloud.objects()) == project.cloud.performed("create") == place.count
    assert not project.why("s")["waiting"]


def test_an_update_that_timed_out_is_resumed_in_place(project: Project) -> None:
    """With `resume`, the server has the new label without a replacement."""
    project.created("s", {"server": server("a")}, resume=True)
    before = project.cloud.ids()
    with project.cloud.outage("compute"):
        project.update("s", {"server": server("b")})
        project.cloud.await_calls("", "busy", 4)
        project.pass_timeout("s")
        project.settle("s", "UPDATE_FAILED")
    project.cloud.until(lambda: project.status("s") == "UPDATE_COMPLETE")
    assert project.cloud.ids(label="b") == before


def test_without_the_policy_a_stack_stays_failed(project: Project) -> None:
    """A user's create is not resumed by default: after the outage its service is not called again."""
    with project.cloud.outage("compute"):
        project.create("s", {"server": server()})
        project.cloud.await_calls("", "busy", 4)
        project.pass_timeout("s")
        project.settle("s", "CREATE_FAILED")
    project.created("t", {"server": server("other")})  # the service answers the project again
    assert project.status("s") == "CREATE_FAILED"
    assert "Timed out" in project.reason("s")
