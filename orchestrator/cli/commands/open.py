"""`orchestrator open`: the page of a stack in the web console."""

from __future__ import annotations

import webbrowser
from urllib.parse import quote

import click

from orchestrator.cli.options import Session, client_command, stack_argument


@click.command("open")
@stack_argument
@click.option("--print", "only_print", is_flag=True, help="Print the address; open no browser.")
@client_command
def open_page(session: Session, *, name: str, only_print: bool) -> None:
    """Open the page of a stack in a browser, and print its address."""
    stack, connection = session.client.stacks.find(name), session.client.connection
    place = "/".join(quote(part, safe="") for part in (session.project, "stacks", stack.name, stack.id))
    page = f"{connection.url}/ui/{place}"
    if session.as_json:
        session.document({"url": page})
        return
    click.echo(page)
    if not only_print:
        webbrowser.open(page)
