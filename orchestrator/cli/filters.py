"""Filter values: checked against the known values, and described in the message for an empty result."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import click
from click.shell_completion import CompletionItem


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
            hint = f"did you mean {near[0]}?" if near else f"known values: {', '.join(self.words[:12])}"
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
