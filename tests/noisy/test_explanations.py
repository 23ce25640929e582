"""The answers during an outage: status, reason, `why`, and events."""

from __future__ import annotations

from tests.noisy.project import Project
from tests.noisy.templates import CHILD, GROUP, ROOT, SCALING_GROUP, Place, in_places, server

ATTEMPTS = 7


@in_places(ROOT, SCALING_GROUP)
def test_why_shows_the_cause_and_the_next_attempt(project: Project, place: Place) -> None:
    """During an outage the resource is `refused`, with the error and the time of the next attempt."""
    with project.cloud.outage("compute"):
        project.create("s", **place.body())
        project.cloud.await_calls("", "busy", ATTEMPTS)
        stack = place.stack(project, "s")

        def explained() -> bool:
            nodes = [node for node in project.why(stack)["waiting"] if node["word"] == "refused"]
            return bool(nodes) and all(
                "compute answered 503" in node["last_error"] and node["next_attempt_at"] for node in nodes
            )

        project.cloud.until(explained)
    project.settle("s", "CREATE_COMPLETE")
    assert project.why(stack)["word"] == "at-rest"
    assert not project.why(stack)["waiting"]


def test_an_outage_has_a_single_event(project: Project) -> None:
    """Many attempts in an outage add a single event to the stack, and none to the resource."""
    with project.cloud.outage("compute"):
        project.create("s", {"server": server()})
        project.cloud.await_calls("", "busy", ATTEMPTS)
    project.settle("s", "CREATE_COMPLETE")
    texts = [event["resource_status_reason"] for event in project.events("s")]
    assert sum("compute is unavailable" in text for text in texts) == 1, texts
    assert len(project.events("s", "server")) == 2


def test_a_complete_stack_does_not_mention_the_outage(project: Project) -> None:
    """After the recovery, the reasons of the stack and of the resource are those of a success."""
    project.created("s", {"server": server("a")})
    with project.cloud.outage("compute"):
        project.update("s", {"server": server("b")})
        project.cloud.await_calls("", "busy", ATTEMPTS)
    shown = project.settle("s", "UPDATE_COMPLETE")
    assert "503" not in shown["stack_status_reason"]
    assert "503" not in project.resource("s", "server")["resource_status_reason"]
    assert project.resource("s", "server")["resource_status"] == "UPDATE_COMPLETE"


@in_places(CHILD, GROUP)
def test_a_stack_in_an_outage_can_be_deleted(project: Project, place: Place) -> None:
    """A delete during an outage starts at once, and deletes every object after the outage."""
    project.created("s", **place.body("a"))
    with project.cloud.outage("compute"):
        project.update("s", **place.body("b"))
        project.cloud.await_calls("", "busy", 2)
        project.delete("s")
        project.cloud.await_calls("delete", "busy", 2)
    project.settle("s", "GONE")
    assert not project.cloud.objects()
    assert project.cloud.performed("delete") == place.count


def test_a_newer_template_during_an_outage_is_applied(project: Project) -> None:
    """After the outage the server has the newest label, and the older labels were never requested."""
    project.created("s", {"server": server("a")})
    before = project.cloud.ids()
    with project.cloud.outage("compute"):
        for label in ("b", "c"):
            project.update("s", {"server": server(label)})
            project.cloud.await_calls("", "busy", 2, since=project.cloud.mark)
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids(label="c") == before
    assert project.cloud.performed("update") == 1
