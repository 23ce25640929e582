"""The status of a child stack for its parent's resource."""

from __future__ import annotations

import pytest

from orchestrator.engine.check.child_status import (
    ChildRequest,
    ChildState,
    child_status,
    flattened,
    is_outdated,
    split_request,
    with_request,
)

CHILD = ChildState(9, "uuid", "s-a", "p", 4, "UPDATE", "COMPLETE", "", 2, gone=False)
REQUEST = ChildRequest(4, 0)


@pytest.mark.parametrize(
    ("child", "request_", "status"),
    [
        (None, REQUEST, "none"),
        (CHILD._replace(gone=True), REQUEST, "none"),
        (CHILD._replace(status="IN_PROGRESS"), REQUEST, "running"),
        (CHILD._replace(status="IN_PROGRESS"), None, "running"),
        (CHILD, None, "elsewhere"),
        (CHILD, ChildRequest(3, 0), "elsewhere"),
        (CHILD, ChildRequest(4, 5), "done"),
        (CHILD._replace(status="FAILED"), REQUEST, "failed"),
        (CHILD._replace(status="FAILED"), ChildRequest(3, 0), "elsewhere"),
    ],
)
def test_a_child_is_judged_by_the_requested_traversal(
    child: ChildState | None, request_: ChildRequest | None, status: str
):
    assert child_status(child, request_) == status


@pytest.mark.parametrize(
    ("child", "request_", "outdated"),
    [
        (CHILD._replace(status="FAILED", halted=True), ChildRequest(4, 0, 6), True),
        (CHILD._replace(status="IN_PROGRESS", halted=True), ChildRequest(4, 0, 6), True),
        (CHILD._replace(status="IN_PROGRESS"), ChildRequest(4, 0, 6), False),  # it may still succeed
        (CHILD._replace(status="FAILED", halted=True), ChildRequest(4, 0, 7), False),
        (CHILD._replace(status="FAILED", halted=True), ChildRequest(4, 0), False),  # of a worker of 0.1
        (CHILD, ChildRequest(4, 0, 6), False),
        (None, ChildRequest(4, 0, 6), False),
        (CHILD, None, False),
    ],
)
def test_a_failure_for_an_older_traversal_of_the_parent_is_outdated(
    child: ChildState | None, request_: ChildRequest | None, outdated: bool
):
    assert is_outdated(child, request_, 7) is outdated


def test_a_request_is_stored_with_the_data_of_the_type():
    requested = with_request({"k": 1}, ChildRequest(4, 2, 7))
    assert split_request(requested) == (ChildRequest(4, 2, 7), {"k": 1})
    stored = with_request({"k": 1}, ChildRequest(4, 2))
    assert split_request(stored) == (ChildRequest(4, 2), {"k": 1})
    assert split_request({"k": 1}) == (None, {"k": 1})
    assert with_request({"k": 1}, None) == {"k": 1}


@pytest.mark.parametrize(
    ("reason", "flat"),
    [
        ("Error: resources.b: no disk", "Error: resources.a.resources.b: no disk"),
        ("resources.b: no disk", "resources.a.resources.b: no disk"),
        ("no disk", "Error: resources.a: no disk"),
        ("NotFound: resources.b: one\ntwo", "NotFound: resources.a.resources.b: one\ntwo"),
    ],
)
def test_a_failure_of_a_child_gets_a_single_path(reason: str, flat: str):
    assert flattened(reason, "a") == flat
