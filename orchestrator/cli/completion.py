"""Completion of stack names in the shell."""

from __future__ import annotations

from itertools import islice

import click
import httpx
from click.shell_completion import CompletionItem

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.profiles import endpoint

MAX_NAMES = 1_000


def complete_stacks(ctx: click.Context, _argument: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the stacks of the project whose names begin with `incomplete`; none if the server is
    unavailable.
    """
    try:
        server = endpoint(*(ctx.params.get(name) for name in ("url", "project", "profile")))
        with Client(
            server.url, server.project, server.token, login=server.login, patience_seconds=0.0
        ) as client:
            found = list(islice(client.stacks.list_all({}), MAX_NAMES))
    except (Failure, httpx.HTTPError):
        return []
    return [
        CompletionItem(stack["stack_name"], help=stack["stack_status"])
        for stack in found
        if stack["stack_name"].startswith(incomplete)
    ]
