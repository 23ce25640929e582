"""Maximum size of a response that is built in memory: previews, and descriptions of nested templates.

The parts are measured while they are made, so that a response beyond the maximum is refused before all of it
is in memory. The budget belongs to the thread, as the parts are made at many places, like the time budget of
functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import orjson

from orchestrator.errors import LimitExceeded
from orchestrator.operations.runtime.turns import pass_on
from orchestrator.schema.request_budgets import budgets

MAX_RESPONSE_BYTES: Final = 64 * 1024 * 1024  # JSON
ENTRY_BYTES: Final = 512  # of a resource or template without its values


@contextmanager
def size_budget(name: str) -> Iterator[None]:
    """Limit the size of the response that this thread builds in the context; errors contain its `name`."""
    budgets.response_bytes, budgets.response_name = MAX_RESPONSE_BYTES, name
    try:
        yield
    finally:
        budgets.response_bytes = None


def charge(*values: object, entries: int = 1) -> None:
    """Subtract entries with these values from the budget, if one is set. A response with a budget is computed
    in slices, each in a turn.

    Raises:
        LimitExceeded: the response would be too large.
    """
    if budgets.response_bytes is None:
        return
    size = entries * ENTRY_BYTES + sum(map(_size_of, filter(None, values)))
    budgets.response_bytes -= size
    pass_on()
    if budgets.response_bytes < 0:
        most = f"{MAX_RESPONSE_BYTES // 1024**2} MiB"
        raise LimitExceeded(f"{budgets.response_name} would have more than {most}.")


def _size_of(value: object) -> int:
    return len(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS))
