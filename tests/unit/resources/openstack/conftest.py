"""Services in memory, and resources on them."""

from __future__ import annotations

import pytest

from tests.unit.resources.openstack.double_cloud import DoubleCloud
from tests.unit.resources.openstack.double_keystone import DoubleKeystone
from tests.unit.resources.openstack.engine_double import Resource


@pytest.fixture
def keystone() -> DoubleKeystone:
    return DoubleKeystone()


@pytest.fixture
def double(keystone: DoubleKeystone) -> DoubleCloud:
    return DoubleCloud(keystone=keystone)


@pytest.fixture
def make(double):
    def resource(kind, **properties):
        return Resource(kind(), double.cloud, **properties)

    return resource


@pytest.fixture
def made(make):
    def resource(kind, **properties):
        item = make(kind, **properties)
        assert item.create().ready
        return item

    return resource
