"""docs/plugins.md shows the tested package, and docs/remote-stacks.md lists the settings."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from orchestrator.clients.region_catalog import catalog_of
from orchestrator.config import PREFIX, Settings
from orchestrator.resources.registry import load_registry
from orchestrator.template.parse import Limits
from orchestrator.template.template import load
from orchestrator.testing.samples import Sample

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def blocks(page: str, *languages: str) -> list[str]:
    return re.findall(rf"```(?:{'|'.join(languages)})\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_code_of_the_guide_is_the_packages_that_is_tested() -> None:
    package = ROOT / "tests" / "plugins" / "shelf"
    files = (package / "pyproject.toml", *sorted(package.glob("*/*.py")))
    code = ["".join(path.read_text().split()) for path in files]  # a page's code has its own indentation
    quoted = blocks("plugins.md", "python", "toml")
    assert len(quoted) == 10
    for block in quoted:
        assert any("".join(block.split()) in text for text in code), block


def test_the_guide_names_every_field_of_a_sample() -> None:
    text = (DOCS / "plugins.md").read_text()
    for name in Sample.__dataclass_fields__:
        assert name == "type" or f"`{name}`" in text, name


def test_the_examples_are_templates_of_types_that_there_are() -> None:
    types = load_registry()
    result = blocks("remote-stacks.md", "yaml")
    templates = [text for text in result if text.startswith("heat_template_version")]
    assert len(templates) == 2
    for text in templates:
        for definition in load(text, Limits()).resources.values():
            resource_type = types[definition.type]
            assert set(definition.body["properties"]) <= set(resource_type.properties)


def test_the_catalog_in_the_docs_is_valid(tmp_path: Path) -> None:
    (text,) = [text for text in blocks("remote-stacks.md", "yaml") if text.startswith("regions")]
    document = yaml.safe_load(text)
    (tmp_path / "token").write_text("t")
    document["regions"]["north"]["projects"]["shop"]["token_file"] = str(tmp_path / "token")
    (tmp_path / "catalog.yaml").write_text(yaml.safe_dump(document))
    catalog = catalog_of(Settings(catalog_file=tmp_path / "catalog.yaml"), "shop")
    assert catalog.endpoint("north").url == "https://north.example:8004/v1/shop-of-the-north"


def test_the_settings_named_are_settings() -> None:
    named = set(re.findall(rf"`{PREFIX}([A-Z_]+)", (DOCS / "remote-stacks.md").read_text()))
    assert named
    assert {name.lower() for name in named} <= set(Settings.model_fields)
