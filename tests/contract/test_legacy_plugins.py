"""Plugins written before the API was renamed keep working, with a DeprecationWarning for each old name.

`tests/plugins/legacy/` holds plugins of the first documentation, unchanged: they must not be adapted.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orchestrator.resources import nested_type, stack_context
from orchestrator.resources.base import Context, Created, Observation, ResourceType
from orchestrator.resources.nested_type import SetChild, Settled
from orchestrator.resources.registry import Registry
from orchestrator.resources.stack_context import StackLocation
from orchestrator.template import formats
from orchestrator.template.formats import Format, Keywords
from orchestrator.template.template import read_document
from orchestrator.testing.nested import Child
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import Sample

LEGACY = Path(__file__).parents[1] / "plugins" / "legacy"

MOVED = {
    "orchestrator.resources.nested": ("orchestrator.resources.nested_type", "NestedType"),
    "orchestrator.resources.around": ("orchestrator.resources.stack_context", "Grant"),
    "orchestrator.resources.software": ("orchestrator.resources.software_api", "SoftwareStore"),
    "orchestrator.resources.signing": ("orchestrator.resources.ec2_signatures", "signal_url"),
    "orchestrator.template.hot": ("orchestrator.template.hot_formats", "hot"),
    "orchestrator.template.cfn": ("orchestrator.template.cfn_formats", "FORMATS"),
    "orchestrator.clients.catalog": ("orchestrator.clients.region_catalog", "Catalog"),
    "orchestrator.clients.cloud": ("orchestrator.clients.keystone.cloud_session", "Cloud"),
}
RENAMED = [
    (nested_type, "Bring", "SetChild"),
    (nested_type, "Beside", "Sibling"),
    (stack_context, "Place", "StackLocation"),
    (stack_context, "Peer", "RequiredResource"),
    (stack_context, "Peers", "RequiredResources"),
    (stack_context, "NOBODY", "NO_REQUIRED_RESOURCES"),
    (sys.modules["orchestrator.resources.base"], "Around", "StackContext"),
    (sys.modules["orchestrator.resources.base"], "NOWHERE", "EMPTY_CATALOG"),
    (formats, "Words", "Keywords"),
]
DIALECT = {"acme_template_version": "1", "outputs": {"o": {"value": {"shout": {"text": "a", "times": 2}}}}}


@pytest.fixture(autouse=True)
def legacy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(LEGACY))
    monkeypatch.setenv("ACME_SHELF", str(tmp_path))
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("acme_")}
    yield
    for name in [name for name in sys.modules if name.startswith("acme_") or name == "nested_stack"]:
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.parametrize("old", MOVED)
def test_a_moved_module_is_importable_under_its_old_name(old: str) -> None:
    new, name = MOVED[old]
    with pytest.warns(DeprecationWarning, match=f"{old}.{name} is deprecated, use {new}.{name}"):
        found = getattr(importlib.import_module(old), name)
    assert found is getattr(importlib.import_module(new), name)
    with pytest.raises(AttributeError):
        importlib.import_module(old).no_such_name  # noqa: B018


@pytest.mark.parametrize(("module", "old", "new"), RENAMED)
def test_a_renamed_class_is_importable_under_its_old_name(module: ModuleType, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is deprecated"):
        assert getattr(module, old) is getattr(module, new)
    with pytest.raises(AttributeError):
        module.no_such_name  # noqa: B018


def test_a_resource_type_without_renamed_names_works_without_warnings() -> None:
    from acme_shelf.box import Box

    box = Operated(Box(), {"litres": 20})
    box.create()
    assert box.settled().attributes["label"] == ""
    box.update(label="tea")
    assert box.settled().attributes["label"] == "tea"
    box.delete()
    assert not box.settled().exists


def test_a_template_format_works() -> None:
    with pytest.warns(DeprecationWarning, match=r"orchestrator\.template\.hot\.hot is deprecated"):
        from acme_dialect.formats import FORMATS
    with pytest.MonkeyPatch.context() as patch:
        installed = formats.Installed({**formats.all_formats(), FORMATS[0].name: FORMATS[0]})
        patch.setattr(formats, "installed", lambda: installed)
        template = read_document(DIALECT, "").define()
        assert template.form is FORMATS[0]
        assert list(template.outputs) == ["o"]


def test_a_format_accepts_its_old_fields() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated"):
        made = Format("k", "1", {}, words=Keywords(resources="things"), forgiving=True)
    assert made.keywords.resources == "things"
    assert made.ignores_unknown_keys
    with pytest.warns(DeprecationWarning, match="words"):
        assert made.words is made.keywords
    with pytest.warns(DeprecationWarning, match="forgiving"):
        assert made.forgiving
    with pytest.warns(DeprecationWarning, match="words"):
        assert replace(made, words=Keywords()).keywords == Keywords()


def test_a_nested_type_works() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated"):
        from nested_stack import CloudFormationStack
    kind = CloudFormationStack()
    child = Child(files={"u": "heat_template_version: 2021-04-16"})
    ctx = Context("a", "s-a-1", "t", "CREATE", properties={"TemplateURL": "u"})
    step = kind.step(ctx, ctx.properties, child, 0)
    assert isinstance(step, SetChild)
    assert step.child.url == "u"
    assert isinstance(kind.step(ctx, ctx.properties, child, 1), Settled)
    assert kind.can_check
    assert kind.can_pause
    assert kind.can_copy
    with pytest.warns(DeprecationWarning, match="beside"):
        assert child.beside("b").name == "b"  # type: ignore[attr-defined]


def old_type() -> type[ResourceType]:
    class Old(ResourceType):
        """Overrides and calls hooks under their old names."""

        name = "Acme::Old"
        calls_out = False

        def create(self, ctx: Context, props: Mapping[str, Any]) -> Created:
            return Created(f"{ctx.place.stack_name}-{ctx.around}")  # type: ignore[attr-defined]

        def observe(self, ctx: Context, physical_id: str) -> Observation:
            return Observation(exists=True)

        def survives_failure(self, ctx: Context, physical_id: str) -> bool:
            return physical_id == "well" or super().survives_failure(ctx, physical_id)  # type: ignore[misc]

        @property
        def is_claimed(self) -> bool:
            return True

    return Old


def test_a_context_accepts_its_old_fields() -> None:
    with pytest.warns(DeprecationWarning, match="peers"):
        context = Context("a", "s-a-1", "t", "CREATE", peers=stack_context.NO_REQUIRED_RESOURCES)  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="peers"):
        assert context.peers is context.required_resources  # type: ignore[attr-defined]


def test_hooks_under_their_old_names_override_the_new_names() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated") as warned:
        kind = Registry.of(old_type())["Acme::Old"]
    assert {str(one.message).rpartition(".")[2] for one in warned} == {
        "is_healthy_after_failure",
        "needs_lease",
    }
    assert kind.needs_lease
    assert not kind.has_provider_check
    ctx = Context("a", "s-a-1", "t", "CREATE")
    assert kind.is_healthy_after_failure(ctx, "well")
    with pytest.warns(DeprecationWarning, match="survives_failure"):
        assert not kind.is_healthy_after_failure(ctx, "ill")
    with pytest.warns(DeprecationWarning, match="checks_itself"):
        assert not kind.checks_itself  # type: ignore[attr-defined]


def test_a_context_has_its_old_fields() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated"):
        kind = old_type()()
    ctx = Context("a", "s-a-1", "t", "CREATE")
    with pytest.warns(DeprecationWarning, match="place"):
        ctx = replace(ctx, place=StackLocation("p", "s"))
    with pytest.warns(DeprecationWarning, match="is deprecated"):
        assert kind.create(ctx, {}).physical_id == "s-None"


def test_a_sample_accepts_its_old_fields() -> None:
    with pytest.warns(DeprecationWarning, match="beside"):
        assert Sample("Acme::Box", beside={"b": {}}).other_resources == {"b": {}}
    with pytest.warns(DeprecationWarning, match="left_out"):
        assert Sample("Acme::Box", left_out=frozenset({"litres"})).slow_changes == {"litres"}  # type: ignore[call-arg]
