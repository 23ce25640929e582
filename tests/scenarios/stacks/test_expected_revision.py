"""Updates that expect a revision."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.errors import InvalidRequest
from orchestrator.store.traversals.traversals import RevisionChanged
from tests.scenarios.world import test_resource


def test_an_update_of_an_older_revision_changes_nothing(world):
    uuid = world.create("s", {"a": test_resource("first")})
    world.deliver_all()
    world.update("s", {"a": test_resource("second")}, expected_revision=1)
    with pytest.raises(RevisionChanged, match="has revision 2, not 1"):
        world.update("s", {"a": test_resource("third")}, expected_revision=1)
    with pytest.raises(RevisionChanged):
        world.patch("s", parameters={}, expected_revision=3)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.stack_row("s").traversal == 2
    world.patch("s", expected_revision=2)
    assert world.stack_row("s").traversal == 3


@pytest.mark.parametrize("value", ["1", True, 0, -1, 1.5, 2**31])
def test_an_expected_revision_is_a_number(world, value):
    world.create("s", {"a": test_resource("first")})
    with pytest.raises(InvalidRequest, match="'expected_revision' must be the number of a revision"):
        world.update("s", {"a": test_resource("second")}, expected_revision=value)


@pytest.mark.parametrize("request_name", ["update", "patch"])
def test_of_simultaneous_updates_that_expect_the_same_revision_one_is_accepted(world, request_name):
    world.create("s", {"a": test_resource("first")})
    world.deliver_all()
    start = threading.Barrier(4)

    def submit(number: int) -> bool:
        start.wait(10)
        try:
            if request_name == "update":
                world.update("s", {"a": test_resource(f"v{number}")}, expected_revision=1)
            else:
                world.patch("s", tags=f"t{number}", expected_revision=1)
        except RevisionChanged:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        accepted = list(threads.map(submit, range(4)))
    assert accepted.count(True) == 1
    world.deliver_all()
    assert world.stack_row("s").traversal == 2
