"""Types with every optional verb, of notes and of nested stacks fulfil the contract of resource types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.resources.base import Context
from orchestrator.testing.contract import TypeContract
from orchestrator.testing.nested import NestedContract
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import Sample

PLAN = """
heat_template_version: 2021-04-16
parameters:
  litres: {type: number, default: 5}
resources:
  box: {type: Acme::Box, properties: {litres: {get_param: litres}}}
outputs:
  label: {value: {get_attr: [box, label]}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACME_SHELF", str(tmp_path))
    return tmp_path


def read_the_note(note: Operated) -> None:
    """Send the signal that makes a note ready."""
    data: Mapping[str, Any] = note.kind.signal(note.ctx, note.physical_id, {"by": "me"}).data or {}
    note.ctx = replace(note.ctx, data=data)


def with_metadata(ctx: Context) -> Context:
    """Add metadata to a context."""
    return replace(ctx, metadata={"room": 1})


class TestVault(TypeContract):
    @pytest.fixture
    def sample(self) -> Sample:
        return Sample(
            "Acme::Vault",
            {"label": "a"},
            changes={"slots": 5, "label": "b", "dry_seconds": 0.01},
            answers={"slots": "update"},
            slow_changes=frozenset({"source"}),
            failing_changes=frozenset(),
            optional=frozenset(),
            fixtures=(),
            prepare_context=with_metadata,
        )


class TestNote(TypeContract):
    @pytest.fixture
    def sample(self) -> Sample:
        return Sample(
            "Acme::Note",
            {"readers": 1},
            finish=read_the_note,
            signals=(("it", {"by": "me"}),),
            in_stack={"text": "hello"},
            other_resources={"other": {"type": "Acme::Note"}},
        )


class TestRack(NestedContract):
    @pytest.fixture
    def sample(self) -> Sample:
        return Sample(
            "Acme::Rack",
            {"plan": "plan.yaml"},
            files={"plan.yaml": PLAN, "other.yaml": PLAN.replace("5", "6")},
            environment={"parameters": {}},
            changes={"plan": "other.yaml", "parameters": {"litres": 7}},
        )
