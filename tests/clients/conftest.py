"""A server and a process with the stock clients, shared by all tests here; every test has its own project."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.stock import Driver, Openstack, environment
from tests.e2e.running import Up

SETTINGS = {
    "ORCHESTRATOR_ENABLE_STACK_ABANDON": "true",
    "ORCHESTRATOR_ENABLE_STACK_ADOPT": "true",
}


@pytest.fixture(scope="session")
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Up, Driver]]:
    """The server and the clients, which start side by side."""
    up = Up(tmp_path_factory.mktemp("up") / "data", env=SETTINGS)
    try:
        driver = Driver(environment(), tmp_path_factory.mktemp("home"))
        try:
            up.wait_ready(180)
            yield up, driver
        finally:
            driver.stop()
    finally:
        up.stop()


@pytest.fixture(scope="session")
def up(starting: tuple[Up, Driver]) -> Up:
    """The server."""
    return starting[0]


@pytest.fixture(scope="session")
def driver(starting: tuple[Up, Driver]) -> Driver:
    """The process that runs the stock clients."""
    return starting[1]


@pytest.fixture(scope="session")
def projects() -> Iterator[str]:
    """Projects that nothing else uses."""
    return (f"project{number}" for number in itertools.count(1))


@pytest.fixture
def openstack(up: Up, driver: Driver, projects: Iterator[str]) -> Openstack:
    """The `openstack` command in its own project."""
    return Openstack(driver, up.url, next(projects))


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A template of two resources, as people have it in a file."""
    path = tmp_path / "template.yaml"
    path.write_text(TEMPLATE)
    return path


TEMPLATE = """\
heat_template_version: 2021-04-16
description: Two of them
parameters:
  value: {type: string, default: short, description: What is stored}
  secret: {type: string, default: hush, hidden: true}
resources:
  first: {type: OS::Heat::RandomString, properties: {length: 8}}
  second:
    type: OS::Heat::TestResource
    metadata: {shelf: top}
    properties: {value: {get_param: value}}
    depends_on: first
outputs:
  it: {description: What is stored, value: {get_attr: [second, output]}}
"""
