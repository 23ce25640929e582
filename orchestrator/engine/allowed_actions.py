"""Which operations a stack accepts in which state (docs/internals/design.md invariant 9). Pure.

This only tells: the operations refuse by themselves, and a test asks them in every state.
"""

from __future__ import annotations

from typing import Final

# For people, by the action that failed; any other is taken up again by an update.
_HELPS: Final = {
    "DELETE": "delete it again",
    "SUSPEND": "suspend it again, or resume it",
    "RESUME": "resume it again",
    "SNAPSHOT": "nothing is wrong with the stack itself: try again",
    "CHECK": "an update replaces what is not as it should be",
}
_ANEW: Final = "an update, with another template or with the same one, goes on from what is there"


def accepted(action: str, status: str) -> tuple[str, ...]:
    """Return the operations that a live stack in this state accepts, by the names they have in the API."""
    if (action, status) == ("DELETE", "COMPLETE"):
        return ()
    found = ["delete"]
    if action != "SUSPEND":
        found.append("update")
    if (action, status) == ("UPDATE", "IN_PROGRESS"):
        found.append("cancel_update")
    if action in {"CREATE", "UPDATE"} and status == "IN_PROGRESS":
        found.append("cancel_without_rollback")
    if (action, status) != ("DELETE", "IN_PROGRESS"):
        found += ["check", "suspend", "resume"]
    return tuple(found)


def suggested_operations(action: str) -> str:
    """Return what to do about a stack whose action has failed, in words."""
    return _HELPS.get(action, _ANEW)
