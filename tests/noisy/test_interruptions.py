"""Only a new desired state ends an operation: checks observe beside it, other actions wait or are refused."""

from __future__ import annotations

from tests.noisy.project import Project
from tests.noisy.templates import CHILD, GROUP, ROOT, SCALING_GROUP, Place, in_places, server, volume

CONFLICT = 409


def fleet(label: str, count: int = 6) -> dict[str, object]:
    """Return the resources of a stack with several servers."""
    return {f"server{number}": server(label) for number in range(count)}


def held_update(project: Project, count: int = 6) -> list[str]:
    """Start an update whose first server does not finish; return the ids of the servers that are held."""
    project.created("s", fleet("a", count))
    project.cloud.fault("hold", "update", times=1)
    project.update("s", fleet("b", count))
    return [item["id"] for item in project.cloud.await_objects(1, "UPDATING")]


def test_a_check_does_not_end_an_update(project: Project) -> None:
    """A check during an update observes every server, and the update changes every server."""
    held = held_update(project)
    project.act("s", "check")
    assert project.status("s") == "UPDATE_IN_PROGRESS"
    project.cloud.finish(held[0])
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.labels() == ["b"] * 6
    assert project.cloud.performed("update") == 6
    assert project.revisions("s")[0]["outcome"] == "complete"
    assert not project.why("s")["waiting"]


@in_places(CHILD, GROUP, SCALING_GROUP)
def test_a_check_does_not_end_an_update_in_any_place(project: Project, place: Place) -> None:
    """The update of nested servers is completed after a check of the root stack."""
    project.created("s", **place.body("a"))
    project.cloud.fault("hold", "update", times=1)
    project.update("s", **place.body("b"))
    held = project.cloud.await_objects(1, "UPDATING")[0]["id"]
    project.act("s", "check")
    project.cloud.finish(held)
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.labels() == ["b"] * place.count
    assert project.cloud.performed("update") == place.count


@in_places(ROOT, GROUP)
def test_a_check_does_not_end_a_create(project: Project, place: Place) -> None:
    """The create is completed after a check, with a single request for each server."""
    project.cloud.fault("hold", "create", times=1)
    project.create("s", **place.body())
    held = project.cloud.await_objects(1, "BUILD")[0]["id"]
    project.act("s", "check")
    project.cloud.finish(held)
    project.settle("s", "CREATE_COMPLETE")
    assert len(project.cloud.objects()) == project.cloud.performed("create") == place.count


def test_a_check_does_not_end_a_rollback(project: Project) -> None:
    """The rollback returns every server to its former label."""
    project.created("s", fleet("a", 3))
    project.cloud.fault("refuse", "create", services=["storage"])
    hold = project.cloud.fault("hold", "update", label="b")  # the way back only
    bad = volume() | {"depends_on": ["server0", "server1", "server2"]}
    project.update("s", {**fleet("b", 3), "bad": bad}, disable_rollback=False)
    held = project.cloud.await_objects(3, "UPDATING")
    project.act("s", "check")
    project.cloud.clear(hold)
    for item in held:
        project.cloud.finish(item["id"])
    project.settle("s", "ROLLBACK_COMPLETE")
    assert project.cloud.labels() == ["a"] * 3


def test_a_check_does_not_end_a_delete(project: Project) -> None:
    """A check during a delete has no effect on the delete."""
    project.created("s", {"server": server()})
    project.cloud.fault("hold", "delete", times=1)
    project.delete("s")
    held = project.cloud.await_objects(1, "DELETING")[0]["id"]
    project.client.post(f"{project.path('s')}/actions", json={"check": None})
    project.cloud.finish(held)
    project.settle("s", "GONE")
    assert project.cloud.performed("delete") == 1


def test_a_suspend_during_an_update_is_refused(project: Project) -> None:
    """The answer names the operation in progress, and the update is completed."""
    held = held_update(project, 2)
    refused = project.act("s", "suspend", expected=CONFLICT)
    assert "UPDATE" in refused.text
    project.cloud.finish(held[0])
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.labels() == ["b"] * 2


