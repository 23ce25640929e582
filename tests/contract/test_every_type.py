"""Every registered type passes the contract, built-in or from a third party; registration is enough.

A type that needs a service of a cloud passes the contract of its declarations here; its verbs run where a
cloud is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.registry import Registry
from orchestrator.testing.contract import Declarations, HiddenContract, TypeContract, changeable
from orchestrator.testing.nested import NestedContract
from orchestrator.testing.samples import Sample, other_value
from tests.contract.conftest import all_types
from tests.contract.samples import samples

TYPES, SAMPLES = all_types(), samples()


Family = type[Declarations]


def _family(resource_type: ResourceType) -> Family:
    if isinstance(resource_type, NestedType):  # hidden or not, a nested type treats its child in the same way
        return NestedContract
    if resource_type.endpoint_type:
        return Declarations
    return HiddenContract if resource_type.hidden else TypeContract


def of(family: Family) -> Any:
    """Return a fixture that is the sample of each type which is to pass this contract."""
    names = [name for name, kind in TYPES.items() if _family(kind) is family]

    @pytest.fixture(params=names)
    def sample(self: object, request: pytest.FixtureRequest) -> Sample:
        sample = SAMPLES.get(request.param) or Sample(request.param)
        return sample if family is not Declarations else _generated(sample)

    return sample


def _generated(sample: Sample) -> Sample:
    """Return the sample without changes of properties whose other values cannot be generated: many refer to
    objects of the cloud.
    """
    kind, absent = TYPES[sample.type], set()
    for name, _ in changeable(kind, sample):
        try:
            other_value(kind, sample, name)
        except LookupError:
            absent.add(name)
    return replace(sample, slow_changes=sample.slow_changes | absent)


class _Installed:
    @pytest.fixture
    def kind(self, sample: Sample, installed: Registry) -> ResourceType:
        return installed[sample.type]


class TestTypes(_Installed, TypeContract):
    """Those that do something themselves."""

    sample = of(TypeContract)


class TestTypesOfServices(_Installed, Declarations):
    """Those that need a service."""

    sample = of(Declarations)


class TestNestedTypes(_Installed, NestedContract):
    """Those whose thing is a stack."""

    sample = of(NestedContract)


class TestHiddenTypes(_Installed, HiddenContract):
    """Types that are kept for existing stacks."""

    sample = of(HiddenContract)


def test_every_sample_is_of_a_type_that_there_is():
    assert set(SAMPLES) <= set(TYPES)
