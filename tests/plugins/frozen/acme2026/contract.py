"""The tests of the package, as the page describes them: the contract with a sample of each type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
  box: {type: Acme::V2026::Box, properties: {litres: {get_param: litres}}}
outputs:
  label: {value: {get_attr: [box, label]}}
"""


def read_the_note(note: Operated) -> None:
    """Send the signal that makes a note ready."""
    data: Mapping[str, Any] = note.kind.signal(note.ctx, note.physical_id, {"by": "me"}).data or {}
    note.ctx = replace(note.ctx, data=data)


def with_metadata(ctx: Context) -> Context:
    """Add metadata to a context."""
    return replace(ctx, metadata={"room": 1})


class Boxes(TypeContract):
    @pytest.fixture
    def sample(self) -> Sample:
        return Sample("Acme::V2026::Box", {"litres": 20})


class Vaults(TypeContract):
    @pytest.fixture
    def sample(self) -> Sample:
        return Sample(
            "Acme::V2026::Vault",
            {"label": "a"},
            changes={"slots": 5, "label": "b", "dry_seconds": 0.01},
            answers={"slots": "update"},
            slow_changes=frozenset({"source"}),
            failing_changes=frozenset(),
            optional=frozenset(),
            fixtures=(),
            prepare_context=with_metadata,
        )


class Notes(TypeContract):
    @pytest.fixture
    def sample(self) -> Sample:
        return Sample(
            "Acme::V2026::Note",
            {"readers": 1},
            finish=read_the_note,
            signals=(("it", {"by": "me"}),),
            in_stack={"text": "hello"},
            other_resources={"other": {"type": "Acme::V2026::Note"}},
        )


class Racks(NestedContract):
    @pytest.fixture
    def sample(self) -> Sample:
        return Sample(
            "Acme::V2026::Rack",
            {"plan": "plan.yaml"},
            files={"plan.yaml": PLAN, "other.yaml": PLAN.replace("5", "6")},
            environment={"parameters": {}},
            changes={"plan": "other.yaml", "parameters": {"litres": 7}},
        )
