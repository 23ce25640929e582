"""Temporary conflicts: an object is in use, or an address is not free yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from orchestrator.errors import ProviderConflict, ProviderInUse
from orchestrator.resources.base import Context

CREATE_SECONDS: Final = 30.0  # after the start of a create or update, how long a conflict may pass
DELETE_SECONDS: Final = 120.0  # after the start of a delete


@contextmanager
def temporary_conflicts(ctx: Context) -> Iterator[None]:
    """Report a conflict as temporary, so that the request is repeated, until the operation is too old.

    Raises:
        ProviderInUse: the request is to be repeated.
        ProviderConflict: the conflict is final.
    """
    try:
        yield
    except ProviderConflict as error:
        limit = DELETE_SECONDS if ctx.action == "DELETE" else CREATE_SECONDS
        if ctx.elapsed_seconds < limit:
            raise ProviderInUse(str(error), error.kind) from error
        raise
