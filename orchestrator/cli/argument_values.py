"""Values of arguments and filters: checked against the known values, completed in the shell, and described in
the message for an empty result.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import islice

import click
import httpx
from click.shell_completion import CompletionItem

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.profiles import endpoint

MAX_NAMES = 1_000  # stack names that are completed


class Keyword(click.ParamType[str]):
    """One of several words, in any case; the error for an unknown word suggests similar words."""

    def __init__(self, name: str, words: Sequence[str]) -> None:
        """Accept `words`; `name` is used in the error message."""
        self.name = name
        self.words = words

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word as declared."""
        text = str(value)
        found = next((word for word in self.words if word.lower() == text.lower()), None)
        if found is None:
            near = get_close_matches(text.upper(), self.words) or get_close_matches(text.lower(), self.words)
            hint = f"did you mean {near[0]}?" if near else f"known values: {', '.join(self.words)}"
            self.fail(f"unknown {self.name} {text!r}; {hint}", param, ctx)
        return found

    def shell_complete(  # click passes three arguments
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the words that begin with `incomplete`."""
        return [CompletionItem(word) for word in self.words if word.lower().startswith(incomplete.lower())]


def describe(**filters: Sequence[str]) -> str:
    """Return the filters in use as a phrase; "" without filters."""
    return ", ".join(f"{name} {' or '.join(values)}" for name, values in filters.items() if values)


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
