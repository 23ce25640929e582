"""Temporary conflicts: an object is in use, or an address is not free yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from orchestrator.errors import ProviderConflict, ProviderInUse
from orchestrator.resources.base import Context

CREATE_SECONDS: Final = 30.0  # after the start of a create or update, how long a conflict may pass
DELETE_SECONDS: Final = 120.0  # after the start of a delete


@contextmanager
def repeated_conflicts(
    is_temporary: Callable[[str], bool], retry_after: float | None = None
) -> Iterator[None]:
    """Report a conflict as temporary, so that the request is repeated, depending on its message.

    Raises:
        ProviderInUse: the request is to be repeated.
        ProviderConflict: the conflict is final.
    """
    try:
        yield
    except ProviderConflict as error:
        if is_temporary(str(error)):
            raise ProviderInUse(str(error), error.kind, retry_after=retry_after) from error
        raise


def temporary_conflicts(ctx: Context) -> AbstractContextManager[None]:
    """Report each conflict as temporary until the operation is too old (`repeated_conflicts`)."""
    limit = DELETE_SECONDS if ctx.action == "DELETE" else CREATE_SECONDS
    return repeated_conflicts(lambda _message: ctx.elapsed_seconds < limit)
