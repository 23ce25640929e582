"""`orchestrator graph`: the resources and dependencies of a stack or a template, for Mermaid or Graphviz."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.argument_values import complete_stacks
from orchestrator.cli.options import FILE, Session, client_command
from orchestrator.cli.output.graph import Graph, dot, mermaid, of_resources, of_template
from orchestrator.cli.template_files.load import display_path, read_text


@click.command()
@click.argument("name", metavar="[STACK]", required=False, shell_complete=complete_stacks)
@click.option(
    "-t", "--template", "template_file", type=FILE, help="Draw this template instead; - reads standard input."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["mermaid", "dot"]),
    default="mermaid",
    show_default=True,
    help="Language.",
)
@client_command
def graph(session: Session, *, name: str | None, template_file: Path | None, form: str) -> None:
    """Print the dependency graph of a stack or a template.

    An arrow points from a resource to a resource that requires it, in the order of creation. A template is
    read on this machine, without the server: conditions and nested templates are not evaluated.
    """
    if (name is None) == (template_file is None):
        raise click.UsageError("give either a stack or a template with -t")
    dependencies: Graph
    if template_file is not None:
        dependencies = of_template(read_text(template_file, "template"), str(display_path(template_file)))
    else:
        stack = session.client.stacks.find(name or "")
        dependencies = of_resources(session.client.resources.list_all(stack))
    if session.as_json:
        session.document({"resources": dependencies.types, "requires": dependencies.requires})
    else:
        click.echo(mermaid(dependencies) if form == "mermaid" else dot(dependencies))
