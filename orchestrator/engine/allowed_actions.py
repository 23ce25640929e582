"""Operations that a stack accepts in each state (docs/internals/design.md invariant 9). Pure.

For information only: each operation checks the state itself, and a test compares both in every state.
"""

from __future__ import annotations

from typing import Final

# Suggestions by failed action; after any other action, an update continues.
_SUGGESTIONS: Final = {
    "DELETE": "delete it again",
    "SUSPEND": "suspend it again, or resume it",
    "RESUME": "resume it again",
    "SNAPSHOT": "nothing is wrong with the stack itself: try again",
    "CHECK": "an update replaces what is not as it should be",
}
_UPDATE: Final = "an update, with another template or with the same one, goes on from what is there"


def accepted(action: str, status: str) -> tuple[str, ...]:
    """Return the operations, by API name, that an existing stack in this state accepts."""
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
    """Return the suggested operations after a failed action, as text."""
    return _SUGGESTIONS.get(action, _UPDATE)
