"""Temporary conflicts: an object is in use, or an address is not free yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from orchestrator.errors import ProviderConflict, ProviderInUse


@contextmanager
def repeated_conflicts(
    is_temporary: Callable[[str], bool], retry_after: float | None = None
) -> Iterator[None]:
    """Report a conflict as temporary, so that the request is repeated, depending on its message.

    Raises:
        ProviderInUse: the request is to be repeated; the engine limits the repetitions.
        ProviderConflict: the conflict is final.
    """
    try:
        yield
    except ProviderConflict as error:
        if is_temporary(str(error)):
            raise ProviderInUse(str(error), error.kind, retry_after=retry_after) from error
        raise


def temporary_conflicts() -> AbstractContextManager[None]:
    """Report each conflict as temporary (`repeated_conflicts`)."""
    return repeated_conflicts(lambda _message: True)
