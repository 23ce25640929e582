"""The types of the package fulfil the contract of resource types and their own rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from acme_shelf import shelf
from acme_shelf.box import Box
from acme_shelf.chest import Chest
from acme_shelf.listed_box import ListedBox

from orchestrator.errors import ProviderBusy
from orchestrator.resources.base import Context
from orchestrator.testing.contract import TypeContract
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import Intercept, Sample


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("ACME_SHELF", str(folder))
    return folder


class TestBox(TypeContract):
    @pytest.fixture
    def sample(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Sample:
        @contextmanager
        def outage() -> Iterator[None]:
            away = folder.rename(folder.with_name("away"))
            yield
            away.rename(folder)

        @contextmanager
        def intercept(call: Intercept) -> Iterator[None]:
            with monkeypatch.context() as patch:
                for name in ("create", "get", "update", "delete"):
                    send = getattr(shelf, name)
                    patch.setattr(shelf, name, lambda *a, send=send, **b: call(lambda: send(*a, **b)))
                yield

        return Sample("Acme::Box", {"litres": 20}, outage=outage, intercept=intercept)


class TestChest(TypeContract):
    box = TestBox.sample

    @pytest.fixture
    def sample(self, box: Sample) -> Sample:
        return replace(box, type="Acme::Chest", slow_changes=frozenset({"size", "colour"}))


class TestListedBox(TypeContract):
    box = TestBox.sample

    @pytest.fixture
    def sample(self, box: Sample) -> Sample:
        return replace(box, type="Acme::ListedBox")


def test_a_box_of_the_list_is_observed_without_a_request(folder: Path):
    box = ListedBox()
    created = [shelf.create(token, label=token, litres=1) for token in ("a", "b")]
    listed = dict(box.list_objects(Context("box", "box", "t", "CHECK")))
    assert sorted(listed) == created
    shelf.delete(created[0])
    observed = box.observe(Context("box", "box", "t", "CHECK", listed=listed), created[0])
    assert observed.exists
    assert observed.attributes["label"] == "a"
    assert not box.observe(Context("box", "box", "t", "CHECK", listed={}), created[0]).exists


def test_former_names_of_properties_are_accepted():
    properties, faults = Chest().read_properties({"size": 7, "colour": "red"})
    assert (properties["litres"], properties.get("colour"), faults) == (7, None, [])


def test_a_large_box_must_be_of_wood():
    box = Box()
    assert box.validate({"litres": 51, "material": "paper"}, 3600.0)
    assert not box.validate({"litres": 51, "material": "wood"}, 3600.0)


def test_an_unavailable_shelf_is_not_an_empty_shelf(monkeypatch, tmp_path):
    box = Operated(Box(), {"litres": 1})
    box.create()
    monkeypatch.setenv("ACME_SHELF", str(tmp_path / "away"))
    with pytest.raises(ProviderBusy):
        box.observe()
    with pytest.raises(ProviderBusy):
        box.delete()