def test_a_suspend_can_wait_for_an_update(project: Project) -> None:
    """With `wait` the suspend starts after the update has ended."""
    held = held_update(project, 2)
    project.act("s", "suspend", query="?wait=true")
    assert project.status("s") == "UPDATE_IN_PROGRESS"
    project.cloud.finish(held[0])
    project.cloud.until(lambda: project.status("s") == "SUSPEND_COMPLETE")
    assert project.cloud.labels() == ["b"] * 2
    assert {item["state"] for item in project.cloud.objects()} == {"SUSPENDED"}


def test_a_resume_during_a_suspend_is_refused_or_waits(project: Project) -> None:
    """Without `wait` the answer is a conflict; with `wait` the servers run in the end."""
    project.created("s", {"server": server()})
    outage = project.cloud.fault("busy", "suspend")
    project.act("s", "suspend")
    project.cloud.await_calls("suspend", "busy")
    assert "SUSPEND" in project.act("s", "resume", expected=CONFLICT).text
    project.act("s", "resume", query="?wait=true")
    project.cloud.clear(outage)
    project.cloud.until(lambda: project.status("s") == "RESUME_COMPLETE")
    assert project.cloud.one()["state"] == "ACTIVE"


def test_a_snapshot_during_an_update_is_refused_or_waits(project: Project) -> None:
    """Without `wait` the answer is a conflict; with `wait` the snapshot follows the update."""
    held = held_update(project, 1)
    assert "UPDATE" in project.snapshot("s", expected=CONFLICT).text
    made = project.snapshot("s", query="?wait=true").json()
    project.cloud.finish(held[0])
    path = f"{project.path('s')}/snapshots/{made['id']}"
    project.cloud.until(lambda: project.ask("GET", path).json()["snapshot"]["status"] == "COMPLETE")
    assert project.cloud.labels() == ["b"]


def test_a_check_of_a_stack_that_misses_its_desired_state_changes_no_verdict(project: Project) -> None:
    """After a failed update and a check, the next update still applies the new label."""
    project.created("s", {"server": server("a")})
    refused = project.cloud.fault("refuse", "update")
    project.update("s", {"server": server("b")})
    project.settle("s", "UPDATE_FAILED")
    before = project.cloud.ids()
    project.cloud.clear(refused)
    project.act("s", "check")
    project.cloud.until(lambda: not project.status("s").endswith("IN_PROGRESS"))
    assert project.status("s") != "CHECK_COMPLETE"
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids(label="b") == before


def test_a_newer_template_ends_an_update(project: Project) -> None:
    """A new desired state supersedes the former; every server has the newest label."""
    held = held_update(project, 3)
    project.update("s", fleet("c", 3))
    project.cloud.finish(held[0])
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.labels() == ["c"] * 3
    outcomes = [item["outcome"] for item in project.revisions("s")]
    assert outcomes == ["complete", "superseded", "complete"]


def test_status_why_and_diff_agree_after_a_failure(project: Project) -> None:
    """Every answer shows the failed update of a group, and no answer shows it after the recovery."""
    project.created("s", **GROUP.body("a"))
    refused = project.cloud.fault("refuse", "update", times=1)
    project.update("s", **GROUP.body("b"))
    shown = project.settle("s", "UPDATE_FAILED")
    assert "compute answered 400" in shown["stack_status_reason"]
    explained = project.why("s")
    assert explained["word"] == "failed"
    assert "compute answered 400" in explained["causes"][0]["reason"]
    assert project.diff("s", 1, 2)
    project.cloud.clear(refused)
    project.patch("s")
    project.settle("s", "UPDATE_COMPLETE")
    explained = project.why("s")
    assert explained["word"] == "at-rest"
    assert not explained["causes"]
    assert not project.diff("s", 2, 3)
    assert project.cloud.labels() == ["b"] * 2
