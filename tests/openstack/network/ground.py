"""Preparations for the tests of Neutron's types."""

from __future__ import annotations

from dataclasses import dataclass

from tests.openstack.driver import Driver


@dataclass
@dataclass
class Ground:
    """A network with a subnet."""

    net: str
    subnet: str


def lives(driver: Driver, type_: str, given: dict[str, object], *changes: dict[str, object]) -> str:
    """Create a resource, find it by its token, and apply the changes; there is never drift."""
    made = driver.create(type_, given)
    assert driver.drift(made) == {}
    assert driver.find(made) == [made]
    for change in changes:
        made = driver.update(made, **change)
        assert driver.drift(made) == {}, change
    return made
