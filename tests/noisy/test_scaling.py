"""Signals to scaling policies while members boot, are updated, or cannot be reached."""

from __future__ import annotations

from typing import Any

from tests.noisy.project import Project
from tests.noisy.templates import policy, scaling_group, server


def scaled(size: int = 2, label: str = "a", **properties: Any) -> dict[str, Any]:
    """Return the resources of a scaling group, and of policies that add and remove a member."""
    return {
        "group": scaling_group(server(label), size, **properties),
        "more": policy(1),
        "less": policy(-1),
    }


def size_of(project: Project) -> int:
    """Return the size that the group reports."""
    return int(project.resource("s", "group")["attributes"]["current_size"])


def settled(project: Project, size: int) -> None:
    """Wait until the group has this size, in the cloud and in its attributes, and nothing is in progress."""
    child = project.child("s", "group")

    def done() -> bool:
        return (
            len(project.cloud.objects()) == size
            and size_of(project) == size
            and project.status(child).endswith("_COMPLETE")
        )

    project.cloud.until(done)


def signal_texts(project: Project) -> list[str]:
    """Return the reasons of all events of the policies and of the group."""
    return [
        event["resource_status_reason"]
        for name in ("more", "less", "group")
        for event in project.events("s", name)
    ]


def test_signals_while_members_boot_are_applied(project: Project) -> None:
    """Five signals during the start of a member add five members in total."""
    project.created("s", scaled(2))
    hold = project.cloud.fault("hold", "create", times=1)
    for _ in range(5):
        project.signal("s", "more")
    booting = project.cloud.await_objects(1, "BUILD")[0]["id"]
    project.cloud.clear(hold)
    project.cloud.finish(booting)
    settled(project, 7)
    assert project.cloud.performed("create") == 7
    assert project.cloud.performed("delete") == 0


def test_signals_in_both_directions_are_combined(project: Project) -> None:
    """Two signals to grow and a signal to shrink, during the start of a member, add a single member."""
    project.created("s", scaled(2))
    project.cloud.fault("hold", "create", times=1)
    project.signal("s", "more")
    booting = project.cloud.await_objects(1, "BUILD")[0]["id"]
    project.signal("s", "more")
    project.signal("s", "less")
    project.cloud.finish(booting)
    settled(project, 3)


def test_signals_during_an_outage_are_applied_after_it(project: Project) -> None:
    """Signals are kept while no member can be created, and their sum is applied afterwards."""
    project.created("s", scaled(1))
    with project.cloud.outage("compute"):
        for _ in range(3):
            project.signal("s", "more")
        project.cloud.await_calls("", "busy", 8)
    settled(project, 4)
    assert project.cloud.performed("create") == 4


def test_a_signal_during_a_rolling_update_is_applied_after_it(project: Project) -> None:
    """The group grows after every member has the new label."""
    rolling = {"rolling_updates": {"max_batch_size": 1}}
    project.created("s", scaled(2, "a", **rolling))
    project.cloud.fault("hold", "update", times=1)
    project.update("s", scaled(2, "b", **rolling))
    updating = project.cloud.await_calls("update", "ok")[0]["id"]
    project.signal("s", "more")
    project.cloud.finish(updating)
    project.settle("s", "UPDATE_COMPLETE")
    settled(project, 3)
    assert project.cloud.labels() == ["b"] * 3


def test_a_signal_at_the_maximum_is_rejected_with_an_event(project: Project) -> None:
    """A group at its maximum size keeps its size, and an event states the reason."""
    project.created("s", scaled(2, maximum=2))
    project.signal("s", "more")
    project.cloud.until(lambda: any("maximum" in text for text in signal_texts(project)))
    settled(project, 2)


def test_a_signal_during_the_cooldown_is_rejected_with_an_event(project: Project) -> None:
    """The second signal changes nothing, and an event states the reason."""
    resources = scaled(1) | {"more": policy(1, cooldown=3600)}
    project.created("s", resources)
    project.signal("s", "more")
    settled(project, 2)
    project.signal("s", "more")
    project.cloud.until(lambda: any("cooldown" in text for text in signal_texts(project)))
    settled(project, 2)


def test_a_member_that_never_becomes_ready_is_removed_first(project: Project) -> None:
    """Shrinking removes the stuck member and keeps the healthy members."""
    project.created("s", scaled(2))
    healthy = project.cloud.ids()
    project.cloud.fault("hold", "create", times=1)
    project.signal("s", "more")
    project.cloud.await_objects(1, "BUILD")
    project.signal("s", "less")
    settled(project, 2)
    assert project.cloud.ids() == healthy


def test_a_smaller_template_removes_the_stuck_member(project: Project) -> None:
    """An update to a smaller size does not wait for the stuck member, and keeps the healthy members."""
    project.created("s", scaled(3))
    healthy = project.cloud.ids()
    project.cloud.fault("hold", "create", times=1)
    project.signal("s", "more")
    project.cloud.await_objects(1, "BUILD")
    project.update("s", scaled(2))
    project.settle("s", "UPDATE_COMPLETE")
    settled(project, 2)
    assert set(project.cloud.ids()) < set(healthy)


def test_a_failed_member_is_removed_before_a_healthy_member(project: Project) -> None:
    """After a failed resize, shrinking removes the failed member."""
    project.created("s", scaled(2))
    healthy = project.cloud.ids()
    refused = project.cloud.fault("refuse", "create")
    project.signal("s", "more")
    child = project.child("s", "group")
    project.cloud.until(lambda: project.status(child) == "UPDATE_FAILED")
    project.cloud.clear(refused)
    project.signal("s", "less")
    settled(project, 2)
    assert project.cloud.ids() == healthy


def test_the_size_is_the_actual_size(project: Project) -> None:
    """A resize that failed is not counted; the next update completes it."""
    project.created("s", scaled(2))
    refused = project.cloud.fault("refuse", "create")
    project.signal("s", "more")
    child = project.child("s", "group")
    project.cloud.until(lambda: project.status(child) == "UPDATE_FAILED")
    assert size_of(project) == len(project.cloud.objects()) == 2
    project.cloud.clear(refused)


def test_named_members_are_removed_while_another_member_is_stuck(project: Project) -> None:
    """`remove_members` removes exactly the stuck member."""
    project.created("s", scaled(2))
    healthy = project.cloud.ids()
    project.cloud.fault("hold", "create", times=1)
    project.signal("s", "more")
    stuck = project.cloud.await_objects(1, "BUILD")[0]["name"]
    project.signal("s", "less", {"remove_members": [stuck]})
    settled(project, 2)
    assert project.cloud.ids() == healthy


def test_a_group_of_stuck_members_can_be_deleted(project: Project) -> None:
    """The delete of the stack does not wait for members, and deletes each object once."""
    project.created("s", scaled(2))
    project.cloud.fault("hold", "create", times=1)
    project.signal("s", "more")
    project.cloud.await_objects(1, "BUILD")
    project.delete("s")
    project.settle("s", "GONE")
    assert not project.cloud.objects()
    assert project.cloud.performed("delete") == 3
