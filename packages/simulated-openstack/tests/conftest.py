"""A cloud for the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulated_openstack.cloud import SimulatedCloud, running_cloud


@pytest.fixture(scope="session")
def cloud() -> Iterator[SimulatedCloud]:
    """A cloud without delays, for all tests that change none of its first objects."""
    with running_cloud() as made:
        yield made
