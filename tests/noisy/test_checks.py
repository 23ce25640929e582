"""A check distinguishes absent, in error and unreachable, and an unreachable resource keeps its status."""

from __future__ import annotations

from tests.noisy.project import Project
from tests.noisy.templates import CHILD, GROUP, ROOT, SCALING_GROUP, Place, group, in_places, server, volume

UNOBSERVED = "could not be observed"


def test_unreachable_servers_keep_their_status_and_survive_an_update(project: Project, place: Place) -> None:
    """A check in an outage fails, names the cause, and leads to no replacement afterwards."""
    project.created("s", **place.body())
    before, inner = project.cloud.ids(), place.stack(project, "s")
    with project.cloud.outage("compute"):
        project.act("s", "check")
        shown = project.settle("s", "CHECK_FAILED")
    assert UNOBSERVED in shown["stack_status_reason"]
    assert set(project.statuses(inner).values()) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
    mark = project.cloud.mark
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids() == before
    assert not project.cloud.calls("create", since=mark)
    assert not project.cloud.calls("delete", since=mark)


@in_places(ROOT, CHILD)
def test_a_check_after_the_outage_is_complete(project: Project, place: Place) -> None:
    """A second check, with the service reachable, is complete without a change."""
    project.created("s", **place.body())
    before = project.cloud.ids()
    with project.cloud.outage("compute"):
        project.act("s", "check")
        project.settle("s", "CHECK_FAILED")
    project.act("s", "check")
    project.settle("s", "CHECK_COMPLETE")
    assert project.cloud.ids() == before


@in_places(ROOT, SCALING_GROUP)
def test_a_missing_server_is_found_and_created_again(project: Project, place: Place) -> None:
    """A confirmed absence fails the check, and the next update creates only the missing server."""
    project.created("s", **place.body())
    missing, *others = [item["id"] for item in project.cloud.objects()]
    project.cloud.remove(missing)
    project.act("s", "check")
    shown = project.settle("s", "CHECK_FAILED")
    assert UNOBSERVED not in shown["stack_status_reason"]
    mark = project.cloud.mark
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.objects()) == place.count
    assert set(others) < project.cloud.ids()
    assert project.cloud.performed("create", since=mark) == 1


@in_places(CHILD, GROUP)
def test_a_server_in_error_is_found_and_replaced(project: Project, place: Place) -> None:
    """An object in error fails the check with its message; the next update replaces only this object."""
    project.created("s", **place.body())
    broken, *others = [item["id"] for item in project.cloud.objects()]
    project.cloud.change(broken, state="ERROR")
    project.act("s", "check")
    shown = project.settle("s", "CHECK_FAILED")
    assert f"{broken} is in error" in shown["stack_status_reason"]
    mark = project.cloud.mark
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.objects()) == place.count
    assert broken not in project.cloud.ids()
    assert set(others) < project.cloud.ids()
    assert project.cloud.performed("create", since=mark) == project.cloud.performed("delete", since=mark) == 1


def test_every_reachable_resource_is_observed(project: Project) -> None:
    """Absent, in error and unreachable are reported separately in a single check."""
    resources = {
        "lost": server("lost"),
        "well": server("well"),
        "gone": volume("gone"),
        "bad": volume("bad"),
        "fine": volume("fine"),
    }
    project.created("s", resources)
    gone, bad = (project.resource("s", name)["physical_resource_id"] for name in ("gone", "bad"))
    project.cloud.remove(gone)
    project.cloud.change(bad, state="ERROR")
    project.cloud.fault("busy", label="lost")
    mark = project.cloud.mark
    project.act("s", "check")
    reason = project.settle("s", "CHECK_FAILED")["stack_status_reason"]
    assert project.cloud.calls("show", "ok", service="compute", since=mark)
    assert len({call["id"] for call in project.cloud.calls("show", service="storage", since=mark)}) == 3
    assert UNOBSERVED in reason
    assert "lost" in reason
    assert "resources.gone" in reason
    assert "resources.bad" in reason
    statuses = project.statuses("s")
    assert statuses["gone"] == statuses["bad"] == "CHECK_FAILED"
    assert statuses["lost"] == "CREATE_COMPLETE"
    assert not [status for status in statuses.values() if status.endswith("IN_PROGRESS")]
    project.cloud.clear()
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.objects("compute")) == 2
    assert len(project.cloud.objects("storage")) == 3
    assert project.cloud.performed("create", service="compute") == 2


def test_dependents_of_an_unreachable_resource_are_checked(project: Project) -> None:
    """A check does not skip the resources that require an unreachable resource."""
    project.created("s", {"first": server("first"), "second": server("second", requires="first")})
    project.cloud.fault("busy", label="first")
    mark = project.cloud.mark
    project.act("s", "check")
    project.settle("s", "CHECK_FAILED")
    second = project.resource("s", "second")["physical_resource_id"]
    assert second in {call["id"] for call in project.cloud.calls("show", "ok", since=mark)}
    assert project.statuses("s")["second"] == "CHECK_COMPLETE"


@in_places(ROOT, GROUP)
def test_a_changed_object_is_reverted_only_on_request(project: Project, place: Place) -> None:
    """A change by hand survives a check; an update with `converge` reverts it in place."""
    project.created("s", **place.body("a"))
    before = project.cloud.ids()
    changed = project.cloud.objects()[0]["id"]
    project.cloud.change(changed, label="by hand")
    project.act("s", "check")
    project.settle("s", "CHECK_COMPLETE")
    project.patch("s", converge=True)
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids(label="a") == before
    assert project.cloud.performed("create") == place.count


def test_a_check_finds_a_missing_child_stack(project: Project) -> None:
    """A missing child stack fails the check of its parent, and the next update creates it."""
    for place in (CHILD, GROUP):
        name = place.name
        project.created(name, **place.body())
        child = project.child(name, place.resource)
        project.delete(child)
        project.settle(child, "GONE")
        project.act(name, "check")
        shown = project.settle(name, "CHECK_FAILED")
        assert place.resource in shown["stack_status_reason"]
        project.patch(name)
        project.settle(name, "UPDATE_COMPLETE")
        assert len(project.cloud.objects()) == place.count
        project.delete(name)
        project.settle(name, "GONE")


def test_a_check_leaves_nothing_in_progress(project: Project) -> None:
    """Healthy, unreachable and nested resources all have a final status after a check."""
    resources = {"a": server("a"), "b": volume("b"), "members": group(server("member"))}
    project.created("s", resources)
    members = project.child("s", "members")
    with project.cloud.outage("compute"):
        project.act("s", "check")
        project.settle("s", "CHECK_FAILED")
    for stack in ("s", members):
        assert not [text for text in project.statuses(stack).values() if text.endswith("IN_PROGRESS")]
    assert not project.status(members).endswith("IN_PROGRESS")
    assert not project.why("s")["waiting"]
