"""Acme::Box fulfils the contract of resource types and its own rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from acme_shelf.box import Box

from orchestrator.errors import ProviderBusy
from orchestrator.testing.contract import TypeContract
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import Sample


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("ACME_SHELF", str(folder))
    return folder


class TestBox(TypeContract):
    @pytest.fixture
    def sample(self, folder: Path) -> Sample:
        @contextmanager
        def outage() -> Iterator[None]:
            away = folder.rename(folder.with_name("away"))
            yield
            away.rename(folder)

        return Sample("Acme::Box", {"litres": 20}, outage=outage)


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
