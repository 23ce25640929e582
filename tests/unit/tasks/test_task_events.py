"""Summary of a check task: resources for the arguments, and an exception for failed resources."""

from __future__ import annotations

import pickle

import pytest

from orchestrator.operations.reconcile.checked_node import CheckedNode, describe_nodes
from tasks.task_events import ResourceFailed, summary


def node(name: str, failure: str = "") -> CheckedNode:
    return CheckedNode(1, "app", name, "CREATE", "create", failure)


def test_a_late_message_has_no_summary():
    assert summary([]) is None


def test_a_summary_names_stack_resource_action_and_step():
    assert summary([node("web"), node("db")]) == "app/web CREATE create, app/db CREATE create"


def test_more_than_five_nodes_are_counted():
    shown = describe_nodes([node(f"n{n}") for n in range(8)])
    assert shown.endswith("app/n4 CREATE create and 3 more")


def test_a_failed_resource_fails_its_task_with_the_reason():
    with pytest.raises(ResourceFailed) as caught:
        summary([node("web"), node("db", "ValueError: resources.db: no")])
    assert caught.value.shown == "app/web CREATE create, app/db CREATE create"
    assert repr(caught.value) == "ResourceFailed('ValueError: resources.db: no')"


def test_the_failure_crosses_process_boundaries():
    error = pickle.loads(pickle.dumps(ResourceFailed("app/db CREATE create", "no")))
    assert (error.shown, error.reasons) == ("app/db CREATE create", "no")
