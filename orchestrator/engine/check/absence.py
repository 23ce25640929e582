"""Absences after an outage of a service: they count in two observations (operations/adr/0023). Pure."""

from __future__ import annotations

from typing import Final

from orchestrator.errors import ProviderBusy
from orchestrator.resources.base import Observation

CONFIRM_SECONDS: Final = 3.0  # until the absence is observed again: the state passes in the first second
# Verbs that request something: an object that a service does not know is left as it is.
ACTING: Final = frozenset({"delete", "update", "advance", "release", "reclaim", "recover", "cancel"})


class AbsenceInDoubt(ProviderBusy):
    """A service that gave no answer a short time ago does not know an object. It may exist all the same."""

    def __init__(self, service: str) -> None:
        """Name the service."""
        reason = f"{service} gave no answer before: that the object does not exist is to be confirmed"
        super().__init__(reason, "AbsenceInDoubt", retry_after=CONFIRM_SECONDS)


def reports_absence(verb: str, result: object, *, unknown_object: bool) -> bool | None:
    """Return whether the result of a verb says that an object does not exist; None: it says nothing about it.
    `unknown_object`: the service has answered a request of the verb with 404.
    """
    if verb in ACTING and unknown_object:
        return True
    if isinstance(result, Observation):
        return not result.exists
    return not result if verb in ("find", "is_healthy_after_failure") else None
