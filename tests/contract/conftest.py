"""The types under contract: ours, and a third party's whose things are elsewhere."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator, Mapping

import pytest

from orchestrator.resources.base import ResourceType
from orchestrator.resources.registry import GROUP, Registry
from tests.plugins.region_fixture import region  # noqa: F401 - a fixture
from tests.plugins.thing_fixture import THING_DIR, ThingServer


@pytest.fixture(scope="module")
def plugin_path() -> Iterator[None]:
    """Put the third party's package on the path, as PYTHONPATH does for worker processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(THING_DIR))
        yield


@pytest.fixture
def things(
    plugin_path: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ThingServer]:
    """Run a server of things for a single test, known to this process."""
    server = ThingServer(tmp_path_factory.mktemp("things"))
    server.start()
    monkeypatch.setenv("THING_URL", server.url)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def points(plugin_path: None) -> Mapping[str, importlib.metadata.EntryPoint]:
    """Return the entry points of all types. Reading them takes longer than most tests."""
    return {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}


@pytest.fixture
def installed(points: Mapping[str, importlib.metadata.EntryPoint]) -> Registry:
    """Return every registered type, the third party's among them."""
    return Registry(points)


def all_types() -> dict[str, ResourceType]:
    """Return our own types and the third party's, for parametrizing."""
    own_items = importlib.metadata.entry_points(group=GROUP)
    theirs = [p for d in importlib.metadata.distributions(path=[str(THING_DIR)]) for p in d.entry_points]
    sys.path.insert(0, str(THING_DIR))  # for as long as it takes to load it
    try:
        return dict(Registry({point.name: point for point in (*own_items, *theirs)}).items())
    finally:
        sys.path.remove(str(THING_DIR))
