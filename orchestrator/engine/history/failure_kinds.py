"""Classification of failure reasons, with suggested actions.

A provider's message is stored unchanged. Its meaning is derived here from an HTTP status with the name of the
service, an error name, or a request id of the provider's log. The classification is for display only: the
engine never acts on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

REQUEST_ID: Final = re.compile(r"\breq-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
SERVICE: Final = re.compile(r"\(HTTP \d{3} from ([\w-]+)\)")
ERROR_NAME: Final = re.compile(r"([A-Z][A-Za-z0-9]*): ")

# The first match wins.
_SIGNS: Final = (
    ("quota", r"quota|limit exceeded|RequestLimitExceeded|OverLimit|too many (?:instances|resources)"),
    (
        "capacity",
        r"no valid host|insufficient|not enough|no space|out of (?:memory|disk|capacity)|exhausted"
        r"|available weighted backend|no storage could be allocated",
    ),
    ("auth", r"\b(?:401|403)\b|unauthori[sz]ed|forbidden|not authorized|access denied|credential"),
    ("conflict", r"\b409\b|conflict|already exists|in use|duplicate"),
    ("timeout", r"time[d]?[ -]?out|deadline|took (?:too long|longer)"),
    ("busy", r"\b(?:429|502|503|504)\b|unavailable|busy|could not be reached|connection (?:refused|reset)"),
    ("not-found", r"\b404\b|not found|could not be found|no such|does not exist"),
    ("invalid", r"\b400\b|invalid|property error|must be|is not a valid|bad request|validation"),
    ("outcome-unknown", r"outcome (?:is )?unknown"),
    ("bug", r"internal error|\b500\b|traceback"),
)
SIGNS: Final = tuple((category, re.compile(text, re.IGNORECASE)) for category, text in _SIGNS)

NEXT: Final = {
    "quota": "delete unused resources or request a higher quota, then update the stack again",
    "capacity": "try again later, or request less capacity, then update the stack",
    "auth": "check that the project's credentials permit this, then update the stack again",
    "conflict": "find the conflicting object, remove or rename one of the two, then update the stack again",
    "timeout": "check whether it is ready now; update the stack again, with a longer timeout if needed",
    "busy": "the service was not available: update the stack again when it is",
    "not-found": "check that the objects named in the template exist, then update the stack",
    "invalid": "correct the properties in the template, then update the stack",
    "outcome-unknown": "check at the provider whether it was created, delete it if so, then update the stack",
    "bug": "ask the operator of the service, with the request's id if there is one",
    "other": "read the message, remove its cause, then update the stack again",
}


@dataclass(frozen=True, slots=True)
class FailureKind:
    """The classification of a reason."""

    category: str  # a member of NEXT
    error_type: str | None  # the error's own name
    request_id: str | None  # the provider's
    service: str | None  # that answered with an error
    next_step: str


def classify(reason: str) -> FailureKind:
    """Classify a reason."""
    error, request, service = ERROR_NAME.match(reason), REQUEST_ID.search(reason), SERVICE.search(reason)
    text = REQUEST_ID.sub("", reason)  # the digits of the request id are no HTTP status
    category = next((category for category, sign in SIGNS if sign.search(text)), "other")
    return FailureKind(
        category,
        error[1] if error else None,
        request[0] if request else None,
        service[1] if service else None,
        NEXT[category],
    )
