"""The examples and the documents hold: templates load, commands exist, settings are all described."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from orchestrator.cli.main import main
from orchestrator.config import PREFIX, Settings
from orchestrator.template.environment import Environment
from orchestrator.template.parse import Limits
from orchestrator.template.template import load

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if ".env." not in path.name], ids=lambda path: path.stem
)
def test_an_example_is_a_template_without_a_fault_or_a_warning(path: Path) -> None:
    template = load(path.read_text(), Limits())
    assert template.resources
    assert template.warnings == ()
    assert template.description != "No description"


def test_the_demonstration_has_some_thirty_resources_in_several_layers() -> None:
    template = load((ROOT / "examples" / "shop.yaml").read_text(), Limits())
    depth: dict[str, int] = {}
    while len(depth) < len(template.resources):
        for name, resource in template.resources.items():
            if resource.requires <= depth.keys():
                depth.setdefault(name, 1 + max((depth[other] for other in resource.requires), default=0))
    assert len(template.resources) >= 30
    assert max(depth.values()) >= 6


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if ".env." in path.name], ids=lambda path: path.stem
)
def test_an_environment_fits_the_template_it_is_for(path: Path) -> None:
    template = load(path.with_name(f"{path.name.partition('-')[0]}.yaml").read_text(), Limits())
    environment = Environment.parse(path.read_text())
    assert environment.parameters.keys() <= template.parameters.keys()
    assert environment.parameter_defaults.keys() <= template.parameters.keys()


def test_every_setting_is_described_and_every_variable_named_exists() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    table = text[text.index("## Settings") : text.index("## Backup")]
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \|", table, re.MULTILINE)
    described = set(re.findall(r"[A-Z_]{2,}", " ".join(rows)))
    assert described == {name.upper() for name in Settings.model_fields}
    client = {"URL", "PROJECT", "PROFILE", "TOKEN", "TOKEN_FILE", "USERNAME", "PASSWORD", "PASSWORD_FILE"}
    recorded = described | client | {f"{name}_FILE" for name in described}
    for document in DOCUMENTS:
        assert set(re.findall(rf"{PREFIX}([A-Z_]+[A-Z])", document.read_text())) <= recorded, document.name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_line_in_the_documents_exists(document: Path) -> None:
    groups = r"stack (?:snapshot )?|token |key-pair |quota |audit |observation (?:policy )?"
    groups += r"|drift (?=accept |plan )"
    line = rf"orchestrator ((?:{groups})?[a-z-]+)((?: [^\n`|;)]*)?)"
    for text in re.findall(line, _commands(document.read_text())):
        keywords, rest = text
        command: click.Command | None = main
        for keyword in keywords.split():
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), keyword)
            assert command is not None, f"{document.name}: orchestrator {keywords}"
        if isinstance(command, click.Group):  # `drift STACK` is `drift show STACK`
            command = command.get_command(click.Context(command), "show") or command
        options = {
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert set(re.findall(r"(?<=[\s\[])--?[A-Za-z-]+", rest)) <= options, (
            f"{document.name}: {keywords}{rest}"
        )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_the_documents_link_to_is_there(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name}: {target}"


def _commands(text: str) -> str:
    """Return the code blocks and code spans of a document."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    plain = [line for line in lines if not line.startswith("openstack ")]  # its arguments may name a user
    return "\n".join(plain + re.findall(r"`(orchestrator [^`]*)`", text))
