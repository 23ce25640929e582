"""Every registered type passes the contract, built-in or from a third party; registration is enough."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.registry import Registry
from orchestrator.testing.contract import HiddenContract, TypeContract
from orchestrator.testing.nested import NestedContract
from orchestrator.testing.samples import Sample
from tests.contract.conftest import all_types
from tests.contract.samples import samples

TYPES, SAMPLES = all_types(), samples()


Family = type[TypeContract | NestedContract | HiddenContract]


def _family(resource_type: ResourceType) -> Family:
    if isinstance(resource_type, NestedType):  # hidden or not, a nested type treats its child in the same way
        return NestedContract
    return HiddenContract if resource_type.hidden else TypeContract


def of(family: Family) -> Any:
    """Return a fixture that is the sample of each type which is to pass this contract."""
    names = [name for name, kind in TYPES.items() if _family(kind) is family]

    @pytest.fixture(params=names)
    def sample(self: object, request: pytest.FixtureRequest) -> Sample:
        return SAMPLES.get(request.param) or Sample(request.param)

    return sample


class _Installed:
    @pytest.fixture
    def kind(self, sample: Sample, installed: Registry) -> ResourceType:
        return installed[sample.type]


class TestTypes(_Installed, TypeContract):
    """Those that do something themselves."""

    sample = of(TypeContract)


class TestNestedTypes(_Installed, NestedContract):
    """Those whose thing is a stack."""

    sample = of(NestedContract)


class TestHiddenTypes(_Installed, HiddenContract):
    """Types that are kept for existing stacks."""

    sample = of(HiddenContract)


def test_every_sample_is_of_a_type_that_there_is():
    assert set(SAMPLES) <= set(TYPES)
